"""What tells time twice: the slots of the client, and the engine's own clock in the stored bodies."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Complaint
from checking.plan import CONCURRENCY, MAIN_PER_ARM, RR_WARM
from checking.reading import shown
from checking.rules.agreement import FREE_ADAPTER, READ
from checking.rules.answers import Answer, Moments
from checking.rules.comparison import Comparison, Row, adapter_of, arm_id
from checking.rules.instants import moment
from checking.rules.pairing import arrived

PACE_SLACK = Decimal("0.001")
WORK_SLACK = Decimal("0.005")
TEXT_SLACK = Decimal(1)  # a machine that stands still for a moment forges nothing
MIDDLE_SLACK = Decimal("0.125")
CLOCK_SLACK = 5.0  # seconds by which a wall clock may be set while a comparison runs
APART = 300.0  # seconds by which the clocks of an engine that was launched and of who launched it may differ
MILLISECOND = Decimal("0.001")
PLANNED = {"rr-warm": RR_WARM, "main": MAIN_PER_ARM}


def hold_pace(subject: Comparison) -> Iterator[Complaint]:
    """Eight requests are open as long as there are offers: each is due when the one before it in its slot has ended.

    When a request was due follows from its start and its send lag; the first eight are due at once. So nobody can have
    measured an arm under less load than the protocol's, nor shorten one exchange under the starts of the others. A batch
    in which an exchange failed tells nothing: when its slot was free again is not told to the millisecond.
    """
    for (_, phase), rows in sorted(subject.by_phase.items()):
        if len(rows) != PLANNED.get(phase) or not all(map(arrived, rows)):
            continue
        due = sorted((row["startedSeconds"] - row["sendLagSeconds"], row["offer"]) for row in rows)
        ends = sorted(row["startedSeconds"] + row["totalSeconds"] for row in rows)
        for place, (told, offer) in enumerate(due):
            right = due[0][0] if place < CONCURRENCY else ends[place - CONCURRENCY]
            if abs(told - right) > PACE_SLACK:
                yield (
                    "%s#%s" % (subject.path("samples.json"), offer),
                    "due at %s s" % told,
                    "%s s, when a slot of its batch was free" % right,
                )
                break


def _told(subject: Comparison) -> Iterator[Tuple[Row, Answer]]:
    for row, told in zip(subject.samples, subject.answers):
        if told is not None and row["transport"] == "complete" and told.classification in READ:
            yield row, told


def hold_work(subject: Comparison) -> Iterator[Complaint]:
    """An engine that says how long it worked at an answer cannot have given it, or its first text, sooner.

    And the first text cannot have come much longer before the end than the engine says that it wrote: by a second in one
    answer, by an eighth of that in the middle of an arm's batch.
    """
    gaps: Dict[Tuple[str, str], List[Any]] = {}
    for row, told in _told(subject):
        if told.timings is None:
            continue
        asked, wrote = (MILLISECOND * one for one in told.timings)
        if row["totalSeconds"] < asked + wrote - WORK_SLACK:
            yield (
                subject.at(row),
                "totalSeconds %s" % row["totalSeconds"],
                "at least %s, that the engine says it worked at it" % (asked + wrote),
            )
        first = row["ttftSeconds"]
        if first is None:
            continue
        if first < asked - WORK_SLACK:
            yield (subject.at(row), "ttftSeconds %s" % first, "at least %s, that the prompt took by the body" % asked)
        gap = row["totalSeconds"] - first - wrote
        if gap > TEXT_SLACK:
            yield (
                subject.at(row),
                "%s s from the first text to the end" % (row["totalSeconds"] - first),
                "about %s s, that writing took by the body" % wrote,
            )
        gaps.setdefault((arm_id(row), row["phase"]), []).append(gap)
    for (arm, phase), found in sorted(gaps.items()):
        middle = sorted(found)[len(found) // 2]
        if middle > MIDDLE_SLACK:
            yield (
                "%s#%s-%s" % (subject.path("samples.json"), arm, phase),
                "in the middle %s s more from the first text to the end than writing took by the bodies" % middle,
                "at most %s s" % MIDDLE_SLACK,
            )


def hold_dated(subject: Comparison) -> Iterator[Complaint]:
    """One offset lays every second at which the engine says that it made an answer inside the exchange of that answer.

    Each worker has a clock, and need not have that of the client; but who launched it has the same, or nearly. An engine
    that tells one second for all its answers, or for those of an arm that lie over a second apart, has no clock, and of one
    that is described by a command alone nobody knows what it tells.
    """
    if adapter_of(subject.view, subject.data["engine"]) == FREE_ADAPTER or _stepped(subject):
        return
    launched = {one["worker"] for one in _launches(subject) if one["arguments"]}
    for worker, found in sorted(_spans(subject).items()):
        (least, _, first), (_, most, last) = max(found), min(found, key=lambda one: one[1])
        if least > most + CLOCK_SLACK:
            yield (
                "%s#%s" % (subject.path("samples.json"), last),
                "an answer made outside its exchange when that of %s was made in its own: by %.3f s"
                % (first, least - most),
                "one offset between the clocks of %s and of the client" % worker,
            )
        elif worker in launched and not (least < APART and most > -APART):
            yield (
                "%s#%s" % (subject.path("samples.json"), first),
                "an answer made %.0f s from its exchange by the clock of %s" % (least if least > 0 else most, worker),
                "at most %.0f s, since it was launched for it" % APART,
            )


def _spans(subject: Comparison) -> Dict[str, List[Tuple[float, float, str]]]:
    """By worker with a clock: the least and the most by which it may be before the client's, from each answer of an offer."""
    dated = [(row, told.moments) for row, told in _told(subject) if told.moments is not None]
    if len({second for _, moments in dated for second in moments}) < 2:
        return {}
    told_by: Dict[Tuple[str, str], List[Tuple[float, float, Moments, str]]] = {}
    starts = _starts(subject)
    for row, moments in dated:
        arm = arm_id(row)
        if row["worker"] is not None and starts.get(arm):
            begun = starts[arm] + float(row["startedSeconds"])
            one = begun, begun + float(row["totalSeconds"]), moments, row["offer"]
            told_by.setdefault((row["worker"], arm), []).append(one)
    spans: Dict[str, List[Tuple[float, float, str]]] = {}
    for (worker, _), found in told_by.items():
        stood = max(found)[0] - min(one[1] for one in found) > 1  # the last began so long after the first had ended
        if stood and len({second for one in found for second in one[2]}) == 1:
            continue
        spans.setdefault(worker, []).extend(
            (last - ended, first + 1 - begun, offer) for begun, ended, (first, last), offer in found
        )
    return spans


def _stepped(subject: Comparison) -> bool:
    clients = [arm["client"] for arm in subject.data.get("arms", ())]
    return any(client is not None and client["wallClockStepped"] for client in clients)


def _starts(subject: Comparison) -> Dict[str, float]:
    """When each arm, or the attempt, began, in seconds since 1970."""
    if "arms" not in subject.data:
        return {"attempt": moment(subject.data["startedAt"])}
    return {arm_id(arm): moment(arm["startedAt"]) for arm in subject.data["arms"]}


def _launches(subject: Comparison) -> List[Row]:
    if "arms" not in subject.data:
        return list(subject.data["launches"])
    return [launch for arm in subject.data["arms"] for launch in arm["launches"]]


def hold_build(subject: Comparison) -> Iterator[Complaint]:
    """One build of the engine is named by all answers of a worker that was started once.

    Another arm has another setting, and a build may be named after what it runs with.
    """
    known: Dict[Tuple[Optional[str], str], Tuple[str, str]] = {}
    for row, told in _told(subject):
        for build in told.builds:
            first, offer = known.setdefault((row["worker"], arm_id(row)), (build, row["offer"]))
            if build != first:
                yield (subject.at(row), "an answer of build " + shown(build), "%s, as in %s" % (shown(first), offer))
