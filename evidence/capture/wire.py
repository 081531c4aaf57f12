"""One request over one socket of our own, timed as close to the wire as a program can be.

The clock starts just before `send` of the first byte and stops at the kernel's stamp of the last segment
(`arrival`). Nothing of an HTTP library stands between: a request is one prepared piece of bytes, a response
goes to `framing`. Nothing is retried, redirected or decompressed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from os import strerror
from time import monotonic_ns
from typing import Literal

from evidence.capture.arrival import request_stamps
from evidence.capture.framing import FramingError, Response
from evidence.capture.request import Target
from evidence.capture.sockets import Watch

Transport = Literal["complete", "timeout", "closed-early", "failed"]
Address = tuple[socket.AddressFamily, tuple[object, ...]]


@lru_cache(maxsize=64)
def _numeric(host: str, port: int) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if address.version == 4:
        return socket.AF_INET, (str(address), port)
    return socket.AF_INET6, (str(address), port, 0, 0)


async def resolve(target: Target) -> list[Address]:
    """Return the addresses of a target, a numeric one without asking anybody. Raises OSError."""
    numeric = _numeric(target.host, target.port)
    if numeric is not None:
        return [numeric]
    found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _kind, _protocol, _name, address in found]


async def connect(addresses: list[Address], timeout_seconds: float) -> socket.socket:
    """Connect to the first address that answers. Raises OSError (TimeoutError after `timeout_seconds`)."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    problem: OSError = OSError(errno.EADDRNOTAVAIL, "no address")
    for family, address in addresses:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request_stamps(connection)
            code = connection.connect_ex(address)
            if code == errno.EINPROGRESS:
                # On this machine the handshake is over by now; asking again is cheaper than waiting.
                code = connection.connect_ex(address)
            if code in (errno.EINPROGRESS, errno.EALREADY):
                await _writable(loop, connection, deadline)
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code not in (0, errno.EISCONN):
                raise OSError(code, strerror(code))
        except OSError as error:
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise problem


async def _writable(loop: asyncio.AbstractEventLoop, connection: socket.socket, deadline: float) -> None:
    """Wait until the socket can be written to; raises TimeoutError (an OSError) at `deadline`."""
    ready: asyncio.Future[bool] = loop.create_future()

    def settle(writable: bool) -> None:
        if not ready.done():
            ready.set_result(writable)

    loop.add_writer(connection.fileno(), settle, True)
    timer = loop.call_at(deadline, settle, False)
    try:
        if not await ready:
            raise TimeoutError(errno.ETIMEDOUT, "no connection within the time-out")
    finally:
        timer.cancel()
        loop.remove_writer(connection.fileno())


@dataclass
class Call:
    """One exchange over a connected socket, and all that is known of it at any moment.

    `on_body(data, at)` gets each read's body bytes with their arrival. Times are monotonic nanoseconds:
    `started_ns` just before the first byte left, `last_ns` the last arrival, `ended_ns` the last byte of a
    complete response, or the failure. `kernel` is False once any bytes came without a kernel stamp.
    """

    connection: socket.socket
    request: bytes
    timeout_ns: int
    watch: Watch
    response: Response
    on_body: Callable[[bytes, int], None]
    started_ns: int = 0
    last_ns: int = 0
    ended_ns: int = 0
    kernel: bool = True
    transport: Transport | None = None
    error: str | None = None
    _sent: int = 0
    _writing: bool = False
    _over: asyncio.Future[None] = field(init=False)
    _timer: asyncio.TimerHandle = field(init=False)

    def start(self) -> None:
        """Start the clock and send as much as the socket takes."""
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        self.watch.add(self.connection, self._read)
        self._timer = loop.call_later(self.timeout_ns / 1e9, self._expire)
        self.started_ns = self.last_ns = monotonic_ns()
        self._send()
        if self._sent < len(self.request) and self.transport is None:
            loop.add_writer(self.connection.fileno(), self._send)
            self._writing = True

    async def wait(self) -> None:
        """Read until the end, however it ends: afterwards `transport` says how.

        Cancelled, it ends the exchange with what had arrived and lets the cancellation pass.
        """
        try:
            await self._over
        except asyncio.CancelledError:
            self._drain()
            self._break("cancelled before its end", monotonic_ns())
            raise
        finally:
            self.stop()

    def stop(self) -> None:
        """Let go of the loop; the socket stays the caller's."""
        self._timer.cancel()
        self.watch.remove(self.connection)
        if self._writing:
            asyncio.get_running_loop().remove_writer(self.connection.fileno())
            self._writing = False

    def _send(self) -> None:
        try:
            self._sent += self.connection.send(memoryview(self.request)[self._sent :] if self._sent else self.request)
        except BlockingIOError:
            return
        except OSError as error:
            # The server may have answered before it stopped listening: what it said still counts.
            self._drain()
            self._break(f"while sending: {describe(error)}", monotonic_ns())
        else:
            if self._sent < len(self.request):
                return
        if self._writing:
            asyncio.get_running_loop().remove_writer(self.connection.fileno())
            self._writing = False

    def _read(self) -> bool:
        """Read once (one wake-up takes what is there, so that others get their turn); False when nothing came."""
        if self.transport is not None:
            return False
        try:
            data, at, kernel = self.watch.receiver.read(self.connection)
        except BlockingIOError:
            return False
        except OSError as error:
            self._break(describe(error), self.watch.receiver.bridge.now())
            return False
        if at > self.started_ns + self.timeout_ns:
            self._time_out()
        elif data:
            # Segments may overtake each other: bytes are there for a reader only when all before them are.
            self.last_ns = at = max(at, self.last_ns)
            self.kernel = self.kernel and kernel
            self._take(data, at)
        elif self.response.status is None:
            self._break("the server closed before a response head", at)
        elif self.response.until_close:
            self._end("complete", None, self.last_ns)
        else:
            self._break("the server closed before the end of the response", at)
        return bool(data)

    def _take(self, data: bytes, at: int) -> None:
        known = len(self.response.body)
        try:
            brought = self.response.feed(data)
        except FramingError as error:
            if len(self.response.body) > known:
                self.on_body(bytes(self.response.body[known:]), at)
            self._break(str(error), at)
            return
        if brought:
            self.on_body(brought, at)
        if self.response.complete:
            self._end("complete", "bytes followed the end of the response" if self.response.excess else None, at)

    def _drain(self) -> None:
        """Take what the kernel already holds: it arrived, whether or not the loop came to it in time."""
        while self._read():
            pass

    def _expire(self) -> None:
        self._drain()
        self._time_out()

    def _time_out(self) -> None:
        self._end("timeout", f"no end within {self.timeout_ns / 1e9:g} s", monotonic_ns())

    def _break(self, why: str, at: int) -> None:
        self._end("failed" if self.response.status is None else "closed-early", why, at)

    def _end(self, transport: Transport, why: str | None, at: int) -> None:
        if self.transport is None:
            self.transport, self.error, self.ended_ns = transport, why, max(at, self.last_ns)
            if not self._over.done():
                self._over.set_result(None)

    def reusable(self) -> bool:
        """True when the connection may carry another request: a framed end, nothing after it, all sent."""
        return (
            self.transport == "complete"
            and self.response.keep_alive
            and not self.response.excess
            and self._sent >= len(self.request)
            and is_quiet(self.connection)
        )


def is_quiet(connection: socket.socket) -> bool:
    """True while an idle connection is open and holds no bytes that nobody asked for."""
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def describe(error: OSError) -> str:
    """Say what went wrong on a socket, the same on every machine."""
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return f"{name.lower()}: {(error.strerror or str(error)).lower()}"


def close(connection: socket.socket) -> None:
    """Close without a complaint."""
    with contextlib.suppress(OSError):
        connection.close()
