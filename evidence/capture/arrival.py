"""When bytes arrived: kernel receive stamps, told on the monotonic clock.

Linux stamps each received segment (SO_TIMESTAMPNS) before any program runs, so a busy client does not
make a server look slow. The stamp is wall time. CLOCK_MONOTONIC and CLOCK_REALTIME are slewed alike and
differ by a constant until somebody sets the clock; `WallBridge` holds that constant between two bounds,
narrows them with every sample, and sees a step as a sample that fits no more. From then on it gives no
conversions, and the reader's own monotonic stamp stands in.

A read that takes several segments reports the stamp of the last of them: the bytes are never dated
earlier than they came.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Sequence
from time import monotonic_ns, sleep, time_ns

TIMESPEC = struct.Struct("@qq")
TIMESPEC_BYTES, unpack_timespec, SOL_SOCKET = TIMESPEC.size, TIMESPEC.unpack, socket.SOL_SOCKET
STAMP_OPTION = 35
"""SO_TIMESTAMPNS of Linux on 64-bit machines, where time_t has 64 bits; Python has no name for it."""
ANCILLARY_BYTES = socket.CMSG_SPACE(TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0
READ_BYTES = 64 * 1024
Ancillary = Sequence[tuple[int, int, bytes]]
TOLERANCE_NS = 1_000
"""Two clock reads may be rounded apart by a few nanoseconds; a step below a microsecond falsifies nothing."""


class WallBridge:
    """The offset of the wall clock to the monotonic clock, watched for steps.

    `stepped` is True for good once the wall clock was set while the bridge stood.
    """

    __slots__ = ("_high", "_low", "stepped")

    def __init__(self) -> None:
        self.stepped = False
        self._low, self._high = -(1 << 63), 1 << 63
        for _ in range(5):
            self.now()

    def now(self) -> int:
        """Return the monotonic time in nanoseconds, after checking the offset once more."""
        before = monotonic_ns()
        wall = time_ns()
        after = monotonic_ns()
        low, high = wall - after, wall - before
        if low > self._high + TOLERANCE_NS or high < self._low - TOLERANCE_NS:
            self.stepped = True
        elif not self.stepped:
            if low > self._low:
                self._low = low
            if high < self._high:
                self._high = high
        return before

    def monotonic(self, stamp: int, now: int) -> int | None:
        """Turn a kernel stamp (wall nanoseconds) into monotonic nanoseconds; None when it cannot be trusted.

        `now` is what `now()` returned just after the read. A stamp from the future was made before a
        step back that has ended again, and is refused too.
        """
        if self.stepped:
            return None
        at = stamp - ((self._low + self._high) >> 1)
        return at if at <= now + TOLERANCE_NS else None


def request_stamps(connection: socket.socket) -> bool:
    """Ask the kernel to stamp what `connection` receives; False where it cannot."""
    if not ANCILLARY_BYTES or not hasattr(connection, "recvmsg"):
        return False
    try:
        connection.setsockopt(socket.SOL_SOCKET, STAMP_OPTION, 1)
    except OSError:
        return False
    return True


def read_once(connection: socket.socket) -> tuple[bytes, Ancillary, int]:
    """Read at most READ_BYTES: bytes, what the kernel says of them, and the monotonic moment just after.

    Errors of the socket pass through, BlockingIOError included.
    """
    if not ANCILLARY_BYTES:
        return connection.recv(READ_BYTES), (), monotonic_ns()
    data, ancillary, _flags, _address = connection.recvmsg(READ_BYTES, ANCILLARY_BYTES)
    return data, ancillary, monotonic_ns()


def date_read(bridge: WallBridge, ancillary: Ancillary, read_ns: int) -> tuple[int, bool]:
    """The arrival of what was read at `read_ns`, in monotonic nanoseconds, and whether the kernel gave that stamp.

    It may be asked later: a wall clock that was set meanwhile is seen now. An end of stream has no kernel stamp.
    """
    for level, kind, content in ancillary:
        if kind == STAMP_OPTION and level == SOL_SOCKET and len(content) == TIMESPEC_BYTES:
            bridge.now()
            seconds, nanoseconds = unpack_timespec(content)
            at = bridge.monotonic(seconds * 1_000_000_000 + nanoseconds, read_ns)
            if at is not None:
                return min(at, read_ns), True
    return read_ns, False


def await_stamps(seconds: float = 0.1) -> bool:
    """Wait until the kernel stamps what arrives on the loopback; False when it does not within `seconds`.

    It switches stamping on a little after the first socket asks for it, and until then leaves arrivals without.
    The caller keeps a socket that has asked, or the kernel switches it off again.
    """
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        sender = held.enter_context(socket.create_connection(listener.getsockname()))
        receiver = held.enter_context(listener.accept()[0])
        if not request_stamps(receiver):
            return False
        end = monotonic_ns() + int(seconds * 1e9)
        while True:
            sender.send(b".")
            if receiver.recvmsg(1, ANCILLARY_BYTES)[1]:
                return True
            if monotonic_ns() > end:
                return False
            sleep(0.002)
