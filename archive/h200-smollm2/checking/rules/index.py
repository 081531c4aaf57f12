"""One index, three tables: settings, functional attempts, incomplete comparisons; each against what is there."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from checking.check import Complaint, Scope
from checking.package import View
from checking.reading import shown
from checking.shape import Shape

Row = Dict[str, Any]


class Table(NamedTuple):
    """What distinguishes one index from another.

    `name` is its file, `key` where its rows stand, `parent` where its folders lie, `kind` the family that judged them.
    `holding` and `beside` word the findings: what a folder holds, and what lies beside the folders.
    """

    name: str
    key: str
    parent: str
    kind: str
    shape: Shape
    holding: str
    beside: Tuple[str, str]

    def documents(self, view: View, folder: str) -> List[Tuple[str, Shape]]:
        """The index."""
        return [(self.name, self.shape)]

    def find(self, view: View) -> Sequence[str]:
        """The folders that the index is of."""
        return view.folders(self.parent)


class Index:
    """An index, the folders that it is of, and what they were found to be."""

    table: Table

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.rows: List[Row] = scope.document(self.table.name)[self.table.key]
        self.found: Dict[str, Any] = dict(scope.facts.get(self.table.kind, {}))
        self.folders = self.table.find(self.view)


def hold_complete(subject: Index) -> Iterator[Complaint]:
    """Every folder has one row, every row a folder, rows are sorted by id, and nothing lies beside the folders."""
    name, parent = subject.table.name, subject.table.parent
    told = Counter(row["folder"] for row in subject.rows)
    for folder in subject.folders:
        if told[folder] != 1:
            yield (name, "%d rows for %s" % (told[folder], folder), "one")
    there = set(subject.folders)
    for row in subject.rows:
        right = "%s/%s" % (parent, row["id"])
        if row["folder"] not in there or row["folder"] != right:
            yield (name + "#" + row["id"], "folder " + shown(row["folder"]), right + subject.table.holding)
    ids = [row["id"] for row in subject.rows]
    if ids != sorted(ids):
        yield (name, "rows out of order", "rows sorted by id")
    for beside in subject.view.right_in(parent):
        yield (beside, *subject.table.beside)


def hold_files(subject: Index) -> Iterator[Complaint]:
    """The hashes of a row are those of its files."""
    for row in subject.rows:
        for key, told in sorted(row["files"].items()):
            name = "%s/%s.json" % (row["folder"], key)
            if subject.view.has(name) and subject.view.digest(name) != told:
                yield ("%s#%s/files/%s" % (subject.table.name, row["id"], key), told, subject.view.digest(name))


def hold_rows(subject: Index) -> Iterator[Complaint]:
    """A row says what was found."""
    for row in subject.rows:
        found = subject.found.get(row["folder"])
        for key, value in (found["row"] if found else {}).items():
            if row[key] != value:
                yield ("%s#%s/%s" % (subject.table.name, row["id"], key), shown(row[key]), shown(value))
