"""Incomplete comparisons: every offer accounted for, partial bytes apart, nothing selected, nothing pooled."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List, Tuple

from checking.check import Complaint, Scope
from checking.package import View
from checking.plan import ORDER
from checking.reading import shown
from checking.rules import samples, shapes, shapes_comparison, shapes_incomplete
from checking.rules.comparison import LEDGER, OFFERS, Bodies, Cited, Comparison, Row, arm_id, ledgers_below, peek
from checking.rules.index import Index, Table
from checking.rules.instants import run_name
from checking.rules.pairing import arrived
from checking.shape import Shape

PARENT = "results/incomplete"
INDEX = "results/incomplete-settings-index.json"
FATE_OF = {"complete": "completed", "timeout": "timed-out", "closed-early": "failed", "failed": "failed"}
KIND_OF = {"completed": "completed", "timed-out": "timedOut", "failed": "failed", "never-started": "neverStarted"}
HEX = "0123456789abcdef"
FOUND_LAST = ("OPERATOR", "AUDIT_FAILED", "ENGINE_DIED", "PROXY_DIED", "GATEWAY_DIED", "DISK_FULL", "RUNNER_DIED")
"""What may end a run when all its requests are answered."""


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The documents of an incomplete comparison and its ledgers; snapshots where any were taken."""
    wanted: List[Tuple[str, Shape]] = [
        (folder + "/comparison.json", shapes_incomplete.INCOMPLETE_COMPARISON),
        (folder + "/samples.json", shapes.SAMPLES),
        (folder + "/offers.json", shapes_incomplete.OFFERS),
    ]
    if view.has(folder + "/snapshots.json"):
        wanted.append((folder + "/snapshots.json", shapes_comparison.SNAPSHOTS))
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

    def cited(self) -> Iterator[Cited]:
        yield from super().cited()
        for offer in self.offers:
            at = (self.path("offers.json"), offer["offer"])
            yield at, offer["requestSha256"], offer["requestBytes"]
            if offer["client"] is not None:
                yield at, offer["client"]["sha256"], offer["client"]["bytes"]
            if offer["upstream"] is not None:
                yield at, offer["upstream"]["sha256"], offer["upstream"]["bytes"]


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
    snapshots = subject.scope.documents.get(subject.path("snapshots.json"))
    told = (
        ("comparison.json#/id", subject.data["id"]),
        ("comparison.json#/run", subject.data["run"]),
        ("samples.json#/comparison", subject.scope.document("samples.json")["comparison"]),
        ("offers.json#/comparison", subject.told["comparison"]),
        ("snapshots.json#/comparison", own if snapshots is None else snapshots["comparison"]),
    )
    for name, value in told:
        if value != own:
            yield (subject.path(name), value, own)
    if subject.data["comparison"] != run_name(own):
        yield (subject.path("comparison.json#/comparison"), subject.data["comparison"], run_name(own))
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
    """The client's bytes of an offer are those of its sample, and its request and its place in the run too."""
    for offer in subject.offers:
        row = subject.by_offer.get(offer["offer"])
        if row is None:
            continue
        if (offer["requestSha256"], offer["requestBytes"]) != (row["requestSha256"], row["requestBytes"]):
            yield (subject.where(offer), "request " + offer["requestSha256"], row["requestSha256"])
        mine, right = ([one[key] for key in ("repetition", "arm", "phase")] for one in (row, offer))
        if mine != right:
            yield (subject.at(row), shown(mine), shown(right))
        if row["phase"] == "native-warm" and offer["worker"] != row["worker"]:
            yield (subject.where(offer) + "/worker", shown(offer["worker"]), shown(row["worker"]))
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
    for spot, name, _ in (*Comparison.cited(subject), *subject.cited_by_rows()):
        whole[name] = "%s#%s" % spot
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
    for at, name, length in subject.citations():
        if length is not None and lengths.get(name, length) != length:
            yield ("%s#%s" % at, "%d bytes" % length, "%d, as stored" % lengths[name])


def hold_reason(subject: Incomplete) -> Iterator[Complaint]:
    """What is whole is no incomplete comparison, and an instant of the abort comes after its arms began.

    Whole are 252 samples that came back. Then no time was over and no engine failed to start: what may be found once the last
    of them is there is a count that is wrong, a part that had ended by itself, a full disk, and a runner that was
    stopped just then or died.
    """
    whole = len(subject.by_offer) == len(OFFERS) and all(map(arrived, subject.by_offer.values()))
    if whole and subject.data["reason"] not in FOUND_LAST:
        yield (
            subject.path("comparison.json") + "#/reason",
            "all 252 samples with " + subject.data["reason"],
            " or ".join(FOUND_LAST),
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
    document="comparison.json",
    kind="incomplete",
    shape=shapes_incomplete.INCOMPLETE_INDEX,
    one="an incomplete comparison",
    many="incomplete comparisons",
    codes=("incomplete-index", "incomplete-index-files", "incomplete-index-rows"),
)


class IncompleteIndex(Index):
    """The index, and whatever could promote one of its comparisons."""

    def __init__(self, table: Table, scope: Scope) -> None:
        super().__init__(table, scope)
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
