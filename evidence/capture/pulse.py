"""Whether what a run stands on is still there: engines, proxies, the gateway."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from evidence.capture.processes import Process, read_tail
from evidence.capture.watch import Aborted

CONNECT_SECONDS = 5.0
END_SECONDS = 10.0
NOT_RECORDED = 5  # the exit code of a proxy that could not record what passed


@dataclass(frozen=True)
class Part:
    """One of them: the reason code that its end is, its name in a sentence, its URL, and its process if it is ours."""

    reason: str
    name: str
    url: str
    process: Process | None

    @property
    def failed_to_record(self) -> bool:
        """Whether it is a proxy that said so by its exit code."""
        outcome = self.process.outcome if self.process is not None else None
        return self.reason == "PROXY_DIED" and outcome is not None and outcome.exit_code == NOT_RECORDED

    def end(self) -> Aborted:
        """What its end means for the run."""
        if self.process is not None and self.failed_to_record:
            return Aborted(
                "DISK_FULL", f"{self.name} could not record what passed it: {read_tail(self.process.log_path, 1)}"
            )
        return Aborted(self.reason, f"{self.name} ended by itself")


async def refuse_gone(parts: Sequence[Part], *, connecting: bool) -> None:
    """Raises Aborted for the first part whose process has ended or, when `connecting`, that takes no connection."""
    for part in parts:
        if part.process is not None and part.process.has_ended():
            await part.process.died.wait()
            raise part.end()
        if connecting and not await takes_connections(part.url):
            if part.process is not None:
                # it is about to end, and how is worth recording
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(part.process.died.wait(), END_SECONDS)
                    raise part.end()
            raise Aborted(part.reason, f"{part.name} takes no connections any more")


async def takes_connections(url: str) -> bool:
    """Whether something accepts a connection there. One that is too busy to do so within five seconds is not gone."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), CONNECT_SECONDS)
    except asyncio.TimeoutError:
        return True
    except OSError:
        return False
    writer.close()
    return True
