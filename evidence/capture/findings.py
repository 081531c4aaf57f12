"""What the engines' logs say while the main batch runs: a compilation or allocation there spoils the times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from evidence.capture.adapters import find_log_lines
from evidence.capture.recorder import Recorder

POLL_SECONDS = 0.1
LOG_MOST = 4 << 20


@contextlib.asynccontextmanager
async def watch_logs(
    adapter: str, logs: Mapping[str, Path], allowed: Sequence[str], recorder: Recorder
) -> AsyncIterator[None]:
    """Within: journals each line that the adapter's patterns find in a worker's log, as `log-finding`.

    A line is left out when `allowed` names its pattern or holds a part of its text. Its time is when it was seen, at
    most a tenth of a second late where an engine writes no more than a piece in that time. Searching a log takes the
    processor from what is measured, so there is an end to it: of a log that grows by more than LOG_MOST bytes the rest is
    unread, and that is a finding of its own, `flood`.
    """
    offsets = {worker: path.stat().st_size for worker, path in logs.items() if path.exists()}
    begun, flooded = dict(offsets), set[str]()

    def note(worker: str, pattern: str, line: str) -> None:
        if not any(part == pattern or part in line for part in allowed):
            recorder.write("log-finding", worker=worker, pattern=pattern, line=line, atSeconds=recorder.since())

    def look(worker: str, end: int) -> bool:
        """Read one piece; whether there may be more."""
        found, offset = find_log_lines(adapter, logs[worker], offsets[worker], min(end, begun[worker] + LOG_MOST))
        for pattern, line in found:
            note(worker, pattern, line)
        if end > begun[worker] + LOG_MOST and worker not in flooded:
            flooded.add(worker)
            note(worker, "flood", f"the log grew by more than {LOG_MOST} bytes")
        moved, offsets[worker] = offset > offsets[worker], offset
        return moved

    async def poll() -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for worker in offsets:
                look(worker, logs[worker].stat().st_size)

    task = asyncio.get_running_loop().create_task(poll())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for worker in offsets:
            end = logs[worker].stat().st_size  # an engine may go on writing, but the window is over
            while look(worker, end):  # noqa: ASYNC110 - nothing is awaited, others get their turn
                await asyncio.sleep(0)
