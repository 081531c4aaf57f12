"""The loop of the measuring client: many calls at once, in a thread of its own, behind one epoll.

An event loop for everybody costs two system calls and hundreds of cold cache lines for each arrival; this one does
nothing but wait, read and note. It runs in a thread, so that whatever the runner does beside it neither delays nor
is delayed. Everything that a recorder is told comes from this thread.
"""

from __future__ import annotations

import contextlib
import gc
import select
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Protocol

from evidence.capture.arrival import WallBridge, await_stamps, request_stamps
from evidence.capture.wire import Call

PAUSE_NS = 200_000
FEW = 2
LOOK_NS = 2_000_000_000
LONGEST_SECONDS = 3600.0
READ, WRITE, GONE = 1, 4, 0x2000
MANY, LATER_NS = 8, 1_000_000_000
"""What the server has closed is looked into and recorded when so many wait, so long after the first, or at the end of the
batch: one after the other while caches are warm, it costs less than half. What is done at a stretch stays short, or a
busy system takes the processor away in its middle."""


class Job(Protocol):
    """One exchange of a batch."""

    call: Call

    def finish(self) -> None:
        """Record how the call ended, and close its connection or keep it."""


class Poll(Protocol):
    """What is used of `select.epoll`."""

    def register(self, descriptor: int, mask: int) -> object: ...
    def modify(self, descriptor: int, mask: int) -> object: ...
    def unregister(self, descriptor: int) -> object: ...
    def poll(self, seconds: float) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class Loop:
    """Serves the calls of a batch from `with` to its end. Only `stop` may be called from another thread.

    `take(slot)` begins the next job in a free slot and returns it, or None when there is none left. It is called
    once for each of `slots` and then whenever the job of a slot has ended, which need not be recorded by then. What need not be dated does not wait until
    the kernel stamps.
    """

    def __init__(self, slots: int, take: Callable[[int], Job | None], *, dated: bool = True) -> None:
        self.bridge = WallBridge()
        self.stopped = threading.Event()
        self._slots, self._take, self._dated = slots, take, dated
        self._poll: Poll = select.epoll() if hasattr(select, "epoll") else Selector()
        self._waker, self._bell = socket.socketpair()
        self._open: dict[int, tuple[int, Job]] = {}
        self._ended: deque[tuple[int, Job]] = deque()
        self._put_off: dict[int, Call] = {}
        self._later: deque[Job] = deque()
        self._later_ns = 1 << 63
        self._starting = True
        self._due_ns = 1 << 63
        self._served_ns = 0

    def stop(self) -> None:
        """End every call where it stands, record it, and let `run` return."""
        self.stopped.set()
        with contextlib.suppress(OSError):
            self._bell.send(b".")

    def run(self) -> None:
        """Carry out all jobs. When a job or the recorder fails, the others are cancelled and recorded, and it passes."""
        try:
            with stamps_wanted() if self._dated else contextlib.nullcontext(), no_collection():
                self._carry_out()
        except BaseException:
            with contextlib.suppress(BaseException):
                self._cancel()
            raise
        else:
            self._cancel()
        finally:
            self._poll.close()
            self._waker.close()
            self._bell.close()

    def _carry_out(self) -> None:
        self._poll.register(self._waker.fileno(), READ)
        for slot in range(self._slots):
            self._begin(slot)
            self._serve_between()
        self._starting = False
        while (self._open or self._ended) and not self.stopped.is_set():
            if self._ended:
                slot, job = self._ended.popleft()
                if job.call.gone_ns:
                    self._put_off_finishing(job)
                else:
                    job.finish()
                self._begin(slot)
                self._serve_between()
                continue
            if self._put_off:
                descriptor, call = self._put_off.popitem()
                if descriptor in self._open and self._open[descriptor][1].call is call:
                    call.look_into()
                    if call.transport is not None:
                        self._over(descriptor)
                self._serve_between()
                continue
            now = monotonic_ns()
            if len(self._later) >= MANY or now >= self._later_ns:
                self._finish_later()
            elif now >= self._due_ns:
                self._look()
            else:
                self._serve(min((min(self._due_ns, self._later_ns) - now) / 1e9, LONGEST_SECONDS))

    def _put_off_finishing(self, job: Job) -> None:
        """The slot goes on; what became of the job is looked into later."""
        if not self._later:
            self._later_ns = monotonic_ns() + LATER_NS
        self._later.append(job)

    def _finish_later(self) -> None:
        """Look into and record what was put off."""
        self._later_ns = 1 << 63
        while self._later:
            self._later.popleft().finish()
            self._serve_between()

    def _begin(self, slot: int) -> None:
        if self.stopped.is_set():
            return
        job = self._take(slot)
        if job is None:
            return
        call = job.call
        if call.transport is not None:
            self._ended.append((slot, job))
            return
        assert call.connection is not None
        self._open[call.connection.fileno()] = (slot, job)
        if call.connected_ns:
            self._poll.register(call.connection.fileno(), READ | GONE)
            self._start(job)
        else:
            self._poll.register(call.connection.fileno(), WRITE)
        self._due_ns = min(self._due_ns, call.due_ns)

    def _start(self, job: Job) -> None:
        call = job.call
        call.start()
        assert call.connection is not None
        if call.transport is not None:
            self._over(call.connection.fileno())
        elif call.unsent:
            self._poll.modify(call.connection.fileno(), READ | GONE | WRITE)

    def _over(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._ended.append(self._open.pop(descriptor))

    def _serve_between(self) -> None:
        """Between the steps of many exchanges, read arrivals: what lies unread is dated by what follows it."""
        if self._open and monotonic_ns() - self._served_ns > PAUSE_NS:
            self._serve(0)

    def _serve(self, seconds: float) -> None:
        """Wait until something can be done, and do it, each call once."""
        found = self._poll.poll(seconds)
        self._served_ns = monotonic_ns()
        # Where many have something at once, all are read before anything is looked into: what lies unread is dated by
        # what follows it.
        hold = self._starting or len(found) > FEW
        for descriptor, mask in found:
            known = self._open.get(descriptor)
            if known is None:
                continue
            slot, job = known
            call = job.call
            if not call.started_ns:
                self._connected(descriptor, slot, job)
                continue
            if mask & GONE and call.gather():
                self._over(descriptor)
                continue
            if mask != WRITE:
                call.read(hold=hold)
                if hold:
                    self._put_off[descriptor] = call
            if mask & WRITE and call.unsent:
                call.write()
                if call.transport is None and not call.unsent:
                    self._poll.modify(descriptor, READ | GONE)
            if call.transport is not None:
                self._over(descriptor)
            elif call.resting:
                self._due_ns = min(self._due_ns, self._served_ns + LOOK_NS)

    def _connected(self, descriptor: int, slot: int, job: Job) -> None:
        """An attempt to connect has come out: start the call, or go on with the next address, or give up."""
        call = job.call
        before = call.connection
        stands = call.write()
        if call.connection is before:
            self._poll.modify(descriptor, READ | GONE)
        else:
            # The descriptor went with its socket; the next may have the same number.
            del self._open[descriptor]
            if call.connection is None:
                self._ended.append((slot, job))
                return
            self._open[call.connection.fileno()] = (slot, job)
            self._poll.register(call.connection.fileno(), READ | GONE if stands else WRITE)
        if stands:
            self._start(job)

    def _look(self) -> None:
        """End what is over its time, and look at what lies unread: a server may have changed its manners."""
        now = monotonic_ns()
        self._due_ns = 1 << 63
        for descriptor, (_slot, job) in list(self._open.items()):
            call = job.call
            if call.due_ns <= now:
                call.expire()
            elif call.resting and call.read_ns + LOOK_NS <= now:
                call.look()
                call.read_ns = now
            if call.transport is not None:
                self._over(descriptor)
            else:
                self._due_ns = min(self._due_ns, call.due_ns, call.read_ns + LOOK_NS if call.resting else 1 << 63)

    def _cancel(self) -> None:
        """End and record what is still open; the first failure passes when all are through."""
        for _slot, job in self._open.values():
            job.call.cancel()
        left = [*self._later, *(job for _slot, job in [*self._ended, *self._open.values()])]
        self._later.clear()
        self._open.clear()
        self._ended.clear()
        problem: BaseException | None = None
        for job in left:
            try:
                job.finish()
            except BaseException as error:
                problem = problem or error
        if problem is not None:
            raise problem


class Selector:
    """A `Poll` where there is no epoll."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, descriptor: int, mask: int) -> object:
        return self._selector.register(descriptor, _events(mask))

    def modify(self, descriptor: int, mask: int) -> object:
        return self._selector.modify(descriptor, _events(mask))

    def unregister(self, descriptor: int) -> object:
        return self._selector.unregister(descriptor)

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        return [
            (key.fd, (READ if mask & read else 0) | (WRITE if mask & write else 0))
            for key, mask in self._selector.select(seconds)
        ]

    def close(self) -> None:
        self._selector.close()


def _events(mask: int) -> int:
    return (selectors.EVENT_READ if mask & READ else 0) | (selectors.EVENT_WRITE if mask & WRITE else 0)


@contextmanager
def stamps_wanted() -> Iterator[None]:
    """Hold one socket that wants kernel stamps, so that the kernel keeps them switched on, and wait for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        if request_stamps(holder):
            # A machine without a loopback address is measured all the same, by the monotonic clock if need be.
            with contextlib.suppress(OSError):
                await_stamps()
        yield


@contextmanager
def no_collection() -> Iterator[None]:
    """Let the cyclic collector wait: its pauses of many milliseconds would leave arrivals unread."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
