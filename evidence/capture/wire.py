"""One request over one socket of our own, timed as close to the wire as a program can be.

The clock starts just before `send` of the first byte and stops at the kernel's stamp of the last segment
(`arrival`). Nothing of an HTTP library stands between: a request is one prepared piece of bytes, a response
goes to `framing`. Nothing is retried, redirected or decompressed. A call never waits: its owner (`batch`) tells it
when its socket can be read or written, and when its time is over.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable, Sequence
from os import strerror
from time import monotonic_ns
from typing import Literal

from evidence.capture import lateness
from evidence.capture.arrival import READ_BYTES, Ancillary, WallBridge, date_read, read_once, request_stamps
from evidence.capture.connections import Address, describe, is_quiet
from evidence.capture.endings import Manners, await_many, has_ended
from evidence.capture.framing import FramingError, Response

Transport = Literal["complete", "timeout", "closed-early", "failed"]
HELD_MOST = 64
NONBLOCK: int = getattr(socket, "SOCK_NONBLOCK", 0)
ONE_SEGMENT = 1200
"""Bytes that fit one segment anywhere: the end of such a request waits for no acknowledgement of its beginning."""


class Call:
    """One exchange, from the connection on, and all that is known of it at any moment.

    `on_body(data, at)` gets each read's body bytes with their arrival, and says whether from here on only the end has
    a time of its own. `settles(before, data)` says that of one read behind another, unread: with it, what comes is dated
    at once but looked into when there may be a first text in it, or the end. Where the server `rests` names closes at
    its end, what follows the first text lies until it is much or whole. `proves` is told of a whole response that was
    read to its end: whether the server had closed, so long after the last byte.

    What was read is held with what the kernel said of it, and dated when it is looked into. `gone_ns` is when a call was
    read to its end by `gather`: it is over then, but `transport` is None until `conclude`.

    Times are monotonic nanoseconds: `read_ns` the last read, `started_ns` just
    before the first byte left (0 until then), `connected_ns` when the connection stood, `last_ns` the last arrival,
    `ended_ns` the last byte of a complete response, or the failure. `kernel` is False once any bytes came without a
    kernel stamp. `transport` is None while the call is open and then says how it ended, `error` why.
    """

    __slots__ = (
        "_addresses", "_before", "_bridge", "_dates", "_held", "_proves", "_rests", "_sent", "_settles", "_sifted",
        "began_ns", "connected_ns", "connection", "due_ns", "ended_ns", "error", "gone_ns", "kernel", "last_ns", "on_body",
        "read_ns", "request", "response", "settled", "started_ns", "timeout_ns", "transport", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        request: bytes,
        timeout_ns: int,
        bridge: WallBridge,
        on_body: Callable[[bytes, int], bool],
        *,
        settles: Callable[[bytes, bytes], bool | None] | None = None,
        rests: Manners | None = None,
        proves: Manners | None = None,
    ) -> None:
        self.request, self.timeout_ns, self.on_body = request, timeout_ns, on_body
        self.waiting, self.settled, self.kernel = False, False, True
        self._settles, self._rests, self._proves = settles, rests, proves
        self._held: list[tuple[bytes, Ancillary, int, bool]] = []
        self._dates: list[tuple[int, bool]] = []
        self._before, self._sifted = b"", 0
        self.response = Response()
        self.connection: socket.socket | None = None
        self.began_ns = monotonic_ns()
        self.due_ns = self.began_ns + timeout_ns
        self.started_ns = self.connected_ns = self.last_ns = self.ended_ns = self.gone_ns = self.read_ns = 0
        self.transport: Transport | None = None
        self.error: str | None = None
        self._bridge, self._sent = bridge, 0
        self._addresses: list[Address] = []

    def connect(self, addresses: Sequence[Address] | OSError) -> bool:
        """Begin to connect to the first address that answers; True when the connection stands already.

        False means that it will be writable once it stands, or that it failed: then `transport` says so.
        """
        if isinstance(addresses, OSError):
            return self._fail_connecting(addresses)
        self._addresses = list(addresses)
        return self._connect_next(OSError(errno.EADDRNOTAVAIL, "no address"))

    def adopt(self, connection: socket.socket) -> None:
        """Use a connection that stands already."""
        self.connection = connection
        self._send_at_once()
        self.connected_ns = monotonic_ns()

    def _send_at_once(self) -> None:
        if self.connection is not None and len(self.request) > ONE_SEGMENT:
            with contextlib.suppress(OSError):
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _connect_next(self, problem: OSError) -> bool:
        while self._addresses:
            family, address = self._addresses.pop(0)
            try:
                connection = self.connection = socket.socket(family, socket.SOCK_STREAM | NONBLOCK)
                if not NONBLOCK:
                    connection.setblocking(False)
                self._send_at_once()
                request_stamps(connection)
                code = connection.connect_ex(address)
                if code == errno.EINPROGRESS:
                    # On this machine the handshake is over by now; asking again is cheaper than waiting.
                    code = connection.connect_ex(address)
                if code in (0, errno.EISCONN):
                    self.connected_ns = monotonic_ns()
                    return True
                if code in (errno.EINPROGRESS, errno.EALREADY):
                    return False
                problem = OSError(code, strerror(code))
            except OSError as error:
                problem = error
            self.close()
        return self._fail_connecting(problem)

    def _fail_connecting(self, problem: OSError) -> bool:
        self._end("failed", f"connecting: {describe(problem)}", monotonic_ns())
        return False

    def start(self) -> None:
        """Start the clock and send as much as the socket takes."""
        self.started_ns = self.last_ns = monotonic_ns()
        self.due_ns = self.started_ns + self.timeout_ns
        self._send()

    @property
    def unsent(self) -> bool:
        """Whether the call waits for its socket to become writable."""
        return self.transport is None and self._sent < len(self.request)

    def write(self) -> bool:
        """Go on where the socket has become writable; True when a connection has just come to stand."""
        if self.started_ns:
            self._send()
            return False
        assert self.connection is not None
        code = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.close()
            return self._connect_next(OSError(code, strerror(code)))
        self.connected_ns = monotonic_ns()
        return True

    def _send(self) -> None:
        assert self.connection is not None
        try:
            self._sent += self.connection.send(memoryview(self.request)[self._sent :] if self._sent else self.request)
        except BlockingIOError:
            return
        except OSError as error:
            # The server may have answered before it stopped listening: what it said still counts.
            self.drain()
            self._break(f"while sending: {describe(error)}", monotonic_ns())

    def read(self, *, hold: bool = False) -> bool:
        """Read once (one wake-up takes what is there, so that others get their turn); False when nothing came.

        With `hold` what came is dated, and looked into by `look_into` or when the connection ends.
        """
        if self.transport is not None or self.connection is None:
            return False
        try:
            data, ancillary, now = read_once(self.connection)
        except BlockingIOError:
            return False
        except OSError as error:
            self._break(describe(error), monotonic_ns())
            return False
        self.read_ns = now
        if now > self.due_ns and date_read(self._bridge, ancillary, now)[0] > self.due_ns:
            self._time_out()
        elif data:
            self._held.append((data, ancillary, now, self.settled))
            if not hold:
                self.look_into()
        else:
            self._close_at(now)
        return bool(data)

    def gather(self) -> bool:
        """The server has closed: read what is left. True when it can be looked into at leisure, by `conclude`."""
        if self._rests is None or not self._rests.closes:
            return False
        while self.read(hold=True):
            data, _ancillary, now, _settled = self._held[-1]
            if len(data) < READ_BYTES:
                self.gone_ns = now
                return True
        return False

    def conclude(self) -> None:
        """Look into what was gathered, if anything was."""
        if self.gone_ns:
            self._close_at(self.gone_ns)

    @property
    def over_ns(self) -> int:
        """When the call was over, be it concluded or not."""
        if self.transport is not None or not self._held:
            return self.ended_ns
        self._date_held()
        return self._dates[-1][0]

    def _close_at(self, at: int) -> None:
        """The server has closed, at `at`."""
        self._take_held()
        if self.response.status is None:
            self._break("the server closed before a response head", at)
        elif self.response.until_close:
            self._end("complete", None, self.last_ns)
        else:
            self._break("the server closed before the end of the response", at)

    def look_into(self) -> None:
        """Look into what was read, unless nothing of it has to be known yet."""
        if not self._held:
            return
        rests = self._rests is not None and self._rests.closes
        if self.waiting or self._settles is None or not self._sift(rests, self._settles):
            ended, asked_ns = False, 0
            if self._proves is not None and self.connection is not None:
                ended, asked_ns = has_ended(self.connection), monotonic_ns()
            self._take_held()
            if self.transport is not None:
                if self.transport == "complete" and self._proves is not None and not self.waiting:
                    self._proves.note(ended, asked_ns - self.ended_ns)
                return
        if rests and self.settled and not self.waiting and self.connection is not None:
            self.waiting = await_many(self.connection)

    def _sift(self, rests: bool, settles: Callable[[bytes, bytes], bool | None]) -> bool:
        """Whether what is held holds nothing that has to be known now: neither the end nor, in doubt, the first text.

        The end of a response shows by itself where the server closes, and else by the last bytes of its framing.
        """
        held = self._held
        if len(held) >= HELD_MOST or not (rests or self.response.chunked):
            return False
        for data, *_rest in held[self._sifted :]:
            if not rests and (len(data) < 4 or data.endswith(b"\r\n\r\n")):
                return False
            if not self.settled:
                found = settles(self._before, data)
                if found is None:
                    return False
                self.settled = found
            self._before = data
        self._sifted = len(held)
        return True

    def _date_held(self) -> None:
        """Date what is held, each once: asked again, the bridge between the clocks would answer some nanoseconds apart."""
        latest = self._dates[-1][0] if self._dates else self.last_ns
        for _data, ancillary, now, _settled in self._held[len(self._dates) :]:
            at, kernel = date_read(self._bridge, ancillary, now)
            # Segments may overtake each other: bytes are there for a reader only when all before them are.
            latest = max(at, latest)
            self._dates.append((latest, kernel))

    def _take_held(self) -> None:
        self._date_held()
        held, self._held, self._sifted = self._held, [], 0
        dates, self._dates = self._dates, []
        if held:
            self._before = held[-1][0]
        for (data, _ancillary, now, settled), (at, kernel) in zip(held, dates, strict=True):
            if self.transport is None:
                self.last_ns = at
                self.kernel = self.kernel and kernel
                if kernel and not settled:
                    lateness.note_read(now - at)
                self._take(data, at)

    def _take(self, data: bytes, at: int) -> None:
        response = self.response
        known = len(response.body)
        try:
            brought = response.feed(data)
        except FramingError as error:
            if len(response.body) > known:
                self.on_body(bytes(response.body[known:]), at)
            self._break(str(error), at)
            return
        if brought and self.on_body(brought, at):
            self.settled = True
        if response.complete:
            self._end("complete", "bytes followed the end of the response" if response.excess else None, at)

    def drain(self) -> None:
        """Take what the kernel already holds: it arrived, whether or not its owner came to it in time."""
        while self.started_ns and self.read():
            pass

    def expire(self) -> None:
        """End the call because its time is over, with what had arrived until then."""
        self.drain()
        if self.started_ns:
            self._time_out()
        else:
            self._fail_connecting(TimeoutError(errno.ETIMEDOUT, "no connection within the time-out"))

    def cancel(self) -> None:
        """End the call because nobody wants it any more, with what had arrived until then."""
        self.drain()
        self._break("cancelled before its end", monotonic_ns())

    def look(self) -> None:
        """Look into what lies unread or was put off."""
        self.drain()
        self._take_held()

    @property
    def resting(self) -> bool:
        """Whether something lies unread or was put off, so that the end may have come unseen."""
        return self.waiting or bool(self._held)

    def _time_out(self) -> None:
        self._take_held()
        self._end("timeout", f"no end within {self.timeout_ns / 1e9:g} s", monotonic_ns())

    def _break(self, why: str, at: int) -> None:
        self._take_held()
        self._end("failed" if self.response.status is None else "closed-early", why, at)

    def _end(self, transport: Transport, why: str | None, at: int) -> None:
        if self.transport is None:
            self.transport, self.error, self.ended_ns = transport, why, max(at, self.last_ns)

    def reusable(self) -> bool:
        """True when the connection may carry another request: a framed end, nothing after it, all sent."""
        return (
            self.transport == "complete"
            and self.response.keep_alive
            and not self.response.excess
            and self._sent >= len(self.request)
            and self.connection is not None
            and is_quiet(self.connection)
        )

    def close(self) -> None:
        """Close the connection without a complaint."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()
