"""The HTTP of the synthetic engine: one connection, its requests, and answers written at their times."""

import asyncio
import json
import os
import socket
import struct
import sys
import time
from typing import Any

from evidence.capture import synthetic_answers as answers
from evidence.capture.synthetic_engine import NAME, VERSION, Engine

_HALVING = {"hang-mid-stream", "close-early", "truncate", "reset", "broken-stream", "error-event", "die"}


class Connection(asyncio.Protocol):
    """One client connection: requests one after the other, each answered by a task that ends with the connection."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.buffer = b""
        self.last = False
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
        self.last = headers.get("connection", "").lower() == "close"
        self.task = asyncio.get_running_loop().create_task(self.answer(method, path, headers, body))
        self.task.add_done_callback(self.end_task)

    def end_task(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            if problem := task.exception():
                print(f"synthetic: {problem!r}", file=sys.stderr, flush=True)
                self.transport.abort()
            if self.last:
                self.transport.close()
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
