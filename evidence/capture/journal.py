"""The run folder: what a capture writes down as it happens, and how it is read again.

Append-only (docs/format.md, section 1). An event is one line and one `write(2)` on a descriptor opened with
O_APPEND, so that whatever kills the runner leaves whole lines and at most one torn last one. A body is written
under a temporary name and then renamed to its SHA-256, so that a name never stands over half a body.

What the kernel has accepted survives the death of the process; only a power cut needs `fsync`. It is called at
phase boundaries (`sync`), not for each offer: it takes milliseconds on common disks, and in the path of a request it
would show as client lag in the very times that are being recorded.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from evidence import __version__
from evidence.campaign import Campaign
from evidence.errors import EvidenceError

RESERVE_BYTES = 1 << 20
STEP = timedelta(seconds=0.5)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Seconds:
    """A duration in integer nanoseconds, written as a decimal number of seconds with nine decimals."""

    nanoseconds: int

    def __str__(self) -> str:
        sign, size = ("-" if self.nanoseconds < 0 else ""), abs(self.nanoseconds)
        return f"{sign}{size // 10**9}.{size % 10**9:09d}"


class DiskFull(EvidenceError):
    """The run folder's file system takes no more; what was recorded before is whole."""


def encode(value: Any) -> str:
    """JSON on one line. `Seconds` and floats get nine decimals and no exponent; NaN and Infinity are errors."""
    if isinstance(value, float):
        return f"{value:.9f}" if math.isfinite(value) else json.dumps(value, allow_nan=False)
    if isinstance(value, Seconds):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(encode(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def instant(at: datetime | None = None) -> str:
    """RFC 3339 in UTC with microseconds and a final Z."""
    moment = at or datetime.now(timezone.utc)
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Journal:
    """The one writer of a run folder. Times are nanoseconds of `clock`, which must be monotonic.

    Events and bodies may come from any thread; they are written one after the other.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], int] = time.monotonic_ns, began: datetime | None = None
    ) -> None:
        self.folder = folder
        self.clock = clock
        self.began = began or datetime.now(timezone.utc)
        self.started_ns = clock()
        self.full = False
        self.lock = threading.RLock()
        self.known: set[str] = set()
        self.unsynced: list[Path] = []
        self.descriptor = os.open(folder / "journal.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        self.length = 0
        # So a builder sees that this run is under way; a file system without locks does not tell.
        with contextlib.suppress(OSError):
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def now(self) -> datetime:
        """The wall clock as it went on from the start of the run: instants keep their order though somebody sets it."""
        return self.began + timedelta(microseconds=(self.clock() - self.started_ns) // 1000)

    @property
    def stepped(self) -> bool:
        """Whether the wall clock was set by more than STEP since the run began, or the machine slept."""
        return abs(datetime.now(timezone.utc) - self.now()) > STEP

    def write(self, event: str, **fields: Any) -> None:
        """Appends one event. Raises DiskFull when not even the reserve had room for it."""
        with self.lock:
            line = encode({"event": event, "t": Seconds(self.clock() - self.started_ns), **fields}) + "\n"
            # what an engine or a path said may hold half a character (a lone surrogate), which no UTF-8 has
            content = line.encode("utf-8", "replace")
            try:
                self.append(content)
            except OSError as error:
                self.make_room(error)
                try:
                    self.append(content)
                except OSError as again:
                    raise self.refusal(again) from None

    def append(self, content: bytes) -> None:
        """One write of one whole line; a part of a line that found no room is taken back, being no event."""
        written = os.write(self.descriptor, content)
        if written != len(content):
            os.ftruncate(self.descriptor, self.length)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.length += written

    def body(self, content: bytes) -> str:
        """Stores a body once and returns its SHA-256."""
        name = hashlib.sha256(content).hexdigest()
        with self.lock:
            if name in self.known:
                return name
            try:
                self.store(name, content)
            except OSError as error:
                self.make_room(error)
                try:
                    self.store(name, content)
                except OSError as again:
                    raise self.refusal(again) from None
            self.known.add(name)
        return name

    def store(self, name: str, content: bytes) -> None:
        target, temporary = self.folder / "bodies" / name, self.folder / "bodies" / f".{name}.part"
        try:
            temporary.write_bytes(content)
            temporary.rename(target)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self.unsynced.append(target)

    def make_room(self, error: OSError) -> None:
        """Gives the reserve back to the file system, so that the end of the run can still be written down."""
        if error.errno not in NO_SPACE:
            raise error
        self.full = True
        (self.folder / ".reserve").unlink(missing_ok=True)

    def refusal(self, error: OSError) -> DiskFull:
        return DiskFull(
            f"{self.folder}: no room to record ({os.strerror(error.errno or 0)}), expected space for the whole run",
            "what was recorded stays readable; free some space and capture again",
            code=4,
        )

    def sync(self) -> None:
        """Makes everything recorded so far survive a power cut."""
        for path in [*self.unsynced, self.folder / "bodies"]:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self.unsynced.clear()
        os.fsync(self.descriptor)

    def close(self) -> None:
        """Syncs and closes; the reserve goes."""
        try:
            self.sync()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
        finally:
            (self.folder / ".reserve").unlink(missing_ok=True)
            os.close(self.descriptor)


def open_run(
    runs: Path, campaign: Campaign, name: str, kind: str, at: datetime | None = None, *, bodies: Sequence[bytes] = ()
) -> Journal:
    """Makes `runs/<name>-<UTC stamp>/` with run.json, the campaign's bytes, the fixed `bodies` and the first event.

    It appears whole: until then it has a name with a leading dot, which no reader takes for a run. When it cannot be
    made, on a full disk for instance, nothing of it stays.
    """
    moment = at or datetime.now(timezone.utc)
    run = f"{name}-{moment.strftime('%Y%m%dt%H%M%S.%fz')}"
    folder, making = runs / run, runs / f".{run}"
    journal, made = None, False
    try:
        runs.mkdir(parents=True, exist_ok=True)
        making.mkdir()
        made = True
        for part in ("bodies", "witness/bodies", "logs"):
            (making / part).mkdir(parents=True)
        (making / ".reserve").write_bytes(bytes(RESERVE_BYTES))
        record = {
            "schemaVersion": 1, "run": run, "campaign": campaign.name, "campaignSha256": campaign.sha256, "name": name,
            "kind": kind, "startedAt": instant(moment), "runner": __version__,
        }  # fmt: skip
        (making / "run.json").write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        (making / "campaign.toml").write_bytes(campaign.content)
        journal = Journal(making, began=moment)
        for body in bodies:
            journal.body(body)
        journal.write("run-started", startedAt=instant(moment), kind=kind)
        journal.unsynced = [folder / "bodies" / path.name for path in journal.unsynced]
        making.rename(folder)
    except (OSError, DiskFull) as error:
        # Nothing was recorded in it, and no reader would ever look at a name with a dot.
        if journal is not None:
            os.close(journal.descriptor)
        if made:
            shutil.rmtree(making, ignore_errors=True)
        if isinstance(error, DiskFull):
            raise
        raise EvidenceError(
            f"{folder}: the run folder cannot be made ({error.strerror}), expected a writable folder with space",
            "choose another folder with --runs",
            code=4 if error.errno in NO_SPACE else 2,
        ) from None
    journal.folder = folder
    return journal


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The events of a journal in order, durations as `Decimal` of the text that was written.

    A last line without a newline was torn by the end of the runner and is no event. Any other line that is not
    one JSON object with an event name is an error, because nothing that this package does can write one.
    """
    source = path / "journal.jsonl" if path.is_dir() else path
    try:
        lines = source.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise EvidenceError(f"{source}: cannot be read ({error.strerror}), expected a journal") from None
    events = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line.decode("utf-8"), parse_float=Decimal)
        except ValueError as error:
            raise EvidenceError(f"{source}, line {number}: found no JSON ({error}), expected an event") from None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise EvidenceError(f"{source}, line {number}: found no event name, expected an object with one")
        events.append(event)
    return events
