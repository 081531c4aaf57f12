"""Incomplete comparisons: every offer accounted for, partial bytes apart, nothing selected, nothing pooled."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.arithmetic import ORDER
from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.damage import Bench
from checking.package import View
from checking.reading import shown
from checking.rules import aborted_lies, protocol, receipts, samples, shapes
from checking.rules import index as rules
from checking.rules.comparison import LEDGER, OFFERS, Bodies, Comparison, Row, arm_id, ledgers_below, peek
from checking.rules.forgery import Desk
from checking.rules.index import Index, Table
from checking.shape import Shape

PARENT = "results/incomplete"
INDEX = "results/incomplete-settings-index.json"
FATE_OF = {"complete": "completed", "timeout": "timed-out", "closed-early": "failed", "failed": "failed"}
KIND_OF = {"completed": "completed", "timed-out": "timedOut", "failed": "failed", "never-started": "neverStarted"}
HEX = "0123456789abcdef"


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The documents of an incomplete comparison and its ledgers; snapshots where any were taken."""
    wanted: List[Tuple[str, Shape]] = [
        (folder + "/comparison.json", shapes.INCOMPLETE_COMPARISON),
        (folder + "/samples.json", shapes.SAMPLES),
        (folder + "/offers.json", shapes.OFFERS),
    ]
    if view.has(folder + "/snapshots.json"):
        wanted.append((folder + "/snapshots.json", shapes.SNAPSHOTS))
    return wanted + ledgers_below(view, folder)


class Incomplete(Comparison):
    """What a comparison left that its runner did not finish."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.told: Row = scope.document("offers.json")
        self.offers: List[Row] = self.told["offers"]
        self.partials = Bodies(scope, self.data["engine"], "partials")
        self.by_offer = {row["offer"]: row for row in self.samples}
        self.receipts: Dict[str, Tuple[str, Row]] = {}
        for arm in sorted({arm for arm, _ in self.ledgers}):
            for worker, row in self.traffic(arm):
                if row["requestId"] is not None:
                    self.receipts.setdefault(row["requestId"], (worker, row))

    def where(self, offer: Row) -> str:
        """Where an offer stands."""
        return "%s#%s" % (self.path("offers.json"), offer["offer"])

    def cited(self) -> Iterator[Tuple[str, str, Optional[int]]]:
        for at, name, length in super().cited():
            yield at, name, length
        for offer in self.offers:
            yield self.where(offer), offer["requestSha256"], offer["requestBytes"]
            if offer["client"] is not None:
                yield self.where(offer), offer["client"]["sha256"], offer["client"]["bytes"]
            if offer["upstream"] is not None:
                yield self.where(offer), offer["upstream"]["sha256"], offer["upstream"]["bytes"]


def hold_files(subject: Incomplete) -> Iterator[Complaint]:
    """The folder holds its documents, ledgers, bodies and partials; no decision above all."""
    cut = len(subject.folder) + 1
    for name in subject.view.below(subject.folder):
        inner = name[cut:]
        if inner in ("comparison.json", "samples.json", "offers.json", "snapshots.json"):
            continue
        if inner.startswith("ledgers/") and LEDGER.match(inner[8:]) and not inner.startswith("ledgers/attempt"):
            continue
        kind, _, last = inner.partition("/")
        if kind in ("bodies", "partials") and len(last) == 64 and not last.strip(HEX):
            continue
        yield (
            name,
            "a file that no incomplete comparison has",
            "documents, ledgers, bodies and partials; never a decision",
        )


def hold_names(subject: Incomplete) -> Iterator[Complaint]:
    """Every document names the run, every ledger its arm and worker."""
    own = subject.folder.rpartition("/")[2]
    told = (
        ("comparison.json#/id", subject.data["id"]),
        ("comparison.json#/run", subject.data["run"]),
        ("samples.json#/comparison", subject.scope.document("samples.json")["comparison"]),
        ("offers.json#/comparison", subject.told["comparison"]),
    )
    for name, value in told:
        if value != own:
            yield (subject.path(name), value, own)
    for (arm, worker), name in subject.ledger_names.items():
        ledger = subject.scope.documents[name]
        if (ledger["arm"], ledger["worker"]) != (arm, worker) or worker not in subject.workers:
            yield (name, "%s of %s" % (ledger["worker"], ledger["arm"]), "%s of %s" % (worker, arm))


def hold_arms(subject: Incomplete) -> Iterator[Complaint]:
    """The arms that were begun are the first of the plan, in its order."""
    for place, arm in enumerate(subject.data["arms"]):
        told = (arm["sequence"], arm["repetition"], arm["arm"])
        right = (place + 1, place // 2 + 1, ORDER[place])
        if told != right:
            at = "%s#/arms/%d" % (subject.path("comparison.json"), place)
            yield (at, "sequence %d, repetition %d, arm %s" % told, "%d, %d, %s" % right)
    begun = {arm_id(arm) for arm in subject.data["arms"]}
    for offer in subject.offers:
        if arm_id(offer) not in begun:
            yield (subject.where(offer), "an offer of " + arm_id(offer), "offers of arms that were begun")
            break


def hold_offers(subject: Incomplete) -> Iterator[Complaint]:
    """Every offer is one of the plan, stands once, and says its arm and phase; none goes without its sample."""
    seen = set()
    planned = set(OFFERS)
    for offer in subject.offers:
        name = offer["offer"]
        if name in seen or name not in planned:
            yield (subject.where(offer), "an offer twice or not of the plan", "each planned offer once")
        elif name[:-4] != "%s-%s" % (arm_id(offer), offer["phase"]):
            yield (subject.where(offer), "%s in %s" % (offer["phase"], arm_id(offer)), "what the offer id says")
        seen.add(name)
    for row in subject.samples:
        if row["offer"] not in seen:
            yield (subject.at(row), "a sample without an offer", "an offer for every sample")
    for name in sorted(subject.receipts):
        if name not in seen:
            worker, row = subject.receipts[name]
            at = "%s#%d" % (subject.ledger_names.get((name[:4], worker), subject.path("ledgers")), row["sequence"])
            yield (at, "a receipt of %s without an offer" % shown(name), "an offer for every exchange")


def hold_gaps(subject: Incomplete) -> Iterator[Complaint]:
    """Within a phase the offers run from 001 without a gap: none was dropped from the middle."""
    phases: Dict[str, List[int]] = {}
    for offer in subject.offers:
        phases.setdefault(offer["offer"][:-4], []).append(int(offer["offer"][-3:]))
    for phase, numbers in sorted(phases.items()):
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            missing = next(number for number in range(1, len(numbers) + 2) if number not in numbers)
            yield ("%s#%s" % (subject.path("offers.json"), phase), "no offer %03d" % missing, "offers without a gap")


def hold_fates(subject: Incomplete) -> Iterator[Complaint]:
    """A fate is what sample and receipt say; what never started has neither."""
    for offer in subject.offers:
        row = subject.by_offer.get(offer["offer"])
        if offer["sample"] is not (row is not None):
            yield (subject.where(offer) + "/sample", shown(offer["sample"]), shown(row is not None))
            continue
        if row is not None:
            right = FATE_OF[row["transport"]]
            if offer["fate"] != right:
                yield (subject.where(offer) + "/fate", offer["fate"], right)
        elif offer["fate"] not in ("failed", "never-started"):
            yield (subject.where(offer) + "/fate", offer["fate"], "failed or never-started, since there is no sample")
        elif offer["fate"] == "never-started" and (offer["offer"] in subject.receipts or offer["upstream"] is not None):
            yield (subject.where(offer) + "/fate", "never-started with a receipt", "failed: a worker saw it")


def hold_counts(subject: Incomplete) -> Iterator[Complaint]:
    """Offers = completed + timed out + failed + never started, and each kind is counted."""
    fates = Counter(KIND_OF[offer["fate"]] for offer in subject.offers)
    right = {"offered": len(subject.offers)}
    right.update({kind: fates[kind] for kind in KIND_OF.values()})
    for key, value in right.items():
        if subject.told["counts"][key] != value:
            yield ("%s#/counts/%s" % (subject.path("offers.json"), key), str(subject.told["counts"][key]), str(value))


def hold_client(subject: Incomplete) -> Iterator[Complaint]:
    """The client's bytes of an offer are those of its sample, and its request too."""
    for offer in subject.offers:
        row = subject.by_offer.get(offer["offer"])
        if row is None:
            continue
        if (offer["requestSha256"], offer["requestBytes"]) != (row["requestSha256"], row["requestBytes"]):
            yield (subject.where(offer), "request " + offer["requestSha256"], row["requestSha256"])
        told = offer["client"]
        if told is not None and (told["sha256"], told["bytes"]) != (row["responseSha256"], row["responseBytes"]):
            yield (subject.where(offer) + "/client", told["sha256"], row["responseSha256"])
        if told is None and row["responseBytes"]:
            yield (subject.where(offer) + "/client", "null", "the bytes that the client got")


def hold_upstream(subject: Incomplete) -> Iterator[Complaint]:
    """The upstream bytes of an offer are those of its receipt, complete or not as the receipt says."""
    for offer in subject.offers:
        seen = subject.receipts.get(offer["offer"])
        told = offer["upstream"]
        if seen is None:
            # A proxy that was killed left bytes and no receipt; only a receipt can say that they are all.
            if told is not None and told["complete"]:
                yield (subject.where(offer) + "/upstream", "complete", "not complete: no receipt carries this offer")
            continue
        worker, row = seen
        right = (row["responseSha256"], row["responseBytes"], worker, row["complete"])
        mine = None if told is None else (told["sha256"], told["bytes"], told["worker"], told["complete"])
        if mine != right:
            yield (subject.where(offer) + "/upstream", shown(mine), shown(right))


def _places(subject: Incomplete) -> Tuple[Dict[str, str], Dict[str, str]]:
    """(hash -> where cited) of whole bodies and of upstream partials."""
    whole: Dict[str, str] = {}
    part: Dict[str, str] = {}
    for at, name, _ in Comparison.cited(subject):
        whole[name] = at
    for key, rows in subject.ledgers.items():
        for row in rows:
            if not row["complete"]:
                at = "%s#%d" % (subject.ledger_names[key], row["sequence"])
                part[row["responseSha256"]] = at
                if whole.get(row["responseSha256"]) == at:
                    del whole[row["responseSha256"]]
    for row in subject.samples:
        whole[row["responseSha256"]] = subject.at(row)
    for offer in subject.offers:
        whole[offer["requestSha256"]] = subject.where(offer)
        if offer["client"] is not None:
            whole[offer["client"]["sha256"]] = subject.where(offer)
        if offer["upstream"] is not None:
            (whole if offer["upstream"]["complete"] else part)[offer["upstream"]["sha256"]] = subject.where(offer)
    return whole, part


def hold_stored(subject: Incomplete) -> Iterator[Complaint]:
    """Whole bodies lie in bodies/, what came only in part from upstream lies in partials/, and neither is missing."""
    whole, part = _places(subject)
    for name, at in sorted(whole.items()):
        if name not in subject.bodies.names:
            yield (at, "no body " + name, "a stored body")
    for name, at in sorted(part.items()):
        if name not in subject.partials.names:
            yield (at, "no partial " + name, "the bytes that came from upstream, in partials/")


def hold_apart(subject: Incomplete) -> Iterator[Complaint]:
    """A partial is never kept as a whole body, and nothing lies there that nothing cites."""
    whole, part = _places(subject)
    for name in sorted(subject.bodies.names):
        if name not in whole:
            found = "an upstream partial" if name in part else "a body that nothing cites"
            yield (subject.bodies.path(name), found, "bodies that samples, receipts and offers cite")
    for name in sorted(subject.partials.names):
        if name not in part:
            yield (subject.partials.path(name), "a partial that nothing cites", "bytes of incomplete exchanges")


def hold_digests(subject: Incomplete) -> Iterator[Complaint]:
    """The name of a body is its SHA-256."""
    return samples.hold_digests(subject)


def hold_partials(subject: Incomplete) -> Iterator[Complaint]:
    """The name of a partial is the SHA-256 of its own bytes, and its length is as told."""
    for name in sorted(subject.partials.names):
        if not subject.partials.has(name):
            yield (subject.partials.path(name), "no regular file", "a partial")
            continue
        subject.partials.read(name)
        if subject.partials.digests[name] != name:
            yield (subject.partials.path(name), "sha256 " + subject.partials.digests[name], "the hash that is its name")


def hold_lengths(subject: Incomplete) -> Iterator[Complaint]:
    """Every told length is that of the stored bytes."""
    lengths = dict(subject.partials.lengths)
    lengths.update(subject.bodies.lengths)
    for at, name, length in subject.cited():
        if length is not None and lengths.get(name, length) != length:
            yield (at, "%d bytes" % length, "%d, as stored" % lengths[name])


def hold_reason(subject: Incomplete) -> Iterator[Complaint]:
    """What is whole is no incomplete comparison, and an instant of the abort comes after its arms began."""
    if len(subject.by_offer) == len(OFFERS) and subject.data["reason"] != "AUDIT_FAILED":
        yield (
            subject.path("comparison.json") + "#/reason",
            "all 252 samples with " + subject.data["reason"],
            "AUDIT_FAILED",
        )
    starts = [arm["startedAt"] for arm in subject.data["arms"]]
    if subject.data["abortedAt"] is not None and starts and subject.data["abortedAt"] < max(starts):
        yield (subject.path("comparison.json") + "#/abortedAt", subject.data["abortedAt"], "not before " + max(starts))


def facts(subject: Incomplete) -> Dict[str, Any]:
    """What the index and the complete comparisons are compared with."""
    keys = ("id", "comparison", "run", "case", "profile", "engine", "kind", "synthetic", "reason")
    return {
        "row": dict({key: subject.data[key] for key in keys}, counts=subject.told["counts"]),
        "run": subject.data["run"],
        "counts": {
            "incomplete comparisons": 1,
            "offers": len(subject.offers),
            "partials": len(subject.partials.names),
            "bodies": len(subject.bodies.names),
        },
    }


TABLE = Table(
    name=INDEX,
    key="comparisons",
    parent=PARENT,
    kind="incomplete",
    shape=shapes.INCOMPLETE_INDEX,
    holding="",
    beside=("a file beside the incomplete comparisons", "their folders only"),
)


class IncompleteIndex(Index):
    """The index, and whatever could promote one of its comparisons."""

    table = TABLE

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.settings: List[Row] = list(peek(self.view, "results/settings-index.json").get("comparisons", ()))
        self.recipes: List[Row] = list(peek(self.view, "recipes.json").get("recipes", ()))
        self.runs = {
            folder: peek(self.view, folder + "/comparison.json").get("run")
            for folder in self.view.folders("results/settings")
        }


def hold_unselected(subject: IncompleteIndex) -> Iterator[Complaint]:
    """No setting is selected from an incomplete comparison, and its run is nowhere told as complete."""
    runs = {found["run"] for found in subject.found.values() if found is not None}
    for folder, run in sorted(subject.runs.items()):
        if run in runs:
            yield (folder + "/comparison.json#/run", shown(run), "a run that is not told incomplete as well")
    complete = {one.get("id") for one in subject.settings if isinstance(one, dict)}
    names = {found["row"]["comparison"] for found in subject.found.values() if found is not None}
    for recipe in subject.recipes:
        if isinstance(recipe, dict) and recipe.get("comparison") in names - complete:
            yield (
                "recipes.json#" + shown(recipe.get("id")),
                "a setting of %s" % shown(recipe["comparison"]),
                "none: it is incomplete",
            )


def lie(name: str, tell: Any, resealed: bool = True) -> Mutation:
    """A coherent forgery of the first incomplete comparison; None from `tell` when it has nothing of the kind."""

    def damage(bench: Bench) -> Optional[str]:
        for folder in bench.folders(PARENT):
            desk = Desk(bench, folder)
            told = tell(desk)
            if told is not None:
                return "%s: %s" % (folder, told)
        return None

    return Mutation(name, damage, resealed)


def _offer(change: Any, wanted: Any = lambda offer: True) -> Any:
    def tell(desk: Desk) -> Optional[str]:
        value = desk.load("offers.json")
        one = next((one for one in value["offers"] if wanted(one)), None)
        if one is None:
            return None
        change(one)
        recount(value)
        desk.bench.store(desk.path("offers.json"), value)
        index(desk, counts=value["counts"])
        return str(one["offer"])

    return tell


def recount(value: Row) -> None:
    """Count the fates of offers.json anew."""
    fates = Counter(KIND_OF[offer["fate"]] for offer in value["offers"])
    value["counts"] = {kind: fates[kind] for kind in KIND_OF.values()}
    value["counts"]["offered"] = len(value["offers"])


def index(desk: Desk, **values: Any) -> None:
    """Change the row of an incomplete comparison."""
    with desk.bench.edit(INDEX) as told:
        for row in told["comparisons"]:
            if row["folder"] == desk.folder:
                row.update(values)


def _drop_offer(desk: Desk) -> Optional[str]:
    value = desk.load("offers.json")
    place = next((place for place, one in enumerate(value["offers"]) if not one["sample"]), None)
    if place is None:
        return None
    gone = value["offers"].pop(place)
    recount(value)
    desk.bench.store(desk.path("offers.json"), value)
    index(desk, counts=value["counts"])
    return str(gone["offer"]) + " dropped"


def _drop_sampled(desk: Desk) -> Optional[str]:
    value = desk.load("offers.json")
    if not value["offers"] or not value["offers"][0]["sample"]:
        return None
    gone = value["offers"].pop(0)
    recount(value)
    desk.bench.store(desk.path("offers.json"), value)
    index(desk, counts=value["counts"])
    return str(gone["offer"]) + " dropped"


def alter_partial(desk: Desk) -> Optional[str]:
    """Change the bytes of an upstream partial under its old name."""
    names = desk.bench.below(desk.path("partials"))
    if not names:
        return None
    data = desk.bench.read(names[0])
    desk.bench.put(names[0], data[:-1] + bytes([(data[-1] if data else 0) ^ 1]))
    return names[0]


def _partial_as_whole(desk: Desk) -> Optional[str]:
    """Keep an upstream partial as a whole body."""
    for name in desk.bench.below(desk.path("partials")):
        if not desk.bench.has(desk.path("bodies/" + name.rsplit("/", 1)[1])):
            desk.bench.body(desk.folder, desk.bench.read(name))
            return "a partial kept in bodies"
    return None


def _drop_partial(desk: Desk) -> Optional[str]:
    names = desk.bench.below(desk.path("partials"))
    if names:
        desk.bench.remove(names[0])
    return names[0] if names else None


def _complete_partial(desk: Desk) -> Optional[str]:
    """Count a timed-out offer as completed by its upstream bytes."""
    return _offer(lambda one: one.update(fate="completed"), lambda one: one["fate"] == "timed-out")(desk)  # type: ignore[no-any-return]


def _alter_receipt(desk: Desk) -> Optional[str]:
    for name in desk.ledger_names():
        value = desk.load(name)
        row = next((row for row in value["receipts"] if row["traffic"] and row["complete"]), None)
        if row is not None:
            row["responseSha256"] = ("0" if row["responseSha256"][0] != "0" else "1") + row["responseSha256"][1:]
            desk.bench.store(desk.path(name), value)
            return "%s#%d" % (name, row["sequence"])
    return None


def _decide(desk: Desk) -> str:
    desk.bench.store(desk.path("decision.json"), {"decision": "candidate", "schemaVersion": 1})
    return "decision.json added"


def _select(bench: Bench) -> Optional[str]:
    names = [name for name in bench.below(PARENT) if name.endswith("/comparison.json")]
    if not names or not bench.has("recipes.json"):
        return None
    told = bench.load(names[0])["comparison"]
    value = bench.load("recipes.json")
    if not value["recipes"]:
        return None
    value["recipes"][0].update(comparison=told, selected="candidate")
    bench.store("recipes.json", value)
    return "a recipe rests on " + str(told)


def _sample(change: Any) -> Any:
    def tell(desk: Desk) -> Optional[str]:
        value = desk.load("samples.json")
        if not value["samples"]:
            return None
        change(value["samples"][0])
        desk.bench.store(desk.path("samples.json"), value)
        return str(value["samples"][0]["offer"])

    return tell


def _data(change: Any) -> Any:
    def tell(desk: Desk) -> Optional[str]:
        value = desk.load("comparison.json")
        if change(value) is False:
            return None
        desk.bench.store(desk.path("comparison.json"), value)
        return "comparison.json"

    return tell


def _swap_arms(value: Row) -> Any:
    if len(value["arms"]) < 2:
        return False
    value["arms"].reverse()
    return True


def _abort_early(value: Row) -> Any:
    if not value["arms"]:
        return False
    value["abortedAt"] = "2000-01-01T00:00:00.000000Z"
    return True


def _remove_body(desk: Desk) -> Optional[str]:
    rows = desk.load("samples.json")["samples"]
    if not rows:
        return None
    desk.bench.remove(desk.path("bodies/" + rows[0]["responseSha256"]))
    return str(rows[0]["offer"])


def _alter_body(desk: Desk) -> Optional[str]:
    rows = desk.load("samples.json")["samples"]
    if not rows:
        return None
    desk.bench.put(desk.path("bodies/" + rows[0]["responseSha256"]), desk.body(rows[0]) + b" ")
    return str(rows[0]["offer"])


def _index_lie(name: str, change: Any) -> Mutation:
    def damage(bench: Bench) -> Optional[str]:
        value = bench.load(INDEX)
        if not value["comparisons"]:
            return None
        change(value["comparisons"])
        bench.store(INDEX, value)
        bench.reseal_sums()
        return INDEX

    return Mutation(name, damage, resealed=False)


CHECKS = (
    Check(
        "incomplete-files",
        "an incomplete comparison has no decision and no stray file",
        hold_files,
        (lie("decide an incomplete comparison", _decide),),
    ),
    Check(
        "incomplete-names",
        "every document names the run",
        hold_names,
        (lie("give an incomplete comparison another run", _data(lambda value: value.update(run="another"))),),
    ),
    Check(
        "incomplete-arms",
        "the arms that were begun are the first of the plan",
        hold_arms,
        (lie("reverse the arms that were begun", _data(_swap_arms)),),
    ),
    Check(
        "incomplete-offers",
        "every offer is of the plan and stands once; none is missing that a sample names",
        hold_offers,
        (
            lie("drop an offer that has a sample", _drop_sampled),
            lie(
                "tell an offer as another phase's",
                _offer(lambda one: one.update(phase="main"), lambda one: one["phase"] != "main"),
            ),
        ),
    ),
    Check(
        "incomplete-gaps", "offers run without a gap", hold_gaps, (lie("drop an offer from the middle", _drop_offer),)
    ),
    Check(
        "incomplete-fate",
        "a fate is what sample and receipt say",
        hold_fates,
        (
            lie("call a timeout completed", _complete_partial),
            lie(
                "call a completed offer never started",
                _offer(
                    lambda one: one.update(fate="never-started", sample=False), lambda one: one["fate"] == "completed"
                ),
            ),
            lie(
                "call an offer completed that nobody answered",
                _offer(lambda one: one.update(fate="completed"), lambda one: not one["sample"]),
            ),
        ),
    ),
    Check(
        "incomplete-counts",
        "offers are completed, timed out, failed and never started, each counted",
        hold_counts,
        (lie("count an offer less", lambda desk: _miscount(desk)),),
    ),
    Check(
        "incomplete-client",
        "the client's bytes are those of the sample",
        hold_client,
        (
            lie(
                "lose the client's bytes of an offer",
                _offer(
                    lambda one: one.update(client=None),
                    lambda one: one["client"] is not None and one["client"]["bytes"],
                ),
            ),
            lie(
                "give an offer another request",
                _offer(lambda one: one.update(requestBytes=one["requestBytes"] + 1), lambda one: one["sample"]),
            ),
        ),
    ),
    Check(
        "incomplete-upstream",
        "the upstream bytes are those of the receipt",
        hold_upstream,
        (
            lie(
                "call an upstream partial complete",
                _offer(
                    lambda one: one["upstream"].update(complete=True),
                    lambda one: one["upstream"] is not None and not one["upstream"]["complete"],
                ),
            ),
            lie(
                "forget what upstream sent",
                _offer(lambda one: one.update(upstream=None), lambda one: one["upstream"] is not None),
            ),
        ),
    ),
    Check(
        "incomplete-stored",
        "whole bodies and partials are stored",
        hold_stored,
        (lie("remove a partial", _drop_partial), lie("remove a body of an incomplete comparison", _remove_body)),
    ),
    Check(
        "incomplete-apart",
        "a partial is never kept as a whole body",
        hold_apart,
        (lie("keep a partial among the bodies", _partial_as_whole),),
    ),
    Check(
        "incomplete-digest",
        "the name of a body is its SHA-256",
        hold_digests,
        (lie("alter a body of an incomplete comparison", _alter_body),),
    ),
    Check(
        "partial-digest",
        "the name of a partial is the SHA-256 of its own bytes",
        hold_partials,
        (lie("alter the bytes of a partial", alter_partial),),
    ),
    Check(
        "incomplete-length",
        "every told length is that of the stored bytes",
        hold_lengths,
        (
            lie(
                "tell a response a byte longer", _sample(lambda row: row.update(responseBytes=row["responseBytes"] + 1))
            ),
        ),
    ),
    Check(
        "incomplete-class",
        "the classification follows from the stored bytes",
        samples.hold_classification,
        (
            lie(
                "change a classification of an incomplete comparison",
                _sample(
                    lambda row: row.update(classification="CAPPED" if row["classification"] != "CAPPED" else "NORMAL")
                ),
            ),
        ),
    ),
    Check(
        "incomplete-tokens",
        "tokens are those of the stored body",
        samples.hold_tokens,
        (lie("tell more tokens in an incomplete comparison", _sample(lambda row: row.update(completionTokens=999))),),
    ),
    Check(
        "incomplete-sequence",
        "the numbers of a ledger grow",
        receipts.hold_increasing,
        (lie("number all receipts of a ledger one", lambda desk: _shift(desk)),),
    ),
    Check(
        "incomplete-request-id",
        "a recorded request id has its sample's hashes",
        receipts.hold_ids_seen,
        (lie("alter the hash of a receipt of an incomplete comparison", _alter_receipt),),
    ),
    Check(
        "incomplete-timeline",
        "the moments that were reached stand in order",
        protocol.hold_timeline,
        (lie("let an engine be ready before it began", _data(lambda value: _early(value))),),
    ),
    Check(
        "incomplete-reason",
        "what is whole is not incomplete, and an abort comes after its arms",
        hold_reason,
        (lie("abort before the beginning", _data(_abort_early)),),
    ),
    *(
        Check(code, truth, hold, tuple(lie(name, tell) for name, tell in lies))
        for code, truth, hold, lies in aborted_lies.ROWS
    ),
)


def _miscount(desk: Desk) -> str:
    with desk.edit("offers.json") as value:
        value["counts"]["failed"] += 1
    index(desk, counts=value["counts"])
    return "a failure more"


def _shift(desk: Desk) -> Optional[str]:
    for name in desk.ledger_names():
        value = desk.load(name)
        if len(value["receipts"]) > 1:
            for row in value["receipts"]:
                row["sequence"] = 1
            desk.bench.store(desk.path(name), value)
            return name
    return None


def _early(value: Row) -> Any:
    for arm in value["arms"]:
        if arm["timeline"] and arm["timeline"]["engineStartedSeconds"] and arm["timeline"]["readySeconds"]:
            arm["timeline"]["readySeconds"] = 0
            return True
    return False


INDEX_CHECKS = (
    Check(
        "incomplete-index",
        "every incomplete comparison has one row of the index",
        rules.hold_complete,
        (_index_lie("drop an incomplete comparison from its index", lambda rows: rows.pop()),),
    ),
    Check(
        "incomplete-index-files",
        "the hashes of the index are those of the files",
        rules.hold_files,
        (
            _index_lie(
                "write another hash into the incomplete index", lambda rows: rows[0]["files"].update(offers="0" * 64)
            ),
        ),
    ),
    Check(
        "incomplete-index-rows",
        "a row says what was found",
        rules.hold_rows,
        (
            _index_lie(
                "tell another reason in the incomplete index",
                lambda rows: rows[0].update(reason="OPERATOR" if rows[0]["reason"] != "OPERATOR" else "DISK_FULL"),
            ),
            _index_lie(
                "count more completed in the incomplete index",
                lambda rows: rows[0]["counts"].update(completed=rows[0]["counts"]["completed"] + 1),
            ),
        ),
    ),
    Check(
        "incomplete-unselected",
        "no setting is selected from an incomplete comparison",
        hold_unselected,
        (Mutation("select a setting from an incomplete comparison", _select),),
    ),
)

FAMILY = Family(
    kind="incomplete",
    find=TABLE.find,
    open=Incomplete,
    checks=CHECKS,
    documents=documents,
    facts=facts,
)
INDEX_FAMILY = Family(
    kind="package", find=lambda view: [""], open=IncompleteIndex, checks=INDEX_CHECKS, documents=TABLE.documents
)
CONTROLS = (
    ("partial-digest", lie("alter the bytes of a partial", alter_partial)),
    ("incomplete-request-id", lie("alter the hash of a receipt of an incomplete comparison", _alter_receipt)),
)
