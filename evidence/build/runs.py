"""Reads run folders back into plain facts: journal, ledgers, open exchanges, bodies.

Read-only, and as strict as the recorder is: what it can leave when it is killed at any moment (a torn last
line, an exchange that was begun and has no receipt, a body under its partial name) is understood; anything else
that is out of form is an error, because evidence that somebody repaired is none.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from evidence import records
from evidence.build import classify
from evidence.build.privacy import Scanner
from evidence.campaign import Campaign
from evidence.campaign.table import HASH
from evidence.errors import EvidenceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Json = dict[str, Any]
ALTERED = "the run folder was altered after the capture; it is no evidence any more"
EVENTS = (
    "run-started", "arm-started", "engine-started", "engine-ready", "proxy-ready", "gateway-ready", "identity", "offer",
    "sample", "snapshot", "control", "client", "timeline", "log-finding", "token-ids", "exact", "arm-ended",
    "engine-stopped", "outcome", "aborted", "run-ended",
)  # fmt: skip
EMPTY = hashlib.sha256(b"").hexdigest()
SOURCES = ("bodies", "witness/bodies")
KINDS = ("comparison", "attempt", "co-residency", "crash", "lora")


class Open(NamedTuple):
    """An exchange that the proxy had begun and of which it wrote no receipt; `partial` is what it had got back."""

    worker: str
    sequence: int
    request_id: str | None
    partial: Path | None


@dataclass(frozen=True)
class Run:
    """One run folder, by what its first file and the last line of its journal say.

    The events are read when first asked for and can be forgotten: a campaign has hundreds of runs.
    """

    folder: Path
    id: str
    name: str
    kind: str
    started_at: str
    ended: Json | None

    @functools.cached_property
    def events(self) -> list[Json]:
        """The journal in order.

        A duration is a float here: below 2^53 nanoseconds its shortest text is the decimal that was written.
        """
        place = self.folder / "journal.jsonl"
        events = _lines(place)
        for number, event in enumerate(events, 1):
            if not isinstance(event.get("event"), str):
                raise EvidenceError(f"{place}, line {number}: found no event name, expected one", ALTERED, code=1)
            if event["event"] not in EVENTS:
                raise EvidenceError(
                    f"{place}, line {number}: found the event {event['event']!r:.60}, expected one of {', '.join(EVENTS)}",
                    "was it captured by a later release? build it with that one",
                    code=1,
                )
        return events

    @functools.cached_property
    def _by_name(self) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for entry in self.events:
            found.setdefault(entry["event"], []).append(entry)
        return found

    def forget(self) -> None:
        """Let go of the events."""
        self.__dict__.pop("events", None)
        self.__dict__.pop("_by_name", None)

    def all(self, event: str) -> list[Json]:
        return self._by_name.get(event, [])

    def last(self, event: str) -> Json | None:
        return next(reversed(self.all(event)), None)

    @property
    def complete(self) -> bool:
        """The recorder said that nothing is missing; the builder still counts."""
        return self.ended is not None and self.ended.get("complete") is True

    @property
    def ended_at(self) -> str | None:
        return None if self.ended is None else str(self.ended["endedAt"])

    @property
    def told_end(self) -> str | None:
        """The end that a package tells: of an attempt that was stopped, none."""
        return self.ended_at if self.complete or self.kind == "comparison" else None

    def ledgers(self) -> dict[tuple[str, str], list[records.Receipt]]:
        """(arm, worker) -> receipts in the order in which the exchanges began; they were written as they ended."""
        found = {}
        for path in self._witnessed(".jsonl"):
            rows = sorted((_receipt(path, row) for row in _lines(path)), key=attrgetter("sequence"))
            found[path.parent.name, path.stem] = rows
        return found

    def _witnessed(self, ending: str) -> Iterator[Path]:
        """The files with this ending that the proxies of each arm wrote, in order."""
        witness = self.folder / "witness"
        for arm in sorted(path for path in witness.glob("*") if path.name != "bodies"):
            if arm.is_dir():
                yield from sorted(path for path in arm.iterdir() if path.name.endswith(ending))

    def open_exchanges(self) -> dict[str, list[Open]]:
        """Arm -> exchanges that were under way when a proxy was killed."""
        found: dict[str, list[Open]] = {}
        for path in self._witnessed(".jsonl.open"):
            worker, ledger = path.name.removesuffix(".jsonl.open"), path.with_name(path.name.removesuffix(".open"))
            closed = {row["sequence"] for row in _lines(ledger)} if ledger.exists() else set()
            for row in _lines(path):
                if row["sequence"] not in closed:
                    names = f".{worker}-*-{row['sequence']}-response.partial"
                    partials = sorted((self.folder / "witness/bodies").glob(names))
                    entry = Open(worker, row["sequence"], row["requestId"], partials[-1] if partials else None)
                    found.setdefault(path.parent.name, []).append(entry)
        return found


def _lines(path: Path) -> list[Json]:
    """The objects of a JSON-lines file; a last line without its newline was torn and is none."""
    lines = _present(path).split(b"\n")[:-1]
    return classify.read_objects(lines) or [
        _row(f"{path}, line {number}", line) for number, line in enumerate(lines, 1)
    ]


def _row(place: str, line: bytes) -> Json:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise EvidenceError(f"{place}: found no JSON ({error}), expected one object", ALTERED, code=1) from None
    if not isinstance(row, dict):
        raise EvidenceError(f"{place}: found {type(row).__name__}, expected one object", ALTERED, code=1)
    return row


_RECEIPT = records.keys(records.Receipt)
_RECEIPT_VALUES = itemgetter(*_RECEIPT)


def _receipt(path: Path, row: Json) -> records.Receipt:
    try:
        values = _RECEIPT_VALUES(row)
    except KeyError:
        values = ()
    if len(values) != len(row):
        odd = sorted(row.keys() ^ set(_RECEIPT))
        raise EvidenceError(
            f"{path}: found receipt {row.get('sequence')} with other keys ({', '.join(odd)}), expected those of the recorder",
            ALTERED,
            code=1,
        )
    return records.Receipt._make(values)


def _present(path: Path) -> bytes:
    """The bytes of a file that must be there. Raises EvidenceError."""
    data = _read(str(path))
    if data is None:
        raise EvidenceError(f"{path}: found no such file, expected what capture wrote", ALTERED, code=1)
    return data


def _read(path: str) -> bytes | None:
    """A file's bytes in two calls of the system: ten thousand bodies are read one after the other."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EvidenceError(
            f"{path}: cannot be read ({error.strerror}), expected a regular file", ALTERED, code=1
        ) from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise EvidenceError(f"{path}: found no regular file, expected one", ALTERED, code=1)
        data = os.read(handle, facts.st_size)
        while len(data) < facts.st_size and (piece := os.read(handle, facts.st_size - len(data))):
            data += piece
        return data
    finally:
        os.close(handle)


@dataclass
class Store:
    """The bodies of one run: each is read once, its hash and contents checked, and its place remembered."""

    run: Run
    scanner: Scanner
    missing: list[str] = field(default_factory=list)
    owners: dict[str, int] = field(default_factory=dict)
    total_bytes: int = 0

    def __post_init__(self) -> None:
        self.sources = tuple(f"{self.run.folder}/{source}" for source in SOURCES)

    def take(self, digest: str) -> bytes | None:
        """The bytes with this hash, to be packed; None, and noted as missing, where no source has them."""
        for place, source in enumerate(self.sources):
            data = _read(f"{source}/{digest}")
            if data is None:
                continue
            found = hashlib.sha256(data).hexdigest()
            if found != digest:
                raise EvidenceError(
                    f"{source}/{digest}: found content with SHA-256 {found}, expected that of its name",
                    ALTERED,
                    code=1,
                )
            if digest not in self.owners:
                self.owners[digest] = place
                self.total_bytes += len(data)
                self.scanner.scan(f"{self.run.id}/{SOURCES[place]}/{digest}", data, body=True)
            return data
        if digest not in self.missing:
            self.missing.append(digest)
        return None

    def cite(self, digest: str) -> None:
        """Have a body packed that nobody needs to read."""
        if digest not in self.owners:
            self.take(digest)


def find_runs(runs: Path, campaign: Campaign) -> list[Run]:
    """Every run folder of the campaign in `runs`, oldest first.

    Raises EvidenceError for a folder of another campaign, one that was captured under other words of this one, or
    one that is no run folder, or one whose capture is still under way: to tell it as killed would be a lie.
    """
    try:
        folders = sorted(path for path in runs.iterdir() if path.is_dir() and not path.name.startswith("."))
        # A lifecycle run has a form of its own; the campaign names the record that was made of it.
        folders = [path for path in folders if not (path / "raw_events.jsonl").exists()]
    except OSError as error:
        raise EvidenceError(
            f"{runs}: cannot be read ({error.strerror}), expected a folder of run folders",
            "give the folder that --runs of `evidence capture` named",
        ) from None
    found = [_read_run(folder, campaign) for folder in folders]
    return sorted(found, key=lambda run: (run.started_at, run.id))


def _read_run(folder: Path, campaign: Campaign) -> Run:
    place = folder / "run.json"
    try:
        content = _read(str(place))
        if content is None:
            if any(folder.glob("*/run.json")):
                raise EvidenceError(
                    f"{folder}: found a folder of run folders, expected a run folder",
                    f"give each campaign a folder of runs of its own: --runs {folder}, or another without it",
                    code=1,
                )
            raise EvidenceError(
                f"{place}: found no such file, expected what capture wrote first",
                "keep only run folders in the folder given with --runs",
                code=1,
            )
        identity = _identity(orjson.loads(content))
    except (ValueError, KeyError, TypeError) as error:
        said = f"nothing at {error}" if isinstance(error, KeyError) else error
        raise EvidenceError(
            f"{place}: found no run description ({said}), expected that of capture",
            "keep only run folders in the folder given with --runs, as capture left them",
            code=1,
        ) from None
    if identity["campaign"] != campaign.name:
        raise EvidenceError(
            f"{place}: found a run of campaign {identity['campaign']!r}, expected {campaign.name!r}",
            "give each campaign a folder of runs of its own",
            code=1,
        )
    if identity["run"] != folder.name or identity["kind"] not in KINDS:
        raise EvidenceError(
            f"{place}: found run {identity['run']!r} of kind {identity['kind']!r}, expected {folder.name!r} and one of {', '.join(KINDS)}",
            "a run folder keeps the name that capture gave it",
            code=1,
        )
    if identity["campaignSha256"] != campaign.sha256:
        _check_same(folder, identity["name"], campaign)
    elif campaign.kind(identity["name"]) != identity["kind"]:
        raise EvidenceError(
            f"{place}: found kind {identity['kind']!r}, expected {campaign.kind(identity['name'])!r}", ALTERED, code=1
        )
    return Run(folder, identity["run"], identity["name"], identity["kind"], identity["startedAt"], _run_ended(folder))


INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def _identity(head: Any) -> dict[str, str]:
    """What run.json says. Raises ValueError, KeyError or TypeError where it is none that capture wrote."""
    identity = {key: head[key] for key in ("run", "campaign", "campaignSha256", "name", "kind", "startedAt")}
    for key, value in identity.items():
        form = {"startedAt": INSTANT, "campaignSha256": HASH}.get(key)
        if not isinstance(value, str) or (form is not None and not form.fullmatch(value)):
            raise ValueError(f"{key} is {value!r:.60}")
    return identity


def _run_ended(folder: Path) -> Json | None:
    """The `run-ended` event, which is the last line of a journal that has one."""
    try:
        if not (folder / "journal.jsonl").is_file():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        with (folder / "journal.jsonl").open("rb") as journal:
            held = _is_held(journal.fileno())  # asked before it is read, since a run may end in between
            journal.seek(max(0, journal.seek(0, 2) - 4096))
            lines = journal.read().split(b"\n")
    except OSError as error:
        raise EvidenceError(
            f"{folder / 'journal.jsonl'}: cannot be read ({error.strerror}), expected the run's journal",
            "put the journal back, or move this folder out of --runs: without it nobody can tell what was offered",
            code=1,
        ) from None
    try:
        event = orjson.loads(lines[-2]) if len(lines) > 1 else None
    except orjson.JSONDecodeError:
        event = None
    if isinstance(event, dict) and event.get("event") == "run-ended":
        return event
    if held:
        raise EvidenceError(
            f"{folder}: found a run that is still under way, expected one that has ended",
            "wait for its end or stop it, and build again",
            code=1,
        )
    return None


def _is_held(descriptor: int) -> bool:
    """Whether the runner that writes this journal lives: it holds a lock on it for as long."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False


def _check_same(folder: Path, name: str, campaign: Campaign) -> None:
    """A campaign grows after its first capture; what a run was made of must not have changed since.

    Compared are the tables that the run depends on: its own entry, its case, profile, engine and the gateway.
    """
    source = folder / "campaign.toml"
    try:
        then = tomllib.loads(_present(source).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EvidenceError(f"{source}: found no campaign ({error}), expected the one of the capture", code=1) from None
    now = tomllib.loads(campaign.content.decode("utf-8"))
    changed = [
        f"[[{table}]] {key!r}"
        for table, key in _dependencies(now, name)
        if table != "gateway" and _table(then, table, key) != _table(now, table, key)
    ]
    changed += ["[gateway]"] if then.get("gateway") != now.get("gateway") else []
    if changed or not _dependencies(now, name):
        what = ", ".join(changed) or f"no entry {name!r}"
        raise EvidenceError(
            f"{source}: found {what} other than in {campaign.path.name}, expected what the run was captured under",
            "capture again, or put the older words back",
            code=1,
        )


def _table(document: Mapping[str, Any], table: str, key: str) -> Any:
    entries = document.get(table, [])
    listed = entries if isinstance(entries, list) else []
    return next((entry for entry in listed if isinstance(entry, dict) and entry.get("id") == key), None)


def _dependencies(document: Mapping[str, Any], name: str) -> list[tuple[str, str]]:
    for table in ("comparison", "case", "lifecycle"):
        entry = _table(document, table, name)
        if entry is not None:
            break
    else:
        return []
    found = [(table, name)]
    case = entry if table == "case" else _table(document, "case", entry["case"]) if table == "comparison" else None
    if case is not None:
        found += [("case", case["id"])] if table == "comparison" else []
        found += [("profile", case["profile"]), ("engine", case["engine"])]
    return found
