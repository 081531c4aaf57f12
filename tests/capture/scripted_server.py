"""A server that says what a test tells it to, byte for byte, over real sockets, and remembers when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic_ns
from typing import Any

from evidence.capture.load import Exchange, Plan

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
PLAIN = json.dumps({"model": "m", "messages": []}).encode()


class Talk:
    """One connection of a script: what was asked, and writes that note when they left."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.request = b""
        self.asked_ns = 0
        self.left_ns: list[int] = []

    async def read(self) -> bytes:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        self.request = head + await self.reader.readexactly(length)
        self.asked_ns = monotonic_ns()
        return self.request

    async def send(self, data: bytes, after: float = 0.0) -> None:
        if after:
            await asyncio.sleep(after)
        self.left_ns.append(monotonic_ns())
        self.writer.write(data)
        await self.writer.drain()

    async def stream(self, *events: bytes, after: float = 0.0) -> None:
        await self.send(framed(b"".join(events)), after)

    def reset(self) -> None:
        self.writer.transport.abort()


Script = Callable[[Talk], Awaitable[None]]


def framed(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


def event(value: object) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(finish: str | None = None, **said: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": said, "finish_reason": finish}]})


def usage(completion: object, prompt: object = 8) -> bytes:
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


DONE = event(b"[DONE]")
END = b"0\r\n\r\n"


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[tuple[str, list[Talk]]]:
    """Serve every connection by `script`; yields the URL and the talks so far."""
    talks: list[Talk] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = Talk(reader, writer)
        talks.append(talk)
        try:
            await talk.read()
            await script(talk)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions", talks
    finally:
        server.close()


class Journal:
    """A recorder in memory."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.samples: list[Exchange] = []
        self.offered: dict[str, int] = {}

    def offer(self, plan: Plan, intended_ns: int) -> None:
        self.offered[plan.offer] = monotonic_ns()
        self.lines.append(("offer", plan.offer))

    def sample(self, exchange: Exchange) -> None:
        self.samples.append(exchange)
        self.lines.append(("sample", exchange.offer))


def plan(url: str, number: int = 0, *, body: bytes = STREAM, timeout: float = 10.0, **more: Any) -> Plan:
    return Plan(f"r1-a-main-{number:03}", 1, "A", "main", "rr", None, url, body, timeout, **more)
