"""What the engines' logs say while the main batch runs: a compilation or allocation there spoils the times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from evidence.capture.adapters import find_log_lines
from evidence.capture.recorder import Recorder

POLL_SECONDS = 0.1


@contextlib.asynccontextmanager
async def watch_logs(
    adapter: str, logs: Mapping[str, Path], allowed: Sequence[str], recorder: Recorder
) -> AsyncIterator[None]:
    """Within: journals each line that the adapter's patterns find in a worker's log, as `log-finding`.

    A line is left out when `allowed` names its pattern or holds a part of its text. Its time is when it was seen, at
    most a tenth of a second late.
    """
    offsets = {worker: path.stat().st_size for worker, path in logs.items() if path.exists()}
    seen = dict.fromkeys(offsets, 0)

    def look() -> None:
        for worker, offset in offsets.items():
            if logs[worker].stat().st_size == offset:
                continue
            found = find_log_lines(adapter, logs[worker], offset)
            for pattern, line in found[seen[worker] :]:
                if not any(part == pattern or part in line for part in allowed):
                    recorder.write("log-finding", worker=worker, pattern=pattern, line=line, atSeconds=recorder.since())
            seen[worker] = len(found)

    async def poll() -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            look()

    task = asyncio.get_running_loop().create_task(poll())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        look()
