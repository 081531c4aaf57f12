"""A server with known emission times: it streams chat chunks by a schedule and logs when each write left.

`python -m benchmarks.emission_server` prints `ready PORT` and ends with its standard input. The n-th request
gets the n-th schedule of a fixed seed, so every client meets the same ones. GET /truth answers with what
really happened, in monotonic nanoseconds of this machine, and forgets it; GET /case/NAME/... serves a case of
`benchmarks.emission_cases`. A schedule has EVENTS events with text behind the first, which decides what a request costs
a client that reads each; with 16 an answer is as long as a short real one. The arrival of a request is the kernel's stamp of its last segment; a write has
left just before its `send`. One process, one epoll, no HTTP library.
"""

from __future__ import annotations

import gc
import heapq
import json
import random
import select
import socket
import struct
import sys
import time
from typing import Any

from benchmarks.emission_cases import CASES, chunk, text_chunk

SEED = 20261130
EVENTS = 16
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nCache-Control: no-cache\r\n\r\n"
STAMP_OPTION = 35

Write = tuple[float, bytes, bool]  # seconds after arrival, bytes of the body, completes the first text?


def schedule(number: int) -> list[Write]:
    """The writes of request `number`: first text after 1 ms to 2 s, gaps of 1 to 50 ms, all shapes mixed in."""
    rng = random.Random(SEED + number)
    first = 0.001 * 2000 ** rng.random()
    role = chunk({"role": "assistant", "content": ""})
    writes: list[Write] = [(min(0.0005, first / 2), role, False)]
    shape = rng.choice(["plain", "split", "joined", "comment", "reasoning"])
    if shape == "comment":
        writes.append((first / 2, b": keep-alive\n\n", False))
    if shape == "reasoning":
        writes.append((first / 2, chunk({"reasoning_content": "hm"}), False))
    opening = text_chunk(f"n{number} ")
    at = first
    if shape == "split":
        writes += [(at - 0.0004, opening[:40], False), (at, opening[40:], True)]
    elif shape == "joined":
        writes.append((at, opening + text_chunk("and ") + text_chunk("more "), True))
    else:
        writes.append((at, opening, True))
    for index in range(EVENTS):
        at += rng.uniform(0.001, 0.050)
        writes.append((at, text_chunk(f"word{index} "), False))
    tail = chunk({}, finish="stop") + usage(EVENTS + 1) + b"data: [DONE]\n\n"
    writes.append((at + rng.uniform(0.001, 0.050), tail, False))
    return writes


def usage(tokens: int) -> bytes:
    """The last chunk, which has no choices."""
    counts = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": tokens + 8}
    body = {"id": "e", "object": "chat.completion.chunk", "model": "synthetic", "choices": [], "usage": counts}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def framed(body: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(body), body)


class Server:
    """Serves until its standard input ends."""

    def __init__(self) -> None:
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, STAMP_OPTION, 1)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1024)
        self.listener.setblocking(False)
        self.poll = select.epoll()
        self.poll.register(self.listener, select.EPOLLIN)
        self.poll.register(sys.stdin, select.EPOLLIN)
        self.connections: dict[int, tuple[socket.socket, bytearray]] = {}
        self.due: list[tuple[int, int, int, int]] = []
        self.plans: dict[int, dict[str, Any]] = {}
        self.truth: list[dict[str, Any]] = []
        self.number = self.open = self.most = 0
        self.offset = min(time.time_ns() - time.monotonic_ns() for _ in range(50))

    def run(self) -> None:
        """Serve."""
        gc.disable()
        print("ready", self.listener.getsockname()[1], flush=True)
        while True:
            wait = max(0.0, (self.due[0][0] - time.monotonic_ns()) / 1e9) if self.due else 1.0
            # A wait is rounded up to whole milliseconds. What counts is when a write left, not when it was due.
            for descriptor, _event in self.poll.poll(wait):
                if descriptor == self.listener.fileno():
                    self.accept()
                elif descriptor == sys.stdin.fileno():
                    return
                else:
                    self.read(descriptor)
            while self.due and self.due[0][0] <= time.monotonic_ns():
                _at, _order, descriptor, index = heapq.heappop(self.due)
                self.emit(descriptor, index)

    def accept(self) -> None:
        while True:
            try:
                connection, _address = self.listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, STAMP_OPTION, 1)
            self.connections[connection.fileno()] = (connection, bytearray())
            self.poll.register(connection, select.EPOLLIN)

    def read(self, descriptor: int) -> None:
        connection, held = self.connections[descriptor]
        try:
            data, ancillary, _flags, _address = connection.recvmsg(1 << 20, 64)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        now = time.monotonic_ns()
        if not data:
            self.drop(descriptor)
            return
        for _level, _kind, content in ancillary:
            seconds, nanoseconds = struct.unpack("qq", content)
            now = min(now, seconds * 10**9 + nanoseconds - self.offset)
        held += data
        head, found, body = bytes(held).partition(b"\r\n\r\n")
        if not found:
            return
        length = next(
            (int(v) for n, _, v in (x.partition(b":") for x in head.split(b"\r\n")) if n.lower() == b"content-length"),
            0,
        )
        if b"chunked" in head.lower() and not body.endswith(b"0\r\n\r\n"):
            return
        if len(body) < length:
            return
        held.clear()
        self.answer(descriptor, head, now)

    def answer(self, descriptor: int, head: bytes, arrival: int) -> None:
        connection, _held = self.connections[descriptor]
        method, path, _version = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        close = b"connection: close" in head.lower()
        if path.startswith("/case/"):
            writes, ending = CASES[path.split("/")[2]].writes()
            plan = {"writes": writes, "raw": True, "close": True, "number": None, "reset": ending == "reset"}
        elif method == "POST":
            number = self.number
            self.number += 1
            self.open += 1
            self.most = max(self.most, self.open)
            plan = {"writes": schedule(number), "raw": False, "close": close, "number": number, "reset": False}
        else:
            if path == "/truth":
                content = json.dumps({"most_open": self.most, "requests": self.truth}).encode()
                self.truth, self.most, self.number = [], 0, 0
            else:
                content = json.dumps({"object": "list", "data": [{"id": "synthetic", "object": "model"}]}).encode()
            connection.setblocking(True)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(content), content)
            )
            connection.setblocking(False)
            if close:
                self.drop(descriptor)
            return
        plan |= {"arrival": arrival, "first_event": None, "first_said": None, "first_text": None}
        self.plans[descriptor] = plan
        heapq.heappush(self.due, (arrival + int(plan["writes"][0][0] * 1e9), arrival, descriptor, 0))

    def emit(self, descriptor: int, index: int) -> None:
        plan = self.plans.get(descriptor)
        if plan is None:
            return
        connection = self.connections[descriptor][0]
        writes = plan["writes"]
        _at, body, completes = writes[index]
        last = index + 1 == len(writes)
        data = body if plan["raw"] else (HEAD if index == 0 else b"") + framed(body) + (b"0\r\n\r\n" if last else b"")
        left = time.monotonic_ns()
        try:
            connection.send(data)
        except OSError:
            self.drop(descriptor)
            return
        if index == 0:
            plan["first_event"] = left
        if completes:
            plan["first_text"] = left
        if plan["first_said"] is None and (completes or b'"reasoning_content"' in data):
            plan["first_said"] = left
        if not last:
            # Gaps count from the write before, so that a late server does not close them up.
            gap = int((writes[index + 1][0] - writes[index][0]) * 1e9)
            heapq.heappush(self.due, (left + gap, plan["arrival"], descriptor, index + 1))
            return
        self.plans.pop(descriptor)
        if plan["number"] is not None:
            self.open -= 1
            keys = ("number", "arrival", "first_event", "first_said", "first_text")
            self.truth.append({key: plan[key] for key in keys} | {"end": left})
        if plan["reset"]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if plan["close"]:
            self.drop(descriptor)

    def drop(self, descriptor: int) -> None:
        connection, _held = self.connections.pop(descriptor)
        plan = self.plans.pop(descriptor, None)
        if plan is not None and plan["number"] is not None:
            self.open -= 1
        self.poll.unregister(descriptor)
        connection.close()


if __name__ == "__main__":
    Server().run()
