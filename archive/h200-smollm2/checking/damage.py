"""The bench on which a package is damaged in memory, made to look true again, and judged.

A mutation edits documents and bodies on a `Bench`; nothing reaches the disk. `reseal` then does what a dishonest
publisher would do: the hashes in the indices, the counts in the manifest and SHA256SUMS are made true
again, so that a check must see the meaning.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from checking.check import Check, Family, Mutation, Report, judge
from checking.package import Overlay, Recall, Source
from checking.reading import read_json
from checking.sums import SUMS, Sums, read_sums

INDICES = {
    "results/settings-index.json": "comparisons",
    "results/converged-index.json": "attempts",
    "results/incomplete-settings-index.json": "comparisons",
}
LIFECYCLE_INDEX = "results/lifecycle-index.json"
NOTHING = "nothing of that kind in this package"


def sha256(data: bytes) -> str:
    """SHA-256 as hex."""
    return hashlib.sha256(data).hexdigest()


_quoted = json.encoder.encode_basestring


def written_json(value: Any, pad: str = "\n") -> str:
    """A value in the form of package JSON, without the final newline; Decimal keeps its digits."""
    if isinstance(value, str):
        return str(_quoted(value))
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = pad + "  "
        lines = [inner + _quoted(key) + ": " + written_json(value[key], inner) for key in sorted(value)]
        return "{" + ",".join(lines) + pad + "}"
    if isinstance(value, list):
        if not value:
            return "[]"
        inner = pad + "  "
        return "[" + ",".join([inner + written_json(item, inner) for item in value]) + pad + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False) if type(value) is not int else str(value)


class Bench:
    """A package lying open: what is edited here exists in memory alone."""

    def __init__(self, source: Source, sums: Mapping[str, str]) -> None:
        self.source = source
        self.sums = sums if isinstance(sums, Sums) else Sums(sums)
        self.changes: Dict[str, Optional[bytes]] = {}
        self.kinds: Dict[str, str] = {}

    def below(self, folder: str) -> List[str]:
        """Names of files below a folder as they stand now."""
        entries = self.source.entries
        names = [name for name in entries.below(folder) if name not in entries.odd()]
        touched = [name for name in self.changes if not folder or name.startswith(folder + "/")]
        if not touched:
            return names
        return self._below(set(names), folder)

    def _below(self, names: Set[str], folder: str) -> List[str]:
        for name, data in self.changes.items():
            if not folder or name.startswith(folder + "/"):
                (names.discard if data is None else names.add)(name)
        return sorted(names)

    def folders(self, parent: str) -> List[str]:
        """The folders right below a folder, in order."""
        if not any(name.startswith(parent + "/") for name in self.changes):
            return self.source.entries.folders(parent)
        cut = len(parent) + 1
        return sorted({parent + "/" + name[cut:].split("/")[0] for name in self.below(parent) if "/" in name[cut:]})

    def has(self, name: str) -> bool:
        """Whether the file is there now."""
        if name in self.changes:
            return self.changes[name] is not None
        return self.source.entries.find(name) == "file"

    def read(self, name: str) -> bytes:
        """Its bytes now."""
        data = self.changes.get(name)
        return self.source.read(name) if data is None else data

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        self.changes[name] = data

    def remove(self, name: str) -> None:
        """Take a file away."""
        self.changes[name] = None

    def place(self, name: str, kind: str) -> None:
        """Put something there that is no regular file."""
        self.changes.pop(name, None)
        self.kinds[name] = kind

    def load(self, name: str) -> Any:
        """A JSON file's value; numbers keep their digits."""
        return read_json(self.read(name))

    def store(self, name: str, value: Any) -> None:
        """Write a value in the form of package JSON."""
        self.put(name, (written_json(value) + "\n").encode())

    @contextmanager
    def edit(self, name: str) -> Iterator[Any]:
        """A JSON file's value, stored again when the block ends."""
        value = self.load(name)
        yield value
        self.store(name, value)

    def body(self, folder: str, data: bytes) -> str:
        """Store a body beside a comparison or an attempt and give its hash."""
        name = sha256(data)
        self.put("%s/bodies/%s" % (folder, name), data)
        return name

    def reseal(self) -> None:
        """Make index hashes, manifest counts and SHA256SUMS true again."""
        for index, key in INDICES.items():
            if self.has(index):
                self._reseal_index(index, key)
        if self.has(LIFECYCLE_INDEX):
            self._reseal_lifecycle()
        if self.has("manifest.json"):
            self._reseal_manifest()
        self.reseal_sums()

    def _reseal_index(self, index: str, key: str) -> None:
        folder = {
            "results/settings-index.json": "results/settings/",
            "results/converged-index.json": "results/converged/",
            "results/incomplete-settings-index.json": "results/incomplete/",
        }[index]
        if not any(name.startswith(folder) for name in self.changes):
            return
        value = self.load(index)
        for entry in value.get(key, []):
            for file in list(entry.get("files", {})):
                name = "%s/%s.json" % (entry.get("folder"), file)
                if name in self.changes and self.has(name) and entry["files"][file] is not None:
                    entry["files"][file] = sha256(self.read(name))
        self.store_if_other(index, value)

    def _reseal_lifecycle(self) -> None:
        if any(name.startswith("results/lifecycle/") for name in self.changes):
            value = self.load(LIFECYCLE_INDEX)
            for entry in value.get("records", []):
                if entry.get("path") in self.changes and self.has(entry["path"]):
                    entry["sha256"] = sha256(self.read(entry["path"]))
            self.store_if_other(LIFECYCLE_INDEX, value)

    def _reseal_manifest(self) -> None:
        moved = sum(
            (data is not None) - (name in self.source.entries)
            for name, data in self.changes.items()
            if "/bodies/" in name
        )
        if moved:
            with self.edit("manifest.json") as manifest:
                manifest["counts"]["bodies"] += moved

    def store_if_other(self, name: str, value: Any) -> None:
        """Store a value unless the file holds those bytes already."""
        data = (written_json(value) + "\n").encode()
        if data != self.read(name):
            self.put(name, data)

    def reseal_sums(self) -> None:
        """Write SHA256SUMS anew for what is there now."""
        digests: Dict[str, Optional[str]] = dict.fromkeys(self.kinds)
        for name, data in self.changes.items():
            if name != SUMS:
                digests[name] = None if data is None else sha256(data)
        self.put(SUMS, self.sums.written(digests))

    def overlay(self) -> Overlay:
        """The damaged package; changes that change nothing are left out."""
        real = {
            name: data
            for name, data in self.changes.items()
            if (data is None and name in self.source.entries)
            or (data is not None and (self.source.entries.find(name) != "file" or self.source.read(name) != data))
        }
        return Overlay(self.source, real, self.kinds)


class Outcome(NamedTuple):
    """What became of one mutation."""

    mutation: str
    altered: str
    expected: str
    observed: Tuple[str, ...]
    verdict: str
    resealed: bool

    def blind(self) -> bool:
        """Whether this outcome is a failure of the verifier."""
        return self.verdict in ("survived", "crashed") or (self.verdict == "inert" and self.altered != NOTHING)


def sums_of(source: Source) -> Sums:
    """SHA256SUMS of a package that verified."""
    return Sums(read_sums(source.read(SUMS)))


def try_mutation(
    code: str,
    mutation: Mutation,
    source: Source,
    families: Sequence[Family],
    before: Report,
    bench: Bench,
    recall: Optional[Recall] = None,
) -> Outcome:
    """Damage the package on a fresh bench and judge it again: killed, survived, crashed or inert."""
    try:
        altered = mutation.damage(bench)
        if altered is not None and mutation.resealed:
            bench.reseal()
    except Exception as error:
        return Outcome(mutation.name, "damage failed: %r" % error, code, (), "crashed", mutation.resealed)
    if altered is None:
        return Outcome(mutation.name, NOTHING, code, (), "inert", mutation.resealed)
    overlay = bench.overlay()
    if not overlay.changed:
        return Outcome(mutation.name, altered, code, (), "inert", mutation.resealed)
    report = judge(overlay, families, before, overlay.changed, overlay.moved, recall=recall)
    observed = tuple(sorted(report.codes()))
    if report.crashes:
        return Outcome(mutation.name, altered + "; " + report.crashes[0], code, observed, "crashed", mutation.resealed)
    return Outcome(
        mutation.name, altered, code, observed, "killed" if code in observed else "survived", mutation.resealed
    )


def try_all(
    source: Source, families: Sequence[Family], before: Report, rows: Sequence[Check], recall: Optional[Recall] = None
) -> Iterator[Outcome]:
    """Every mutation of every row, in order; `before` is the report on the package unaltered, judged with the recall."""
    sums = sums_of(source)
    recall = recall or Recall()
    recall.sums, recall.lines = sums, frozenset(sums.lines())
    for row in rows:
        for mutation in row.mutations:
            yield try_mutation(row.code, mutation, source, families, before, Bench(source, sums), recall)
