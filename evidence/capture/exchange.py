"""One plain HTTP exchange at a time, outside every measurement: readiness, controls, snapshots."""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

LIMIT = 64 << 20


class ExchangeFailed(Exception):
    """There is no whole answer: the text says why."""


@dataclass(frozen=True)
class Answer:
    """A whole response: status, header fields (lower case), body bytes as they came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def exchange(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float,
) -> Answer:
    """Send one request on a connection of its own. Raises ExchangeFailed, after `seconds` at the latest."""
    try:
        return await asyncio.wait_for(_exchange(url, method, body, headers or {}), seconds)
    except asyncio.TimeoutError:
        raise ExchangeFailed(f"no whole answer within {seconds:.1f} s") from None
    except OSError as problem:
        raise ExchangeFailed(os.strerror(problem.errno).lower() if problem.errno else str(problem)) from None
    except h11.ProtocolError as problem:
        raise ExchangeFailed(str(problem) or type(problem).__name__) from None


async def _exchange(url: str, method: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    parts = urlsplit(url)
    target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
    fields = [("host", parts.netloc), ("connection", "close"), ("accept", "*/*"), *headers.items()]
    if body is not None:
        fields += [("content-type", "application/json"), ("content-length", str(len(body)))]
    reader, writer = await asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port or 80)
    try:
        state = h11.Connection(our_role=h11.CLIENT)
        writer.write(state.send(h11.Request(method=method, target=target, headers=fields)) or b"")
        writer.write(state.send(h11.Data(data=body or b"")) or b"")
        writer.write(state.send(h11.EndOfMessage()) or b"")
        return await _read_answer(reader, state)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _read_answer(reader: asyncio.StreamReader, state: h11.Connection) -> Answer:
    status, fields, received = 0, {}, bytearray()
    while True:
        event = state.next_event()
        if event is h11.NEED_DATA:
            state.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Response):
            status = event.status_code
            fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            received += event.data
            if len(received) > LIMIT:
                raise h11.RemoteProtocolError(f"the answer is over {LIMIT} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return Answer(status, fields, bytes(received))
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the connection closed before an answer")
