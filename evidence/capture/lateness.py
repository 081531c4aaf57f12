"""Whether the client itself was late: loop lag, send lag and processor share, measured while it offers load.

A starved client shows as a slow server. Each arm therefore records how late the client came to what arrived, how
late requests left, and how much of a processor this process used.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic_ns, process_time_ns
from types import TracebackType
from typing import Any

from evidence.capture.arrival import ANCILLARY_BYTES

INTERVAL_SECONDS = 0.04

_watching: ContextVar[LagMonitor | None] = ContextVar("watching", default=None)


class LagMonitor:
    """Watches the client from `async with` to its end; `offer_batch` inside reports each send and read to it.

    While a batch runs, a loop lag is how long bytes up to the first text of an answer lay with the kernel, by its own
    stamp, before they were read. Outside, and where the kernel stamps nothing, it is how much later than asked a timer
    of forty milliseconds ran; the loop's own rounding of up to one millisecond is part of it. Where the loop stands
    still for long, the timers that it missed count too, each as late as it would have been, so that a stall weighs in
    the percentile by its length.
    """

    def __init__(self, limit_seconds: float = 0.05) -> None:
        if not limit_seconds > 0 or not math.isfinite(limit_seconds):
            raise ValueError("limit_seconds must be a positive number")
        self.limit_seconds = limit_seconds
        self.loop_lags_ns: list[int] = []
        self.send_lags_ns: list[int] = []
        self._wall_ns = self._processor_ns = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LagMonitor:
        self._wall_ns, self._processor_ns = monotonic_ns(), process_time_ns()
        self._outer = _watching.set(self)
        self.go_on()
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wall_ns, self._processor_ns = monotonic_ns() - self._wall_ns, process_time_ns() - self._processor_ns
        _watching.reset(self._outer)
        task = self._task
        self.pause()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)

    def go_on(self) -> None:
        """Start the timer."""
        self._task = asyncio.create_task(self._watch())

    def pause(self) -> None:
        """Stop the timer."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        interval = int(INTERVAL_SECONDS * 1e9)
        while True:
            due = monotonic_ns() + interval
            try:
                await asyncio.sleep(INTERVAL_SECONDS)
            finally:
                # Also at the end: a stall that the last timer was still waiting out is a lag.
                lag = monotonic_ns() - due
                while lag > 0:
                    self.loop_lags_ns.append(lag)
                    lag -= interval

    def record(self) -> dict[str, Any]:
        """Return the `client` record of docs/format.md, section 3; call it after the end.

        `late` holds when a loop lag at p99 or any send lag is above the limit. Percentiles are nearest rank, and 0
        where nothing was sampled.
        """
        loop_p99, loop_max = _p99(self.loop_lags_ns), max(self.loop_lags_ns, default=0)
        send_p99, send_max = _p99(self.send_lags_ns), max(self.send_lags_ns, default=0)
        return {
            "late": max(loop_p99, send_max) > self.limit_seconds * 1e9,
            "limitSeconds": self.limit_seconds,
            "loopLagP99Seconds": loop_p99 / 1e9,
            "loopLagMaxSeconds": loop_max / 1e9,
            "sendLagP99Seconds": send_p99 / 1e9,
            "sendLagMaxSeconds": send_max / 1e9,
            "processorShare": round(self._processor_ns / max(self._wall_ns, 1), 6),
        }


def note_send(lag_ns: int) -> None:
    """Tell the monitor around this task, if there is one, how much later than intended a request left."""
    watching = _watching.get()
    if watching is not None:
        watching.send_lags_ns.append(max(lag_ns, 0))


def note_read(lag_ns: int) -> None:
    """Tell the monitor around this batch, if there is one, how long bytes had lain unread."""
    watching = _watching.get()
    if watching is not None:
        watching.loop_lags_ns.append(max(lag_ns, 0))


@contextmanager
def told_by_reads() -> Iterator[None]:
    """While a batch reads with kernel stamps, let these tell its lags: a timer beside it would only cost time."""
    watching = _watching.get()
    if watching is None or not ANCILLARY_BYTES:
        yield
        return
    watching.pause()
    try:
        yield
    finally:
        watching.go_on()


def _p99(values: list[int]) -> int:
    return sorted(values)[math.ceil(len(values) * 99 / 100) - 1] if values else 0
