"""The synthetic engine: a deterministic OpenAI-compatible streaming server with faults to order.

`python -m evidence.capture.synthetic --port N --sequence-cap N ...` serves /v1/chat/completions, /v1/completions,
/v1/embeddings, /v1/models, /health, /version, /metrics, /tokenize and /synthetic/memory, prints `ready HOST:PORT`, and
ends on SIGTERM. Nothing here computes a model: what is made with it speaks of the evidence machinery alone.

* Cap: at most --sequence-cap generations run, the others wait in order of arrival.
* Times: a generation begins when it gets its place; its first text leaves --prefill-ms later and each further piece
  --token-ms after the one before, by deadlines, so that lateness does not add up. The loop waits with select(2), whose
  time-out has microseconds where epoll's has milliseconds; that bounds it to about a thousand connections.
* Memory: /synthetic/memory tells weights + cap * context * bytes per token, or with --memory-fraction that share of all.
* Faults: --fault NAME for the generations --fault-from N to --fault-until N (counted from 1, in this process), or one
  request's header X-Synthetic-Fault or field {"synthetic": {"fault": NAME}}.
"""

import argparse
import asyncio
import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any, TextIO

from evidence.capture import synthetic_answers as answers

VERSION = "1.0"
NAME = "synthetic"
FAULTS = {
    "none": "a normal answer",
    "status-500": "an HTTP error (any status-NNN)",
    "hang-before-head": "no response at all",
    "hang-mid-stream": "half of the answer, then nothing",
    "close-early": "half of the events, then a clean end of the body",
    "truncate": "half of the events, then the connection closes inside the body",
    "reset": "half of the events, then a TCP reset",
    "broken-stream": "an event that is no JSON (a body that is no JSON)",
    "error-event": "an error event in the middle of the stream",
    "no-usage": "no token counts",
    "no-done": "no [DONE]",
    "reasoning-only": "reasoning text without an answer",
    "capped": "finish reason length",
    "empty": "no text",
    "tool-call": "a tool call for an answer",
    "die": "the process ends in the middle of the answer",
    "log-allocation": "an allocation line in the log during the answer",
}
_HALVING = {"hang-mid-stream", "close-early", "truncate", "reset", "broken-stream", "error-event", "die"}


def parse_settings(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evidence.capture.synthetic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="faults:\n" + "\n".join(f"  {name:18}{what}" for name, what in FAULTS.items()),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=0, help="0 lets the system choose; the ready line says which")
    add("--model", help="the one name that is served, others are refused with 404; without it any name is served")
    add("--seed", type=int, default=0)
    add("--sequence-cap", type=int, default=8)
    add("--answer-tokens", type=int, default=16, help="pieces of an uncapped answer")
    add("--tokens-per-chunk", type=int, default=1, help="tokens that usage counts for one piece")
    add("--prefill-ms", type=float, default=5.0)
    add("--token-ms", type=float, default=1.0)
    add("--late-role", action="store_true", help="send the role chunk with the first text, not before prefill")
    add("--memory-bytes", type=int, default=16 << 30, help="size of the pretended device")
    add("--weights-bytes", type=int, default=2 << 30)
    add("--context-tokens", type=int, default=4096)
    add("--kv-bytes-per-token", type=int, default=131072)
    add("--memory-fraction", type=float, help="share of the device taken, whatever is needed")
    add("--fault", default="none", help="see below")
    add("--fault-from", type=int, default=1, metavar="N")
    add("--fault-until", type=int, default=sys.maxsize, metavar="N")
    add("--die-after", type=int, metavar="N", help="end the process once N generations have ended")
    add("--start-delay", type=float, default=0.0, metavar="SECONDS", help="answer 503 so long: loading")
    add("--never-ready", action="store_true", help="/health says 200 and no generation is ever answered")
    add("--wrong-token-ids", action="store_true", help="/tokenize tells ids that are off by one")
    add("--memory-not-falling", action="store_true", help="the memory shown follows no setting")
    add("--emission-log", type=Path, metavar="FILE", help="a JSON line for each event written: id, due and written ns")
    settings = parser.parse_args(arguments)
    if settings.sequence_cap < 1 or settings.answer_tokens < 1 or settings.tokens_per_chunk < 1:
        parser.error("--sequence-cap, --answer-tokens and --tokens-per-chunk are at least 1")
    if settings.memory_fraction is not None and not 0 < settings.memory_fraction <= 1:
        parser.error(f"--memory-fraction is {settings.memory_fraction}, expected more than 0 and at most 1")
    if not is_fault(settings.fault):
        parser.error(f"--fault is {settings.fault}, expected one of {', '.join(FAULTS)}")
    return settings


def is_fault(name: object) -> bool:
    return isinstance(name, str) and (name in FAULTS or (name.startswith("status-") and name[7:].isdigit()))


class Places:
    """At most `cap` at once; who waits is served in order of arrival."""

    def __init__(self, cap: int) -> None:
        self.cap, self.running = cap, 0
        self.queue: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        if self.running < self.cap:
            self.running += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self.queue:
                self.queue.remove(turn)
            elif turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        while self.queue:
            turn = self.queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1


class Engine:
    """Settings and counters of one process."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.places = Places(settings.sequence_cap)
        self.started = time.monotonic()
        self.begun = self.finished = self.tokens = 0
        self.emissions: TextIO | None = settings.emission_log.open("a") if settings.emission_log else None

    def is_loading(self) -> bool:
        return time.monotonic() - self.started < float(self.settings.start_delay)

    def measure_memory(self) -> dict[str, int]:
        """Bytes of the pretended device: used, total, and what the use is made of."""
        s = self.settings
        cache = s.sequence_cap * s.context_tokens * s.kv_bytes_per_token
        used = s.weights_bytes + cache
        if s.memory_fraction is not None:
            used = int(s.memory_bytes * s.memory_fraction)
        if s.memory_not_falling:
            used = s.memory_bytes * 9 // 10
        return {"usedBytes": used, "totalBytes": s.memory_bytes, "weightsBytes": s.weights_bytes, "kvBytes": cache}

    def choose_fault(self, request: dict[str, Any], headers: dict[str, str]) -> str:
        own = request.get("synthetic")
        asked = headers.get("x-synthetic-fault") or (own.get("fault") if isinstance(own, dict) else None)
        if is_fault(asked):
            return str(asked)
        s = self.settings
        return str(s.fault) if s.fault_from <= self.begun <= s.fault_until else "none"

    def read_metrics(self) -> bytes:
        lines = {
            "synthetic:requests_running": self.places.running,
            "synthetic:requests_waiting": len(self.places.queue),
            "synthetic:requests_finished_total": self.finished,
            "synthetic:generation_tokens_total": self.tokens,
            "synthetic:memory_used_bytes": self.measure_memory()["usedBytes"],
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items()).encode()

    def end_generation(self) -> None:
        self.finished += 1
        if self.settings.die_after is not None and self.finished >= self.settings.die_after:
            asyncio.get_running_loop().call_later(0.005, os._exit, 9)


class Connection(asyncio.Protocol):
    """One client connection: requests one after the other, each answered by a task that ends with the connection."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.buffer = b""
        self.task: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, problem: Exception | None) -> None:
        if self.task:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.proceed()

    def proceed(self) -> None:
        """Begin the next request if it is here as a whole and none is being answered."""
        if (self.task and not self.task.done()) or self.transport.is_closing():
            return
        try:
            taken = take_request(self.buffer)
        except ValueError as problem:
            self.respond(400, answers.encode_error(400, str(problem)))
            self.transport.close()
            return
        if taken is None:
            return
        method, path, headers, body, self.buffer = taken
        self.task = asyncio.get_running_loop().create_task(self.answer(method, path, headers, body))
        self.task.add_done_callback(self.end_task)

    def end_task(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            if problem := task.exception():
                print(f"synthetic: {problem!r}", file=sys.stderr, flush=True)
                self.transport.abort()
            self.proceed()

    def respond(self, status: int, body: bytes, kind: str = "application/json") -> None:
        head = f"HTTP/1.1 {status} {'OK' if status == 200 else 'Synthetic'}\r\n"
        extra = "retry-after: 1\r\n" if status == 503 else ""
        head += f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
        self.transport.write(head.encode() + body)

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        engine, settings = self.engine, self.engine.settings
        if engine.is_loading():
            self.respond(503, answers.encode_error(503, "loading the model"))
        elif method == "POST":
            try:
                request = json.loads(body)
                if not isinstance(request, dict):
                    raise ValueError("not an object")
            except ValueError as problem:
                self.respond(400, answers.encode_error(400, f"request body: {problem}"))
                return
            if path in ("/v1/chat/completions", "/v1/completions"):
                await self.generate(request, headers, body, chat=path.startswith("/v1/chat"))
            elif path == "/v1/embeddings":
                self.embed(request)
            elif path == "/tokenize":
                ids = answers.number_tokens(answers.render_prompt(request), int(settings.wrong_token_ids))
                self.respond(200, answers.encode({"count": len(ids), "tokens": ids, "max_model_len": 4096}))
            else:
                self.respond(404, answers.encode_error(404, f"no route {path}"))
        elif path == "/metrics":
            self.respond(200, engine.read_metrics(), "text/plain; version=0.0.4")
        else:
            entry = {
                "id": settings.model or NAME,
                "object": "model",
                "created": answers.CREATED,
                "owned_by": "synthetic",
            }
            pages: dict[str, Any] = {
                "/health": {"status": "ok"},
                "/version": {"version": VERSION},
                "/v1/models": {"object": "list", "data": [entry]},
                "/synthetic/memory": engine.measure_memory(),
            }
            known = path in pages
            self.respond(
                200 if known else 404, answers.encode(pages.get(path)) if known else answers.encode_error(404, path)
            )

    def embed(self, request: dict[str, Any]) -> None:
        value = request.get("input")
        texts = [str(text) for text in value] if isinstance(value, list) else [str(value)]
        seed = self.engine.settings.seed
        data = [
            {"object": "embedding", "index": place, "embedding": answers.embed(text, seed)}
            for place, text in enumerate(texts)
        ]
        count = sum(len(answers.split_tokens(text)) for text in texts)
        usage = {"prompt_tokens": count, "total_tokens": count}
        model = str(request.get("model") or self.engine.settings.model or NAME)
        self.respond(200, answers.encode({"object": "list", "data": data, "model": model, "usage": usage}))

    async def generate(self, request: dict[str, Any], headers: dict[str, str], body: bytes, chat: bool) -> None:
        engine, settings = self.engine, self.engine.settings
        engine.begun += 1
        fault = engine.choose_fault(request, headers)
        if settings.never_ready or fault == "hang-before-head":
            await asyncio.Event().wait()
        model = str(request.get("model") or settings.model or NAME)
        if settings.model and model != settings.model:
            self.respond(404, answers.encode_error(404, f"the model {model} does not exist"))
            return
        if fault.startswith("status-"):
            self.respond(int(fault[7:]), answers.encode_error(int(fault[7:]), "a fault that was ordered"))
            return
        answer = answers.compose_answer(
            request, body, request_id=headers.get("x-request-id") or str(engine.begun), model=model,
            seed=settings.seed, length=settings.answer_tokens, tokens_per_piece=settings.tokens_per_chunk,
            chat=chat, fault=fault,
        )  # fmt: skip
        await engine.places.take()
        try:
            writer = Writer(self.transport, engine, headers.get("x-request-id", ""))
            await (self.stream if request.get("stream") is True else self.tell)(writer, request, answer, fault)
            engine.tokens += answer.usage["completion_tokens"]
        finally:
            engine.places.release()
            engine.end_generation()

    async def tell(self, writer: "Writer", request: dict[str, Any], answer: answers.Answer, fault: str) -> None:
        settings = self.engine.settings
        await writer.wait(settings.prefill_ms + settings.token_ms * max(0, len(answer.pieces) - 1))
        if fault == "log-allocation":
            print("synthetic: allocation of 1 block", file=sys.stderr, flush=True)
        body = b'{"choices": [broken' if fault == "broken-stream" else answer.whole(usage=fault != "no-usage")
        if fault == "error-event":
            self.respond(500, answers.encode_error(500, "a fault that was ordered"))
        elif fault in _HALVING - {"broken-stream"}:
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body[: len(body) // 2])
            await self.break_off("truncate" if fault == "close-early" else fault)
        else:
            self.respond(200, body)

    async def stream(self, writer: "Writer", request: dict[str, Any], answer: answers.Answer, fault: str) -> None:
        settings = self.engine.settings
        writer.begin()
        if answer.chat and not settings.late_role:
            writer.write("role", answer.role_event())
        half = len(answer.pieces) // 2
        for place, event in enumerate(answer.piece_events()):
            if place == half and fault in _HALVING:
                if fault == "broken-stream":
                    writer.write("broken", b'data: {"choices": [broken\n\n')
                elif fault == "error-event":
                    writer.write(
                        "error", b"event: error\n" + answers.encode_event(answers.encode_error(500, "ordered"))
                    )
                    break
                else:
                    await self.break_off(fault)
                    return
            if place == half and fault == "log-allocation":
                print("synthetic: allocation of 1 block", file=sys.stderr, flush=True)
            await writer.wait(settings.prefill_ms + settings.token_ms * place)
            if place == 0 and answer.chat and settings.late_role:
                event = answer.role_event() + event
            writer.write("text", event)
        else:
            writer.write("finish", answer.finish_event())
            options = request.get("stream_options")
            if isinstance(options, dict) and options.get("include_usage") is True and fault != "no-usage":
                writer.write("usage", answer.usage_event())
            if fault != "no-done":
                writer.write("done", answers.DONE)
        writer.end()

    async def break_off(self, fault: str) -> None:
        """The end of an answer that was ordered to fail in the middle."""
        if fault == "die":
            os._exit(9)
        if fault == "hang-mid-stream":
            await asyncio.Event().wait()
        if fault == "close-early":
            self.transport.write(b"0\r\n\r\n")
        if fault == "reset":
            await asyncio.sleep(0.005)  # a reset overtakes bytes that were not read yet
            held: socket.socket = self.transport.get_extra_info("socket")
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        self.transport.close()


class Writer:
    """Writes the chunks of one stream at their times, which count from the moment the generation got its place."""

    def __init__(self, transport: asyncio.Transport, engine: Engine, request_id: str) -> None:
        self.transport, self.engine, self.request_id = transport, engine, request_id
        self.start = self.due = time.monotonic()

    async def wait(self, milliseconds: float) -> None:
        self.due = self.start + milliseconds / 1000
        if (left := self.due - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def begin(self) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )

    def write(self, kind: str, event: bytes) -> None:
        self.transport.write(b"%x\r\n%s\r\n" % (len(event), event))
        if self.engine.emissions:
            line = {"id": self.request_id, "event": kind, "due": round(self.due * 1e9), "written": time.monotonic_ns()}
            print(json.dumps(line), file=self.engine.emissions, flush=True)

    def end(self) -> None:
        self.transport.write(b"0\r\n\r\n")


def take_request(buffer: bytes) -> tuple[str, str, dict[str, str], bytes, bytes] | None:
    """Cut one whole request off: method, path, headers (lower case), body, rest; None until it is here as a whole."""
    head, separator, rest = buffer.partition(b"\r\n\r\n")
    if not separator:
        if len(buffer) > 65536:
            raise ValueError("the head of the request is over 65536 bytes")
        return None
    first, *fields = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ValueError("not an HTTP/1 request line")
    headers = {}
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon:
            raise ValueError("a header line without a colon")
        headers[name.lower()] = value.strip()
    path = words[1].partition("?")[0]
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = b""
        while True:
            size_line, separator, rest = rest.partition(b"\r\n")
            if not separator:
                return None
            size = int(size_line.partition(b";")[0], 16)
            if len(rest) < size + 2:
                return None
            body, rest = body + rest[:size], rest[size + 2 :]
            if size == 0:
                return words[0], path, headers, body, rest
    size = int(headers.get("content-length", "0"))
    if len(rest) < size:
        return None
    return words[0], path, headers, rest[:size], rest[size:]


async def serve(settings: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    engine = Engine(settings)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        server = await loop.create_server(lambda: Connection(engine), settings.host, settings.port, backlog=1024)
    except OSError as problem:
        sys.exit(f"error: {settings.host}:{settings.port}: {problem.strerror}")
    host, port = server.sockets[0].getsockname()[:2]
    print(f"ready {host}:{port}", flush=True)
    await ended.wait()
    server.close()


def main(arguments: list[str] | None = None) -> None:
    settings = parse_settings(arguments)
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    with contextlib.suppress(KeyboardInterrupt):
        loop.run_until_complete(serve(settings))
    os._exit(0)  # open streams end with the process, without a trace of cancelled tasks


if __name__ == "__main__":
    main()
