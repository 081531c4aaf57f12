"""What decision.json says, against what follows from samples, snapshots and bodies."""

from __future__ import annotations

from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from checking.check import Complaint, Family, Scope
from checking.reading import shown
from checking.rules.comparison import Comparison, peek
from checking.rules.decision import derive
from checking.rules.launches import launch_values

Row = Dict[str, Any]


def derived(subject: Comparison) -> Row:
    """The decision as the samples give it, worked out once a subject."""
    if subject.derived is None:
        subject.derived = derive(subject)
    return subject.derived


def _at(subject: Comparison, pointer: str) -> str:
    return subject.path("decision.json") + "#" + pointer


def _told(subject: Comparison) -> Row:
    assert subject.decision is not None
    return subject.decision


def hold_kind(subject: Comparison) -> Iterator[Complaint]:
    """The decision is of the comparison's kind."""
    if _told(subject)["kind"] != subject.data["kind"]:
        yield (_at(subject, "/kind"), _told(subject)["kind"], subject.data["kind"])


def hold_pairs(subject: Comparison) -> Iterator[Complaint]:
    """Both sides of every pair: nearest-rank p95, token totals, wall time, memory by device."""
    for place, (told, right) in enumerate(zip(_told(subject)["pairs"], derived(subject)["pairs"])):
        if told["repetition"] != right["repetition"]:
            yield (_at(subject, "/pairs/%d/repetition" % place), str(told["repetition"]), str(right["repetition"]))
            continue
        for name in ("baseline", "candidate"):
            for key, value in right[name].items():
                if told[name][key] != value:
                    yield (_at(subject, "/pairs/%d/%s/%s" % (place, name, key)), shown(told[name][key]), shown(value))


def hold_gates(subject: Comparison) -> Iterator[Complaint]:
    """Every gate of the kind in order, its rows with both sides' numbers, the exact ratio, and whether it holds."""
    for place, (told, right) in enumerate(zip(_told(subject)["gates"], derived(subject)["gates"])):
        at = "/gates/%d" % place
        if told["gate"] != right["gate"] or len(told["rows"]) != len(right["rows"]):
            found = "%s with %d rows" % (told["gate"], len(told["rows"]))
            yield (_at(subject, at), found, "%s with %d rows" % (right["gate"], len(right["rows"])))
            continue
        if told["holds"] is not right["holds"]:
            yield (_at(subject, at + "/holds"), shown(told["holds"]), shown(right["holds"]))
        for number, (mine, true) in enumerate(zip(told["rows"], right["rows"])):
            for key, value in true.items():
                if mine[key] != value:
                    yield (_at(subject, "%s/rows/%d/%s" % (at, number, key)), shown(mine[key]), shown(value))


def hold_failed(subject: Comparison) -> Iterator[Complaint]:
    """The failed gates are all that do not hold, in table order."""
    right = derived(subject)["failedGates"]
    if _told(subject)["failedGates"] != right:
        yield (_at(subject, "/failedGates"), shown(_told(subject)["failedGates"]), shown(right))


def hold_disqualified(subject: Comparison) -> Iterator[Complaint]:
    """The disqualifications are those that the samples, receipts, clients and logs give."""
    told = [one["code"] for one in _told(subject)["disqualifications"]]
    right = derived(subject)["disqualifications"]
    if sorted(told) != sorted(right):
        yield (_at(subject, "/disqualifications"), shown(told), shown(right))


def hold_qualified(subject: Comparison) -> Iterator[Complaint]:
    """Qualified means: complete, and nothing disqualifies."""
    right = derived(subject)["performanceComparisonQualified"]
    told = _told(subject)["performanceComparisonQualified"]
    if told is not right:
        yield (_at(subject, "/performanceComparisonQualified"), shown(told), shown(right))


def hold_decision(subject: Comparison) -> Iterator[Complaint]:
    """The candidate is taken only when qualified and no gate failed; else the baseline stays."""
    right = derived(subject)["decision"]
    if _told(subject)["decision"] != right:
        yield (_at(subject, "/decision"), _told(subject)["decision"], right)


def hold_requalification(subject: Comparison) -> Iterator[Complaint]:
    """A baseline needs no requalification; a candidate without an attempt of its own does."""
    told = _told(subject)["requalification"]
    if derived(subject)["decision"] == "baseline":
        right = "not-required"
    else:
        right = "not-required" if requalified(subject) else "required"
    if told != right:
        reason = (
            "the baseline stays" if derived(subject)["decision"] == "baseline" else "by the attempts that are there"
        )
        yield (_at(subject, "/requalification"), told, "%s: %s" % (right, reason))


class Success(NamedTuple):
    """An accepted attempt that ended in success: when it began, and the arguments and variables of its launches."""

    profile: str
    engine: str
    topology: str
    began: str
    launches: Tuple[Row, ...]


def _success(scope: Scope) -> Optional[Success]:
    """What an attempt's own document tells, or None: it is judged by another verifier."""
    told = peek(scope.view, scope.path("attempt.json"))
    try:
        if (told["outcome"], told["ended"], told["scope"]["accepted"]) != ("SUCCESS", True, True):
            return None
        launches = [{key: one[key] for key in ("arguments", "environment")} for one in told["launches"]]
        return Success(told["profile"], told["engine"], told["topology"], told["startedAt"], tuple(launches))
    except (KeyError, TypeError):
        return None


SUCCESSES = Family(
    kind="success",
    find=lambda view: view.folders("results/converged"),
    open=_success,
    checks=(),
    facts=lambda success: success,
)


def requalified(subject: Comparison) -> bool:
    """Whether an accepted attempt of this profile, engine and topology, begun later, ran with the candidate's value."""
    setting, data = subject.data["setting"], subject.data
    for one in subject.scope.facts.get(SUCCESSES.kind, {}).values():
        if one is None or one[:3] != (data["profile"], data["engine"], data["topology"]):
            continue
        try:
            if one.began <= data["arms"][0]["startedAt"]:
                continue
            told = [launch_values(launch, setting["argument"]) for launch in one.launches]
            if told and all(values == [setting["candidate"]] for values in told):
                return True
        except (AttributeError, KeyError, TypeError):
            continue  # another verifier says what is wrong with it
    return False
