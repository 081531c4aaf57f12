"""All sockets of a batch behind one epoll of their own, which the event loop watches as a single descriptor.

A read through the event loop's own book-keeping costs more than the read. Here one turn of the loop serves
every socket that has bytes, each once. Without epoll the loop watches each socket itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Callable
from time import monotonic_ns
from types import TracebackType

from evidence.capture.arrival import Receiver, WallBridge, await_stamps, request_stamps

PAUSE_NS = 300_000


class Watch:
    """Calls back when a socket has bytes, from `with` to its end; `receiver` reads them.

    It holds one socket that wants kernel stamps, so that the kernel keeps them switched on, and waits for that.
    """

    def __init__(self) -> None:
        self.receiver = Receiver(WallBridge())
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._served_ns = 0
        self._holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def __enter__(self) -> Watch:
        if request_stamps(self._holder):
            # A machine without a loopback address is measured all the same, by the monotonic clock if need be.
            with contextlib.suppress(OSError):
                await_stamps()
        if self._epoll is not None:
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._serve)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._epoll is not None:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
            self._epoll.close()
        self._holder.close()

    def add(self, connection: socket.socket, callback: Callable[[], object]) -> None:
        """Call `callback` whenever `connection` has bytes, or its end, to read."""
        descriptor = connection.fileno()
        if self._epoll is None:
            asyncio.get_running_loop().add_reader(descriptor, callback)
        else:
            self._callbacks[descriptor] = callback
            self._epoll.register(descriptor, select.EPOLLIN)

    def remove(self, connection: socket.socket) -> None:
        """Stop watching a socket that is watched and still open."""
        descriptor = connection.fileno()
        if self._epoll is None:
            asyncio.get_running_loop().remove_reader(descriptor)
        else:
            del self._callbacks[descriptor]
            self._epoll.unregister(descriptor)

    def serve_between(self) -> None:
        """Read what has arrived, unless that was just done; for a caller whose steps keep the loop from it."""
        if monotonic_ns() - self._served_ns > PAUSE_NS:
            self._serve()

    def _serve(self) -> None:
        if self._epoll is not None:
            self._served_ns = monotonic_ns()
            for descriptor, _event in self._epoll.poll(0):
                callback = self._callbacks.get(descriptor)
                if callback is not None:
                    callback()
