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
from time import monotonic_ns, sleep, time_ns

TIMESPEC = struct.Struct("@qq")
TIMESPEC_BYTES, unpack_timespec, SOL_SOCKET = TIMESPEC.size, TIMESPEC.unpack, socket.SOL_SOCKET
STAMP_OPTION = 35
"""SO_TIMESTAMPNS of Linux on 64-bit machines, where time_t has 64 bits; Python has no name for it."""
ANCILLARY_BYTES = socket.CMSG_SPACE(TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0
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


class Receiver:
    """Reads sockets into one buffer of its own, kept because a fresh one for each read costs more than the read.

    `read_ns` is the moment of the last read.
    """

    __slots__ = ("_buffer", "_buffers", "_view", "bridge", "read_ns")

    def __init__(self, bridge: WallBridge, size: int = 256 * 1024) -> None:
        self.bridge = bridge
        self.read_ns = 0
        self._buffer = bytearray(size)
        self._buffers = (self._buffer,)
        self._view = memoryview(self._buffer)

    def read(self, connection: socket.socket) -> tuple[bytes, int, bool]:
        """Read once: bytes, their arrival in monotonic nanoseconds, and whether the kernel gave that stamp.

        Errors of the socket pass through, BlockingIOError included. An end of stream has no kernel stamp.
        """
        if not ANCILLARY_BYTES:
            count = connection.recv_into(self._buffer)
            self.read_ns = self.bridge.now()
            return bytes(self._view[:count]), self.read_ns, False
        count, ancillary, _flags, _address = connection.recvmsg_into(self._buffers, ANCILLARY_BYTES)
        now = self.read_ns = self.bridge.now()
        data = bytes(self._view[:count])
        for level, kind, content in ancillary:
            if kind == STAMP_OPTION and level == SOL_SOCKET and len(content) == TIMESPEC_BYTES:
                seconds, nanoseconds = unpack_timespec(content)
                at = self.bridge.monotonic(seconds * 1_000_000_000 + nanoseconds, now)
                if at is not None:
                    return data, min(at, now), True
        return data, now, False


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
