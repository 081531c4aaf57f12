"""Functional attempts: raw bodies classified again, receipts matched, the outcome and the scope worked out."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from checking.check import Complaint, Scope
from checking.package import View
from checking.reading import JsonFault, read_body, read_json, shown
from checking.rules import receipts, samples, shapes, shapes_attempt
from checking.rules.comparison import LEDGER, Cited, Citing, Comparison, Row, engine_of, ledgers_below
from checking.rules.index import Table
from checking.rules.shapes import ABORT_REASONS
from checking.shape import Shape

PARENT = "results/converged"
INDEX = "results/converged-index.json"
GOOD = ("NORMAL", "CAPPED")
SETUP = ("BLOCKED_ACCESS", "MISSING_IMAGE", "MISSING_STORAGE")
REASONS = {
    "BLOCKED_ACCESS": ("ACCESS_DENIED",),
    "MISSING_IMAGE": ("PROGRAM_NOT_FOUND",),
    "MISSING_STORAGE": ("MODEL_NOT_FOUND", "DISK_TOO_SMALL"),
    "NATIVE_FAILURE": ("NOT_READY", "ENGINE_DIED", "BAD_ANSWER", "ROUTING_UNEQUAL"),
    "EXACT_REJECTED": ("TOKENS_DIFFER", "NOT_ADMITTED"),
    "EXACT_PARTIAL_ONE_PREFILL": ("ONE_PREFILL",),
    "SUCCESS": ("OK",),
}


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The three documents of an attempt and its ledgers."""
    wanted: List[Tuple[str, Shape]] = [
        (folder + "/attempt.json", shapes_attempt.ATTEMPT),
        (folder + "/samples.json", shapes.SAMPLES),
        (folder + "/controls.json", shapes_attempt.CONTROLS),
    ]
    return wanted + ledgers_below(view, folder)


class Attempt(Comparison):
    """One attempt. It shares with a comparison what samples, ledgers and bodies are."""

    document = "attempt.json"

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.controls: List[Row] = scope.document("controls.json")["controls"]

    @staticmethod
    def arm_of(row: Row) -> str:
        """An attempt has no arms."""
        return "attempt" if row["arm"] is None else "?"

    def cited(self) -> Iterator[Cited]:
        told = self.path("attempt.json")
        for launch in self.data["launches"]:
            if launch["ready"] is not None:
                at = (told, "/launches")
                yield at, launch["ready"]["requestSha256"], None
                yield at, launch["ready"]["responseSha256"], None
        if self.data["exact"] is not None and self.samples:
            yield (told, "/exact/requestSha256"), self.data["exact"]["requestSha256"], None
        for one in self.controls:
            if one["kept"]:
                yield (self.path("controls.json"), one["id"]), one["sha256"], one["bytes"]

    def citing(self) -> Iterator[Citing]:
        yield self.path("samples.json"), "offer", self.samples
        for key, rows in self.ledgers.items():
            yield self.ledger_names[key], "sequence", [row for row in rows if row["traffic"]]

    def classes(self) -> "Counter[str]":
        """How the stored answers classify."""
        return Counter(told.classification if told else "MALFORMED" for told in self.answers)

    def traffic_counts(self) -> Dict[str, int]:
        """Exchanges of traffic that each worker's ledger holds."""
        counts = {one["alias"]: 0 for one in self.data["workers"]}
        for worker, _ in self.traffic("attempt"):
            counts[worker] = counts.get(worker, 0) + 1
        return counts


def outcome(subject: Attempt) -> Optional[Tuple[str, Optional[str]]]:
    """(outcome, reason) that the evidence gives; None where only the record can tell why nothing ran.

    A reason of None means that the evidence tells the outcome but not which of its reasons.
    """
    data = subject.data
    counts = subject.classes()
    bad = sum(count for name, count in counts.items() if name not in GOOD)
    traffic = subject.traffic_counts()
    exact = data["exact"]
    if exact is not None and exact["tokenIdsEqual"] is False:
        return "EXACT_REJECTED", "TOKENS_DIFFER"
    if data["surface"] == "exact" and subject.samples and not sum(traffic.values()):
        return "EXACT_REJECTED", "NOT_ADMITTED"
    if bad:
        return "NATIVE_FAILURE", None
    if not subject.samples:
        return None
    if data["surface"] == "exact":
        engaged = sum(1 for count in traffic.values() if count)
        if len(traffic) > 1 and engaged == 1:
            return "EXACT_PARTIAL_ONE_PREFILL", "ONE_PREFILL"
    if data["surface"] == "rr" and len(set(traffic.values())) > 1:
        return "NATIVE_FAILURE", "ROUTING_UNEQUAL"
    if not counts["NORMAL"]:
        return "NATIVE_FAILURE", None
    return "SUCCESS", "OK"


def _at(subject: Attempt, pointer: str) -> str:
    return subject.path("attempt.json") + "#" + pointer


def hold_files(subject: Attempt) -> Iterator[Complaint]:
    """An attempt's folder holds its documents, the ledgers of its workers and bodies; nothing else."""
    cut = len(subject.folder) + 1
    workers = [one["alias"] for one in subject.data["workers"]]
    for name in subject.view.below(subject.folder, subject.bodies.folder):
        inner = name[cut:]
        if inner.startswith("bodies/") and len(inner) == 71 and not inner[7:].strip("0123456789abcdef"):
            continue
        if inner in ("attempt.json", "samples.json", "controls.json"):
            continue
        match = LEDGER.match(inner[8:]) if inner.startswith("ledgers/") else None
        if match and match.group(1) == "attempt" and match.group(2) in workers:
            continue
        yield (name, "a file that no attempt has", "documents, ledgers of its workers and bodies")


def hold_names(subject: Attempt) -> Iterator[Complaint]:
    """Every document names the attempt, every ledger its worker."""
    own = subject.folder.rpartition("/")[2]
    told = (
        ("attempt.json#/id", subject.data["id"]),
        ("attempt.json#/run", subject.data["run"]),
        ("samples.json#/comparison", subject.scope.document("samples.json")["comparison"]),
        ("controls.json#/attempt", subject.scope.document("controls.json")["attempt"]),
    )
    for name, value in told:
        if value != own:
            yield (subject.path(name), value, own)
    for (arm, worker), name in subject.ledger_names.items():
        ledger = subject.scope.documents[name]
        if (ledger["arm"], ledger["worker"]) != (arm, worker):
            yield (name, "%s of %s" % (ledger["worker"], ledger["arm"]), "%s of %s" % (worker, arm))


def hold_sequence(subject: Attempt) -> Iterator[Complaint]:
    """Receipts are numbered without a gap; where a run died, an exchange that was open may have left one."""
    return (receipts.hold_sequence if subject.data["ended"] else receipts.hold_increasing)(subject)


def hold_ids(subject: Attempt) -> Iterator[Complaint]:
    """A request id is that of a sample with the same hashes; where a run died, an exchange may have none."""
    return (receipts.hold_ids if subject.data["ended"] else receipts.hold_ids_seen)(subject)


def hold_matched(subject: Attempt) -> Iterator[Complaint]:
    """Every receipt belongs to one sample; where a run died, one that names no sample that was kept may have none."""
    kept = {row["offer"] for row in subject.samples}
    lost = {
        "%s#%d" % (subject.ledger_names[("attempt", worker)], row["sequence"])
        for worker, row in subject.traffic("attempt")
        if row["requestId"] not in kept and not subject.data["ended"]
    }
    return (one for one in receipts.hold_matched(subject) if one[0] not in lost)


def hold_offers(subject: Attempt) -> Iterator[Complaint]:
    """The samples are attempt-001 and on, without a gap; functional, of no arm, on workers of the attempt.

    Where a run died, what was open has no sample.
    """
    right = ["attempt-%03d" % number for number in range(1, len(subject.samples) + 1)]
    told = [row["offer"] for row in subject.samples]
    if told != right and (subject.data["ended"] or told != sorted(set(told))):
        yield (
            subject.path("samples.json"),
            shown(told, 60),
            "offers attempt-001 to attempt-%03d in order" % len(right),
        )
    workers = [one["alias"] for one in subject.data["workers"]]
    for row in subject.samples:
        if (row["phase"], row["arm"], row["repetition"]) != ("functional", None, None):
            yield (subject.at(row), "%s of an arm" % row["phase"], "functional, arm and repetition null")
        if row["worker"] is not None and row["worker"] not in workers:
            yield (subject.at(row), shown(row["worker"]), "a worker of the attempt")


def hold_counts(subject: Attempt) -> Iterator[Complaint]:
    """Requests and classes are counted as the stored bodies classify, capped ones too.

    Where a run died, what was open was offered and has no sample.
    """
    requests, kept = subject.data["requests"], len(subject.samples)
    if requests < kept or (requests > kept and subject.data["ended"]):
        yield (_at(subject, "/requests"), str(requests), "%d samples" % kept)
    told = {name: count for name, count in subject.data["counts"].items() if count}
    if told != dict(subject.classes()):
        yield (_at(subject, "/counts"), shown(told), shown(dict(subject.classes())))


def hold_outcome(subject: Attempt) -> Iterator[Complaint]:
    """The outcome follows from bodies, receipts and token ids; where nothing ran it cannot be a success."""
    told = (subject.data["outcome"], subject.data["reason"])
    right = outcome(subject)
    if not subject.data["ended"]:
        if told[0] != "NOT_ATTEMPTED" or told[1] not in ABORT_REASONS:
            yield (
                _at(subject, "/outcome"),
                "%s, %s" % told,
                "NOT_ATTEMPTED and the code of its end, since it did not end",
            )
    elif told[0] in ("USER_DEFERRED", "NOT_ATTEMPTED"):
        yield (_at(subject, "/outcome"), told[0], "an outcome that an attempt can have")
    elif told[1] not in REASONS[told[0]]:
        yield (_at(subject, "/reason"), told[1], " or ".join(REASONS[told[0]]))
    elif right is None:
        if told[0] not in SETUP and told[1] not in ("NOT_READY", "ENGINE_DIED"):
            yield (_at(subject, "/outcome"), told[0], "an outcome of an attempt without samples")
    elif told[1] == "ENGINE_DIED" and right[0] == "NATIVE_FAILURE":
        return
    elif told[0] != right[0] or right[1] not in (None, told[1]):
        yield (_at(subject, "/outcome"), "%s, %s" % told, "%s, %s" % (right[0], right[1] or "any of its reasons"))


def hold_setup(subject: Attempt) -> Iterator[Complaint]:
    """An attempt that failed in set-up has no samples and no ledgers; one that was not ended decides nothing."""
    if subject.data["outcome"] in SETUP and (subject.samples or subject.ledgers):
        yield (_at(subject, "/outcome"), subject.data["outcome"] + " with traffic", "no samples and no ledgers")
    if subject.data["ended"] is not (subject.data["endedAt"] is not None):
        yield (_at(subject, "/endedAt"), shown(subject.data["endedAt"]), "an instant exactly when ended")
    if subject.data["endedAt"] is not None and subject.data["endedAt"] < subject.data["startedAt"]:
        yield (_at(subject, "/endedAt"), subject.data["endedAt"], "not before " + subject.data["startedAt"])
    if subject.data["outcome"] == "SUCCESS" and not subject.data["ended"]:
        yield (_at(subject, "/ended"), "false", "true, since it is told a success")


def hold_shape(subject: Attempt) -> Iterator[Complaint]:
    """Topology, surface, workers, launches and gateway fit one another."""
    data = subject.data
    aliases = [(one["alias"], one["device"]) for one in data["workers"]]
    if len(set(aliases)) != len(aliases) or (data["topology"] == "two-worker" and len(aliases) != 2):
        yield (_at(subject, "/workers"), shown(aliases), "the workers of topology " + data["topology"])
    known = [one["alias"] for one in data["workers"]]
    for number, launch in enumerate(data["launches"]):
        if launch["worker"] not in known:
            yield (_at(subject, "/launches/%d/worker" % number), launch["worker"], "a worker of the attempt")
    if data["gateway"] is None and data["surface"] in ("rr", "exact") and subject.samples:
        yield (_at(subject, "/gateway"), "null", "the gateway that the requests went through")
    if (data["exact"] is None) is (data["surface"] == "exact") and subject.samples:
        yield (_at(subject, "/exact"), "null" if data["exact"] is None else "an object", "given on surface exact alone")


def hold_exact(subject: Attempt) -> Iterator[Complaint]:
    """Exact engagement: token ids as the kept tokenize answer has them, counts as the ledgers have them."""
    exact = subject.data["exact"]
    if exact is None:
        return
    observed, expected = exact["observedTokenIds"], exact["expectedTokenIds"]
    equal = None if observed is None else observed == expected
    if exact["tokenIdsEqual"] is not equal:
        yield (_at(subject, "/exact/tokenIdsEqual"), shown(exact["tokenIdsEqual"]), shown(equal))
    traffic = subject.traffic_counts()
    if exact["trafficPerWorker"] != traffic:
        yield (_at(subject, "/exact/trafficPerWorker"), shown(exact["trafficPerWorker"]), shown(traffic))
    engaged = sum(1 for count in traffic.values() if count)
    right = "PARTIAL_ONE_PREFILL" if len(traffic) > 1 and engaged == 1 else "ADMITTED" if engaged else "REJECTED"
    if equal is False and not engaged:
        right = "REJECTED"
    if exact["engagement"] != right:
        yield (_at(subject, "/exact/engagement"), exact["engagement"], right)
    for row in subject.samples:
        if row["requestSha256"] != exact["requestSha256"]:
            yield (subject.at(row), "request " + row["requestSha256"], exact["requestSha256"])
    control = next((one for one in subject.controls if one["id"] == exact["control"]), None)
    if observed is not None and (control is None or control["kind"] != "tokenize"):
        yield (_at(subject, "/exact/control"), shown(exact["control"]), "the tokenize control that gave the ids")
    elif observed is not None and control is not None and control["kept"] and subject.bodies.has(control["sha256"]):
        told = token_ids(subject.bodies.read(control["sha256"]))
        if told != observed:
            yield (_at(subject, "/exact/observedTokenIds"), shown(observed), shown(told))


def token_ids(body: bytes) -> Optional[List[int]]:
    """The token ids in a tokenize answer: `tokens`, `token_ids`, `input_ids` or `ids`, a list of integers."""
    try:
        value = read_json(body)
    except JsonFault:
        return None
    if isinstance(value, dict):
        for key in ("tokens", "token_ids", "input_ids", "ids"):
            if isinstance(value.get(key), list):
                value = value[key]
                break
    return value if isinstance(value, list) and all(type(one) is int for one in value) else None


def versions(subject: Attempt) -> Set[str]:
    """The versions that the engine told in kept controls."""
    told = set()
    for one in subject.controls:
        if one["kind"] == "version" and one["kept"] and one["status"] == 200 and subject.bodies.has(one["sha256"]):
            with suppress(JsonFault):
                value = read_body(subject.bodies.read(one["sha256"]))
                if isinstance(value, dict) and isinstance(value.get("version"), str):
                    told.add(value["version"])
    return told


def hold_scope(subject: Attempt) -> Iterator[Complaint]:
    """Only a success may be cited, for its own surface alone."""
    data, scope = subject.data, subject.data["scope"]
    if scope["accepted"] and data["outcome"] != "SUCCESS":
        yield (_at(subject, "/scope/accepted"), "true with " + data["outcome"], "true only with SUCCESS")
    if scope["accepted"] is not bool(scope["modes"]):
        yield (_at(subject, "/scope/modes"), shown(scope["modes"]), "modes exactly when accepted")
    for mode in scope["modes"]:
        if mode != data["surface"]:
            yield (_at(subject, "/scope/modes"), mode, "the surface that was tried: " + data["surface"])


def hold_controls(subject: Attempt) -> Iterator[Complaint]:
    """A kept control has its body, a withheld one a reason and no body; each id once."""
    seen = set()
    for one in subject.controls:
        at = "%s#%s" % (subject.path("controls.json"), shown(one["id"]))
        if one["id"] in seen:
            yield (at, "the id twice", "each control once")
        seen.add(one["id"])
        if one["kept"] is (one["withheldReason"] is not None):
            yield (
                at,
                "kept %s, reason %s" % (one["kept"], shown(one["withheldReason"])),
                "a reason exactly when withheld",
            )
        if not one["kept"] and subject.bodies.has(one["sha256"]) and not _cited_elsewhere(subject, one["sha256"]):
            yield (at, "the body of a withheld control", "its hash and reason alone")


def _cited_elsewhere(subject: Attempt, name: str) -> bool:
    return any(name == other for other, _ in subject.cited_lengths())


def hold_stored(subject: Attempt) -> Iterator[Complaint]:
    """Every hash that traffic and kept controls cite is a stored body."""
    return samples.hold_stored(subject)


def hold_cited(subject: Attempt) -> Iterator[Complaint]:
    """No body lies there that nothing cites; control receipts may cite theirs."""
    cited = {name for name, _ in subject.cited_lengths()}
    for rows in subject.ledgers.values():
        for key in ("requestSha256", "responseSha256"):
            cited.update([row[key] for row in rows])
    for name in sorted(subject.bodies.names - cited):
        yield (
            subject.bodies.path(name),
            "a body that nothing cites",
            "bodies of samples, receipts and kept controls only",
        )


def hold_synthetic(subject: Attempt) -> Iterator[Complaint]:
    """What the synthetic engine answered says so."""
    engine = engine_of(subject.view, subject.data["engine"])
    told = subject.data["synthetic"]
    if engine is None:
        yield (_at(subject, "/engine"), subject.data["engine"], "an engine of the manifest")
    elif (engine.get("adapter") == "synthetic") is not told:
        yield (_at(subject, "/synthetic"), shown(told), shown(not told))


def hold_balance(subject: Attempt) -> Iterator[Complaint]:
    """A round-robin success reached its workers equally often."""
    traffic = subject.traffic_counts()
    if subject.data["surface"] == "rr" and subject.data["outcome"] == "SUCCESS" and len(set(traffic.values())) != 1:
        yield (subject.path("ledgers"), shown(traffic), "equal counts")


def facts(subject: Attempt) -> Dict[str, Any]:
    """What the index, the matrix and the recipes are compared with."""
    data = subject.data
    keys = (
        "id", "case", "profile", "engine", "topology", "surface", "synthetic", "startedAt", "endedAt", "ended",
        "outcome", "reason",
    )  # fmt: skip
    row = {key: data[key] for key in keys}
    row["accepted"] = data["scope"]["accepted"]
    prints = [
        (row_["responseSha256"], str(row_["totalSeconds"]), str(row_["startedSeconds"])) for row_ in subject.samples
    ]
    return {
        "row": row,
        "run": data["run"],
        "normal": subject.classes()["NORMAL"],
        "modes": list(data["scope"]["modes"]),
        "versions": sorted(versions(subject)),
        "launches": list(data["launches"]),
        "prints": [("samples.json", repr(prints))] if len(prints) > 1 else [],
        "counts": {
            "attempts": 1,
            "functional samples": len(subject.samples),
            "receipts": sum(map(len, subject.ledgers.values())),
            "bodies": len(subject.bodies.names),
        },
    }


TABLE = Table(
    name=INDEX,
    key="attempts",
    parent=PARENT,
    document="attempt.json",
    kind="attempt",
    shape=shapes_attempt.CONVERGED_INDEX,
    one="an attempt",
    many="attempts",
    codes=("attempt-index", "attempt-index-files", "attempt-index-rows"),
)
