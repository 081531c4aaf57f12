"""A comparison, complete or not, as the evidence that its files give: the subject of several rule files."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from checking.check import Scope
from checking.package import Unreadable, View
from checking.plan import MAIN_PER_ARM, ORDER, RR_WARM, WORKERS, Number
from checking.reading import JsonFault, read_json
from checking.rules import shapes
from checking.rules.answers import NO_DONE, Answer, Request, answer, read_request
from checking.shape import Shape

LEDGER = re.compile(r"(r[1-3]-[ab]|attempt)\.(worker-[1-9][0-9]?)\.json\Z")
ARMS = tuple("r%d-%s" % (place // 2 + 1, arm.lower()) for place, arm in enumerate(ORDER))
PHASES = (("native-warm", WORKERS), ("rr-warm", RR_WARM), ("main", MAIN_PER_ARM))
OFFERS = tuple(
    "%s-%s-%03d" % (arm, phase, number) for arm in ARMS for phase, count in PHASES for number in range(1, count + 1)
)
TRAFFIC = frozenset(("/v1/chat/completions", "/v1/completions", "/v1/embeddings"))

Row = Dict[str, Any]


Spot = Tuple[str, object]
"""A document and a place in it, told as `document#place` once there is something to complain of."""

Cited = Tuple[Spot, str, Optional[int]]
"""Where a body is cited, its hash, and its length where that is told."""

Citing = Tuple[str, str, List[Row]]
"""A document, the key that names a row of it, and rows each of which cites a request and a response."""

Traffic = List[Tuple[str, Row]]
"""Workers and receipts of traffic."""

_REQUEST = itemgetter("requestSha256", "requestBytes")
_RESPONSE = itemgetter("responseSha256", "responseBytes")

_ARM_IDS = {(number, arm): "r%d-%s" % (number, arm.lower()) for number in (1, 2, 3) for arm in "AB"}


def arm_id(row: Row) -> str:
    """`r1-a` of a row with repetition and arm; `attempt` where both are null."""
    known = _ARM_IDS.get((row["repetition"], row["arm"]))
    if known is None:
        known = "attempt" if row["arm"] is None else "r%s-%s" % (row["repetition"], row["arm"].lower())
    return known


def ledgers_below(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The ledgers that lie in a folder, as documents."""
    below = folder + "/ledgers"
    return [(name, shapes.LEDGER) for name in view.below(below) if LEDGER.match(name[len(below) + 1 :])]


def adapter_of(view: View, engine: str) -> Optional[str]:
    """The adapter of an engine by the manifest; None when the manifest does not tell."""
    found = engine_of(view, engine)
    return found["adapter"] if found and isinstance(found.get("adapter"), str) else None


def engine_of(view: View, engine: str) -> Optional[Row]:
    """The manifest's entry of an engine; None when there is none that can be read."""
    found: Optional[Row] = view.derive("manifest.json", _engine, engine)
    return found


@lru_cache(maxsize=2)
def _engines(manifest: bytes) -> Dict[str, Row]:
    """The engines of a manifest's bytes by id; none when it cannot be read."""
    try:
        return {one["id"]: one for one in reversed(read_json(manifest)["engines"])}
    except (JsonFault, KeyError, TypeError):
        return {}


def _engine(engine: str, manifest: Optional[bytes]) -> Optional[Row]:
    """The entry of an engine in a manifest's bytes."""
    return _engines(manifest or b"").get(engine)


def peek(view: View, name: str) -> Any:
    """A document that another family judges: its value, or {} when there is none that can be read."""
    if not view.has(name):
        return {}
    recall = view.recall
    try:
        key = (view.digest(name), 0)
        if recall is not None and key in recall.documents:
            return recall.documents[key]
        value = read_json(view.read(name))
    except (JsonFault, Unreadable):
        return {}
    if recall is not None:
        recall.documents[key] = value
    return value


class Bodies:
    """The stored bodies beside a comparison or an attempt; each is read once."""

    def __init__(self, scope: Scope, engine: str, folder: str = "bodies") -> None:
        self.view = scope.view
        self.folder = scope.path(folder)
        self.names: Set[str] = set(self.view.inside(self.folder))
        self._odd = {name[len(self.folder) + 1 :] for name in self.view.odd(self.folder)}
        self.owes_done = adapter_of(self.view, engine) not in NO_DONE
        self.lengths: Dict[str, int] = {}
        self.digests: Dict[str, str] = {}
        self._requests: Dict[str, Request] = {}
        self._answers: Dict[Tuple[Any, ...], Answer] = {}

    def path(self, name: str) -> str:
        """Where a body is stored."""
        return "%s/%s" % (self.folder, name)

    def has(self, name: str) -> bool:
        """Whether the body is stored as a file."""
        return name in self.names and name not in self._odd

    def read(self, name: str) -> bytes:
        """The bytes of a body; its length and digest are kept."""
        data, self.digests[name] = self.view.take(self.path(name))
        self.lengths[name] = len(data)
        return data

    def measure(self, name: str) -> None:
        """Make length and digest of a body known, from memory where the same bytes were read before."""
        recall = self.view.recall
        if recall is not None and name not in self.digests:
            digest = self.view.digest(self.path(name))
            if digest in recall.sizes:
                self.digests[name], self.lengths[name] = digest, recall.sizes[digest]
                return
        if name not in self.digests:
            self.read(name)
            if recall is not None and len(recall.sizes) < recall.MOST:
                recall.sizes[self.digests[name]] = self.lengths[name]

    def request(self, name: str) -> Request:
        """What a request body asks for."""
        if name not in self._requests:
            self._requests[name] = read_request(self.read(name)) if self.has(name) else Request("chat", False, {})
        return self._requests[name]

    def answer(self, row: Row) -> Optional[Answer]:
        """What follows from the stored response of a sample; None when it is not stored."""
        key = (row["responseSha256"], row["transport"], row["status"], row["requestSha256"])
        known = self._answers.get(key)
        if known is None:
            if not self.has(row["responseSha256"]):
                return None
            request = self.request(row["requestSha256"])
            recall, deep = self.view.recall, None
            if recall is not None:
                self.measure(row["responseSha256"])
                deep = (self.digests[row["responseSha256"]], *key[1:3], request.kind, request.streaming, self.owes_done)
                known = recall.answers.get(deep)
            if known is None:
                data = self.read(row["responseSha256"])
                known = answer(row["transport"], row["status"], request, data, self.owes_done)
                if recall is not None and len(recall.answers) < recall.MOST:
                    recall.answers[deep or ()] = known
            self._answers[key] = known
        return known


class Comparison:
    """One comparison: its documents, its samples by arm and phase, its receipts by arm and worker."""

    document = "comparison.json"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.view = scope.view
        self.folder = scope.folder
        self.data: Row = scope.document(self.document)
        self.samples: List[Row] = scope.document("samples.json")["samples"]
        self.snapshots: List[Row] = scope.document("snapshots.json")["snapshots"] if self._has_snapshots() else []
        self.decision: Optional[Row] = scope.documents.get(scope.path("decision.json"))
        self.ledgers: Dict[Tuple[str, str], List[Row]] = {}
        self.ledger_names: Dict[Tuple[str, str], str] = {}
        for name, value in scope.documents.items():
            match = LEDGER.match(name.rpartition("/")[2])
            if match:
                self.ledgers[(match.group(1), match.group(2))] = value["receipts"]
                self.ledger_names[(match.group(1), match.group(2))] = name
        self.bodies = Bodies(scope, self.data.get("engine", ""))
        self.by_phase: Dict[Tuple[str, str], List[Row]] = {}
        for row in self.samples:
            self.by_phase.setdefault((self.arm_of(row), row["phase"]), []).append(row)
        self.by_arm: Dict[str, List[Row]] = {}
        for row in self.samples:
            self.by_arm.setdefault(self.arm_of(row), []).append(row)
        self._keep()
        self.derived: Optional[Row] = None

    def _keep(self) -> None:
        """Make room for what is worked out once and asked for by several checks."""
        self._answers: Optional[List[Optional[Answer]]] = None
        self._cited: Optional[Set[Tuple[str, Optional[int]]]] = None
        self._traffic: Dict[str, Traffic] = {}
        self._spans: Dict[Tuple[str, str], List[Tuple[Number, Number]]] = {}
        self.paired: Dict[str, bool] = {}
        self.witnessed: Dict[str, List[Tuple[Spot, Row, Row]]] = {}

    @staticmethod
    def arm_of(row: Row) -> str:
        """The arm whose sample this is."""
        return arm_id(row)

    def _has_snapshots(self) -> bool:
        return self.scope.path("snapshots.json") in self.scope.documents

    def path(self, name: str) -> str:
        """A file of this comparison from the top of the package."""
        return self.scope.path(name)

    def at(self, row: Row) -> str:
        """Where a sample stands, for a finding."""
        return "%s#%s" % (self.path("samples.json"), row["offer"])

    @property
    def workers(self) -> List[str]:
        """Aliases of the workers, in order."""
        return [one["alias"] for one in self.data["workers"]]

    @property
    def answers(self) -> List[Optional[Answer]]:
        """What follows from each sample's stored response, in the order of the samples."""
        if self._answers is None:
            self._answers = [self.bodies.answer(row) for row in self.samples]
        return self._answers

    def main(self, arm: str) -> List[Row]:
        """The main samples of an arm."""
        return self.by_phase.get((arm, "main"), [])

    def spans(self, arm: str, phase: str) -> List[Tuple[Number, Number]]:
        """When each sample of an arm's phase began and ended."""
        known = self._spans.get((arm, phase))
        if known is None:
            starts = [(row["startedSeconds"], row["totalSeconds"]) for row in self.by_phase.get((arm, phase), [])]
            known = self._spans[(arm, phase)] = [(start, start + total) for start, total in starts]
        return known

    def traffic(self, arm: str) -> Traffic:
        """(worker, receipt) of all traffic of an arm."""
        known = self._traffic.get(arm)
        if known is None:
            known = self._traffic[arm] = [
                (worker, row)
                for (of, worker), rows in self.ledgers.items()
                if of == arm
                for row in rows
                if row["traffic"]
            ]
        return known

    def arms_seen(self) -> List[str]:
        """Arms that samples or ledgers name, sorted."""
        return sorted({arm for arm, _ in self.ledgers} | set(self.by_arm))

    def citations(self) -> List[Cited]:
        """Every body that a document cites."""
        return [*self.cited(), *self.cited_by_rows()]

    def cited_by_rows(self) -> Iterator[Cited]:
        """What the rows of `citing` cite."""
        for document, key, rows in self.citing():
            for row in rows:
                at = (document, row[key])
                yield (at, *_REQUEST(row))
                yield (at, *_RESPONSE(row))

    def cited_lengths(self) -> Set[Tuple[str, Optional[int]]]:
        """What `citations` gives without the places, told once a subject: hashes, with the length where that is told."""
        if self._cited is None:
            self._cited = {(name, length) for _, name, length in self.cited()}
            for _, _, rows in self.citing():
                self._cited.update(map(_REQUEST, rows))
                self._cited.update(map(_RESPONSE, rows))
        return self._cited

    def cited(self) -> Iterator[Cited]:
        """(place, hash, length if told) of every body that a document cites, but for those of `citing`."""
        told = self.path("comparison.json")
        for kind in ("native", "main"):
            asked = self.data["requests"][kind]
            yield (told, "/requests/" + kind), asked["sha256"], asked["bytes"]
        for place, arm in enumerate(self.data["arms"]):
            for launch in arm["launches"]:
                if launch["ready"] is not None:
                    at = (told, "/arms/%d/launches" % place)
                    yield at, launch["ready"]["requestSha256"], None
                    yield at, launch["ready"]["responseSha256"], None

    def citing(self) -> Iterator[Citing]:
        """The tables whose every row cites a request and a response."""
        yield self.path("samples.json"), "offer", self.samples
        for key, rows in self.ledgers.items():
            yield self.ledger_names[key], "sequence", rows
