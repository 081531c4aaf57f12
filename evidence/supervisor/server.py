"""The supervisor's address: OpenAI routes passed on byte for byte, the listing, and a few ways to steer.

    POST /v1/...            to the engine of the body's `model`; responses pass as raw bytes, streams as they come
    GET  /v1/models         every declared model with state, process, reservation, pin; the device
    GET  /health            200
    GET  /admin/events      the supervisor's own account of loads, evictions, crashes, with free bytes
    POST /admin/load        {"model"}: begin to load; /admin/unload {"model"}: end its process and wait for the memory
    POST /admin/ballast     {"bytes"}: take bytes off the budget (a budget device alone)

Callers see 503 MODEL_LOADING with Retry-After while a model loads, 503 INSUFFICIENT_MEMORY with Retry-After when all
else is pinned or busy, 502 MODEL_LOAD_FAILED without Retry-After (`permanent` false) while a crashed or failed engine
cools down, 404 MODEL_NOT_FOUND. Every response ends its connection, so that a cut stream is seen as one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from pathlib import Path
from typing import Any

import httptools

from evidence.errors import EvidenceError
from evidence.supervisor.config import Config
from evidence.supervisor.device import BudgetDevice
from evidence.supervisor.fleet import Fleet, Member, Refusal

MAX_BODY, MAX_HEAD = 64 << 20, 64 << 10
DROPPED = {b"connection", b"content-length", b"transfer-encoding", b"expect", b"keep-alive"}
REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


class Request:
    """One request, read whole."""

    def __init__(self) -> None:
        self.target, self.fields, self.body, self.size = b"", list[tuple[bytes, bytes]](), list[bytes](), 0
        self.method, self.complete = b"", False
        self.parser = httptools.HttpRequestParser(self)

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.method = self.parser.get_method()

    def on_body(self, data: bytes) -> None:
        self.body.append(data)
        self.size += len(data)

    def on_message_complete(self) -> None:
        self.complete = True

    async def read(self, reader: asyncio.StreamReader) -> bool:
        """Read up to the message's end; False when the caller left before it. Raises Refusal."""
        taken = 0
        while not self.complete:
            data = await reader.read(65536)
            if not data:
                return False
            taken += len(data)
            try:
                self.parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                raise Refusal(400, "MALFORMED", "not an HTTP/1.1 request", permanent=True) from None
            if self.size > MAX_BODY or taken - self.size > MAX_HEAD + self.size:
                raise Refusal(413, "TOO_LARGE", "the request is too large", permanent=True)
        return True

    def json(self) -> dict[str, Any]:
        """The body as a JSON object. Raises Refusal."""
        try:
            value = json.loads(b"".join(self.body) or b"{}")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise Refusal(400, "MALFORMED", "the body is not a JSON object", permanent=True)
        return value


def render(status: int, body: bytes, retry_after: int | None = None) -> bytes:
    """A whole JSON response."""
    wait = f"retry-after: {retry_after}\r\n" if retry_after is not None else ""
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{wait}connection: close\r\n\r\n"
    return head.encode() + body


class Server:
    """One listening address before a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request, one response."""
        request = Request()
        try:
            if await request.read(reader):
                await self.answer(request, reader, writer)
        except Refusal as refusal:
            writer.write(render(refusal.status, refusal.body(), refusal.retry_after))
        except OSError:
            pass  # the caller is gone, and with it everybody to tell
        finally:
            with contextlib.suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Steer, list, or pass on."""
        path = request.target.split(b"?", 1)[0].decode("ascii", "replace")
        if request.method == b"GET":
            writer.write(render(200, json.dumps(self.show(path)).encode()))
        elif request.method == b"POST" and path.startswith("/admin/"):
            writer.write(render(*await self.steer(path, request.json())))
        elif request.method == b"POST" and path.startswith("/v1/"):
            member = self.fleet.admit(request.json().get("model"))
            member.open_requests += 1
            try:
                await self.pass_on(member, request, reader, writer)
            finally:
                member.open_requests -= 1
        else:
            raise Refusal(405, "METHOD", f"no {request.method.decode()} {path}", permanent=True)

    def show(self, path: str) -> dict[str, Any]:
        """What a GET shows. Raises Refusal."""
        if path == "/health":
            return {"status": "ok"}
        if path == "/v1/models":
            return self.fleet.describe()
        if path == "/admin/events":
            return {"events": self.fleet.events, "now": time.monotonic()}
        raise Refusal(404, "NOT_FOUND", f"no route {path}", permanent=True)

    async def steer(self, path: str, wanted: dict[str, Any]) -> tuple[int, bytes]:
        """Load, unload, ballast. Raises Refusal."""
        if path == "/admin/ballast":
            device, size = self.fleet.device, wanted.get("bytes")
            if not isinstance(device, BudgetDevice):
                raise Refusal(409, "NO_BUDGET", "this device's ballast must be real memory", permanent=True)
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= device.total_bytes:
                raise Refusal(400, "MALFORMED", "bytes must be an integer within the budget", permanent=True)
            device.ballast_bytes = size
            return 200, json.dumps({"ballast_bytes": size, "free_bytes": device.read_free()}).encode()
        member = self.fleet.find(wanted.get("model"))
        if path == "/admin/load":
            with contextlib.suppress(Refusal):
                self.fleet.admit(member.spec.name)
            return (200 if member.state == "loaded" else 202), json.dumps(
                {"model": member.spec.name, "state": member.state}
            ).encode()
        if path == "/admin/unload":
            if member.state != "loaded":
                raise Refusal(409, "NOT_LOADED", f"{member.spec.name} is {member.state}")
            await self.fleet.unload(member)
            return 200, json.dumps({"model": member.spec.name, "state": member.state}).encode()
        raise Refusal(404, "NOT_FOUND", f"no route {path}", permanent=True)

    async def pass_on(
        self, member: Member, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send the request to the engine and its raw response back as it comes. Raises Refusal before the first byte."""
        body = b"".join(request.body)
        kept = [field for field in request.fields if field[0].lower() not in DROPPED]
        kept += [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        lines = [b"%s %s HTTP/1.1" % (request.method, request.target), *(b"%s: %s" % field for field in kept)]
        lost = Refusal(502, "ENGINE_FAILED", f"the engine of {member.spec.name} gave no answer")
        try:
            up_reader, up_writer = await asyncio.open_connection(self.fleet.config.host, member.port)
        except OSError:
            raise lost from None
        gone = asyncio.ensure_future(reader.read(1))
        started = False
        try:
            up_writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            while True:
                chunk = asyncio.ensure_future(up_reader.read(65536))
                await asyncio.wait({chunk, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not chunk.done():  # the caller left: the engine is told by the closed connection
                    chunk.cancel()
                    return
                data = chunk.result()
                if not data:
                    break
                started = True
                writer.write(data)
                await writer.drain()
        except OSError:
            if started:
                writer.transport.abort()
                return
        finally:
            gone.cancel()
            up_writer.close()
        if not started:
            raise lost


async def listen(config: Config, fleet: Fleet) -> asyncio.Server:
    """A server that has its address and does not answer yet. Raises EvidenceError when the address cannot be had."""
    try:
        return await asyncio.start_server(Server(fleet).handle, config.host, config.port, start_serving=False)
    except OSError as error:
        raise EvidenceError(
            f"{config.host}:{config.port}: cannot be listened at ({error.strerror or error}), expected a free address",
            "choose another port in [server]; port = 0 lets the system choose",
        ) from None


async def serve(config: Config, logs: Path) -> None:
    """Listen until SIGTERM or SIGINT; prints `ready HOST:PORT` once the preloaded models answer."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    fleet = Fleet(config, logs)
    server = await listen(config, fleet)  # before any engine is started for an address that is taken
    try:
        loading = asyncio.ensure_future(fleet.preload())
        stopping = asyncio.ensure_future(ended.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
            await server.start_serving()
            host, port = server.sockets[0].getsockname()[:2]
            print(f"ready {host}:{port}", flush=True)
            await stopping
        loading.cancel()
    finally:
        server.close()
        await fleet.close()
