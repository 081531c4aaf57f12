"""results/lifecycle-index.json: every lifecycle record of the package, by path, hash and experiments."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.damage import LIFECYCLE_INDEX, Bench
from checking.package import View
from checking.rules.lifecycle_damage import RECORDS
from checking.shape import HASH, ID, LINE, VERSION, Keys, ListOf, Shape

SHAPE = Keys(
    schemaVersion=VERSION, records=ListOf(Keys(id=ID, path=LINE, sha256=HASH, experiments=ListOf(LINE, least=1)))
)


class Index:
    """The index beside what lies in results/lifecycle/."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.rows: List[Dict[str, Any]] = scope.document(LIFECYCLE_INDEX)["records"]
        self.files = [name for name in scope.view.below(RECORDS) if name.endswith(".json")]
        self.known = scope.facts.get("lifecycle", {})


def find(view: View) -> List[str]:
    """One index, wherever there is one or a record that needs one."""
    return [""] if view.has(LIFECYCLE_INDEX) or view.below(RECORDS) else []


def documents(view: View, folder: str) -> Sequence[Tuple[str, Shape]]:
    """The index alone; records keep their own form."""
    return [(LIFECYCLE_INDEX, SHAPE)]


def _place(number: int, key: str) -> str:
    return "%s#/records/%d/%s" % (LIFECYCLE_INDEX, number, key)


def hold_paths(subject: Index) -> Iterator[Complaint]:
    """The index lists exactly the records that are there, each at results/lifecycle/<id>.json, sorted by id."""
    ids = [row["id"] for row in subject.rows]
    if ids != sorted(set(ids)):
        yield LIFECYCLE_INDEX + "#/records", " ".join(ids), "ids sorted, none twice"
    for number, row in enumerate(subject.rows):
        if row["path"] != "%s/%s.json" % (RECORDS, row["id"]):
            yield _place(number, "path"), row["path"], "%s/%s.json" % (RECORDS, row["id"])
        if row["path"] not in subject.files:
            yield _place(number, "path"), row["path"], "a record that is there"
    for name in subject.files:
        if name not in [row["path"] for row in subject.rows]:
            yield name, "a record that the index lacks", "a row of %s" % LIFECYCLE_INDEX


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


def _edit(name: str, change: Any) -> Mutation:
    def damage(bench: Bench) -> Optional[str]:
        if not bench.has(LIFECYCLE_INDEX):
            return None
        index = bench.load(LIFECYCLE_INDEX)
        if not index["records"]:
            return None
        change(index["records"])
        bench.store(LIFECYCLE_INDEX, index)
        bench.reseal_sums()
        return "%s#/records/0" % LIFECYCLE_INDEX

    return Mutation(name, damage, resealed=False)


def _zero_hash(rows: List[Dict[str, Any]]) -> None:
    rows[0]["sha256"] = "0" * 64


def _other_experiment(rows: List[Dict[str, Any]]) -> None:
    rows[0]["experiments"] = ["another-experiment"]


CHECKS = (
    Check("lifecycle-index-paths", "the index lists exactly the records that are there", hold_paths, (_edit("leave a record out of the index", lambda rows: rows.pop(0)),)),
    Check("lifecycle-index-hashes", "the index has the hash of every record", hold_hashes, (_edit("change a record's hash in the index", _zero_hash),)),
    Check("lifecycle-index-experiments", "the index names the experiments of every record", hold_experiments, (_edit("name another experiment in the index", _other_experiment),)),
)  # fmt: skip

FAMILY = Family(kind="package", find=find, documents=documents, open=Index, checks=CHECKS)
