"""Lines of late work are found in the engines' logs, at a cost that has an end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evidence.capture import findings
from evidence.capture.findings import watch_logs


class Recorder:
    """Keeps what would be journalled."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def since(self) -> float:
        return 0.0

    def write(self, event: str, *, worker: str, pattern: str, line: str, atSeconds: float) -> None:
        self.found.append((worker, pattern))


def watched(log: Path, *parts: bytes, allowed: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """The findings of a log that grows by `parts`, a poll between each two."""
    recorder: Any = Recorder()

    async def go() -> None:
        async with watch_logs("vllm", {"worker-1": log}, allowed, recorder):
            for part in parts:
                with log.open("ab") as file:
                    file.write(part)
                await asyncio.sleep(findings.POLL_SECONDS * 1.5)

    asyncio.run(go())
    return list(recorder.found)


def test_each_line_is_found_once_and_what_stood_before_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"torch.compile before\n")
    assert watched(log, b"torch.com", b"pile\nout of memory\n") == [
        ("worker-1", "compile"),
        ("worker-1", "out-of-memory"),
    ]


def test_a_flood_is_a_finding_and_the_rest_of_it_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LOG_MOST", 200_000)
    log = tmp_path / "log"
    log.write_bytes(b"")
    flood = b"torch.compile\n" + b"x" * 300_000 + b"\nout of memory\n"
    assert watched(log, flood) == [("worker-1", "compile"), ("worker-1", "flood")]
    assert watched(log, flood, allowed=("flood", "compile")) == []
