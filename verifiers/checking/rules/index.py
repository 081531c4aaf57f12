"""One index, three tables: settings, functional attempts, incomplete comparisons; each against what is there."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.package import View
from checking.reading import shown
from checking.shape import Shape

lies = Later("checking.rules.index_lies")
Row = Dict[str, Any]
Change = Tuple[str, Callable[[List[Row]], Any]]


class Table(NamedTuple):
    """What distinguishes one index from another.

    `name` is its file, `key` where its rows stand, `parent` where its folders lie, `document` what a folder is told by,
    `kind` the family that judged the folders, `one` and `many` what a folder holds; `codes` are those of a row that is
    not there, of a hash and of what a row says.
    """

    name: str
    key: str
    parent: str
    document: str
    kind: str
    shape: Shape
    one: str
    many: str
    codes: Tuple[str, str, str]

    def documents(self, view: View, folder: str) -> List[Tuple[str, Shape]]:
        """The index."""
        return [(self.name, self.shape)]

    def find(self, view: View) -> Sequence[str]:
        """The folders that the index is of."""
        return view.folders(self.parent)


class Index:
    """An index, the folders that it is of, and what they were found to be."""

    def __init__(self, table: Table, scope: Scope) -> None:
        self.table = table
        self.view = scope.view
        self.rows: List[Row] = scope.document(table.name)[table.key]
        self.found: Dict[str, Any] = dict(scope.facts.get(table.kind, {}))
        self.folders = table.find(self.view)


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
            yield (name + "#" + row["id"], "folder " + shown(row["folder"]), "%s with %s" % (right, subject.table.one))
    ids = [row["id"] for row in subject.rows]
    if ids != sorted(ids):
        yield (name, "rows out of order", "rows sorted by id")
    for beside in subject.view.right_in(parent):
        yield (beside, "a file beside the " + subject.table.many, "folders of %s only" % subject.table.many)


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


def hold_distinct(subject: Index) -> Iterator[Complaint]:
    """A run is packaged once, and no folder holds a copy of another's samples."""
    runs: Dict[str, str] = {}
    prints: Dict[str, str] = {}
    for folder, facts in sorted(subject.found.items()):
        if facts is None:
            continue
        other = runs.setdefault(facts["run"], folder)
        if other != folder:
            at = "%s/%s#/run" % (folder, subject.table.document)
            yield (at, facts["run"], "a run of its own, not that of " + other)
        for place, mark in facts["prints"]:
            twin = prints.setdefault(mark, folder)
            if twin != folder:
                yield ("%s/%s" % (folder, place), "the samples of " + twin, "samples of its own")


def family(
    table: Table,
    says: Tuple[Change, ...],
    *own: Check,
    lists: Tuple[Change, ...] = (),
    subject: Callable[[Table, Scope], Any] = Index,
    facts: Callable[[Any], Any] = lambda subject: None,
) -> Family:
    """The family of an index. `says` alter what its rows say, `lists` which rows it has; no other index has the checks `own`."""

    def alone(name: str, change: Callable[[List[Row]], Any]) -> Mutation:
        return Mutation(name, partial(lies.tell, table, change), resealed=False)

    complete, files, rows = table.codes
    shared = (
        Check(
            complete,
            "each of the %s has one row of the index" % table.many,
            hold_complete,
            (
                alone("drop %s from the index" % table.one, lies.drop),
                alone("list %s that is not there" % table.one, lies.invent),
                Mutation("leave a file beside the " + table.many, partial(lies.stray_file, table)),
                *(alone(name, change) for name, change in lists),
            ),
        ),
        Check(
            files,
            "the hashes of the index are those of the files",
            hold_files,
            (alone("write another hash into the index of the " + table.many, lies.twist_hash),),
        ),
        Check(rows, "a row says what was found", hold_rows, tuple(alone(name, change) for name, change in says)),
    )
    return Family("package", lambda view: [""], partial(subject, table), shared + own, table.documents, facts)
