"""results/lifecycle-index.json: every lifecycle record of the package, by path, hash and experiments."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.package import View
from checking.shape import HASH, ID, LINE, VERSION, Keys, ListOf, Shape

lies = Later("checking.rules.lifecycle_index_lies")
NAME, RECORDS = "results/lifecycle-index.json", "results/lifecycle"
SHAPE = Keys(
    schemaVersion=VERSION, records=ListOf(Keys(id=ID, path=LINE, sha256=HASH, experiments=ListOf(LINE, least=1)))
)


class Index:
    """The index beside what lies in results/lifecycle/."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.rows: List[Dict[str, Any]] = scope.document(NAME)["records"]
        self.files = [name for name in scope.view.below(RECORDS) if name.endswith(".json")]
        self.known = scope.facts.get("lifecycle", {})


def find(view: View) -> List[str]:
    """One index, wherever there is one or a record that needs one."""
    return [""] if view.has(NAME) or view.below(RECORDS) else []


def documents(view: View, folder: str) -> Sequence[Tuple[str, Shape]]:
    """The index alone; records keep their own form."""
    return [(NAME, SHAPE)]


def _place(number: int, key: str) -> str:
    return "%s#/records/%d/%s" % (NAME, number, key)


def hold_paths(subject: Index) -> Iterator[Complaint]:
    """The index lists exactly the records that are there, each at results/lifecycle/<id>.json, sorted by id."""
    ids = [row["id"] for row in subject.rows]
    if ids != sorted(set(ids)):
        yield NAME + "#/records", " ".join(ids), "ids sorted, none twice"
    for number, row in enumerate(subject.rows):
        if row["path"] != "%s/%s.json" % (RECORDS, row["id"]):
            yield _place(number, "path"), row["path"], "%s/%s.json" % (RECORDS, row["id"])
        if row["path"] not in subject.files:
            yield _place(number, "path"), row["path"], "a record that is there"
    for name in subject.files:
        if name not in [row["path"] for row in subject.rows]:
            yield name, "a record that the index lacks", "a row of %s" % NAME


def hold_hashes(subject: Index) -> Iterator[Complaint]:
    """Each row has the SHA-256 of its record's bytes."""
    for number, row in enumerate(subject.rows):
        if row["path"] in subject.files and subject.view.digest(row["path"]) != row["sha256"]:
            yield _place(number, "sha256"), row["sha256"], subject.view.digest(row["path"])


def hold_experiments(subject: Index) -> Iterator[Complaint]:
    """Each row names the experiments of its record, in order."""
    for number, row in enumerate(subject.rows):
        facts = subject.known.get(row["path"])
        if facts and row["experiments"] != facts["experiments"]:
            yield _place(number, "experiments"), " ".join(row["experiments"]), " ".join(facts["experiments"])


CHECKS = (
    Check("lifecycle-index-paths", "the index lists exactly the records that are there", hold_paths, (Mutation("leave a record out of the index", lies.leave_record_out, resealed=False),)),
    Check("lifecycle-index-hashes", "the index has the hash of every record", hold_hashes, (Mutation("change a record's hash in the index", lies.other_hash, resealed=False),)),
    Check("lifecycle-index-experiments", "the index names the experiments of every record", hold_experiments, (Mutation("name another experiment in the index", lies.other_experiment, resealed=False),)),
)  # fmt: skip

FAMILY = Family(kind="package", find=find, documents=documents, open=Index, checks=CHECKS)
