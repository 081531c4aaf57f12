"""Raw events of one run: append-only JSON lines with monotonic times, each written whole by one write(2)."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evidence.errors import EvidenceError

FORMAT = 1
NAME = "raw_events.jsonl"
Event = dict[str, Any]


class EventLog:
    """A new file of events. `t` is seconds since the log began, by the monotonic clock in nanoseconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self.begun_ns = time.monotonic_ns()
        self._next = 0

    def now(self) -> float:
        """Seconds since the log began."""
        return (time.monotonic_ns() - self.begun_ns) / 1e9

    def since_begun(self, monotonic_seconds: float) -> float:
        """An instant of the monotonic clock of this machine as seconds since the log began."""
        return round(monotonic_seconds - self.begun_ns / 1e9, 9)

    def write(self, event: str, **fields: Any) -> float:
        """Append one event and give its time."""
        t = round(self.now(), 9)
        line = json.dumps({"event": event, "t": t, **fields}, sort_keys=True, allow_nan=False, separators=(",", ":"))
        self._append(line.encode() + b"\n")
        return t

    def _append(self, content: bytes) -> None:
        """One write of one whole line; a part of one that found no room is taken back. Raises EvidenceError (code 4)."""
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, content) == len(content):
                return
            os.ftruncate(self._file, size)
            error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as problem:
            error = problem
        raise EvidenceError(
            f"{self.path}: no room to record ({error.strerror}), expected space for the whole run",
            "what was recorded stays readable; free some space and run it again",
            code=4,
        )

    def next_id(self) -> int:
        """A number for the next request, counting from 1."""
        self._next += 1
        return self._next

    def close(self) -> None:
        os.close(self._file)


def parse_events(data: bytes, name: str = NAME) -> list[Event]:
    """The events of a run; a torn last line is left out. Raises EvidenceError on any other malformed line."""
    events: list[Event] = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if (
            not isinstance(event, dict)
            or not isinstance(event.get("event"), str)
            or not isinstance(event.get("t"), (int, float))
        ):
            raise EvidenceError(f"{name} line {number}: found {line[:60]!r}, expected an event with `event` and `t`")
        events.append(event)
    if not events or events[0]["event"] != "run-started" or events[0].get("format") != FORMAT:
        raise EvidenceError(
            f"{name} line 1: expected run-started of format {FORMAT}", "name a run folder of this harness"
        )
    return events


def pick(events: list[Event], name: str, **wanted: Any) -> Iterator[Event]:
    """Events of one name whose fields have these values, in order."""
    for event in events:
        if event["event"] == name and all(event.get(key) == value for key, value in wanted.items()):
            yield event


def settings_of(events: list[Event]) -> Mapping[str, Any]:
    """The settings that the run began with."""
    found: Mapping[str, Any] = events[0]["settings"]
    return found
