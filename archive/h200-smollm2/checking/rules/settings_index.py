"""settings-index.json against the comparisons that are there."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from checking.arithmetic import MAIN_TOTAL, WARM_TOTAL
from checking.check import Complaint, Scope
from checking.package import View
from checking.reading import shown
from checking.rules import shapes
from checking.shape import Shape

INDEX = "results/settings-index.json"
PARENT = "results/settings"


def folders(view: View, parent: str) -> List[str]:
    """The folders right below one, in order."""
    return view.folders(parent)


class SettingsIndex:
    """The index, and what the comparisons were found to be."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.rows: List[Dict[str, Any]] = scope.document(INDEX)["comparisons"]
        self.found: Dict[str, Any] = dict(scope.facts.get("comparison", {}))
        self.folders = folders(self.view, PARENT)


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The index."""
    return [(INDEX, shapes.SETTINGS_INDEX)]


def hold_complete(subject: SettingsIndex) -> Iterator[Complaint]:
    """Every folder below results/settings has one row, every row a folder, and rows are sorted by id."""
    told = [row["folder"] for row in subject.rows]
    for folder in subject.folders:
        if told.count(folder) != 1:
            yield (INDEX, "%d rows for %s" % (told.count(folder), folder), "one")
    for row in subject.rows:
        if row["folder"] not in subject.folders or row["folder"] != "%s/%s" % (PARENT, row["id"]):
            yield (
                INDEX + "#" + row["id"],
                "folder " + shown(row["folder"]),
                "%s/%s with a comparison" % (PARENT, row["id"]),
            )
    ids = [row["id"] for row in subject.rows]
    if ids != sorted(ids):
        yield (INDEX, "rows out of order", "rows sorted by id")
    for name in subject.view.below(PARENT):
        if name.count("/") < 3:
            yield (name, "a file beside the comparisons", "folders of comparisons only")


def hold_files(subject: SettingsIndex) -> Iterator[Complaint]:
    """The hashes of a row are those of its files."""
    for row in subject.rows:
        for key, told in sorted(row["files"].items()):
            name = "%s/%s.json" % (row["folder"], key)
            if subject.view.has(name) and subject.view.digest(name) != told:
                yield ("%s#%s/files/%s" % (INDEX, row["id"], key), told, subject.view.digest(name))


def hold_rows(subject: SettingsIndex) -> Iterator[Complaint]:
    """A row says of a comparison what the comparison was found to be."""
    for row in subject.rows:
        facts = subject.found.get(row["folder"])
        if facts is None:
            continue
        for key, value in facts["row"].items():
            if row[key] != value:
                yield ("%s#%s/%s" % (INDEX, row["id"], key), shown(row[key]), shown(value))


def hold_distinct(subject: SettingsIndex) -> Iterator[Complaint]:
    """No comparison is a copy of another: a run is packaged once, and no main batch comes twice."""
    runs: Dict[str, str] = {}
    batches: Dict[str, str] = {}
    for folder, facts in sorted(subject.found.items()):
        if facts is None:
            continue
        other = runs.setdefault(facts["run"], folder)
        if other != folder:
            yield (folder + "/comparison.json#/run", facts["run"], "a run of its own, not that of " + other)
        for arm, batch in facts["batches"]:
            first = batches.setdefault(batch, folder)
            if first != folder:
                yield ("%s/samples.json#%s" % (folder, arm), "the main batch of " + first, "a batch of its own")


def facts(subject: SettingsIndex) -> Dict[str, Any]:
    """Counts over all comparisons."""
    return {
        "counts": {
            "comparisons": len(subject.rows),
            "main samples": len(subject.rows) * MAIN_TOTAL,
            "warm samples": len(subject.rows) * WARM_TOTAL,
        }
    }
