"""What must hold of an incomplete comparison as far as its run went: launches, moments, snapshots, its end.

A run that was killed may lack anything at its end: the client record and the timeline of the last arm, the snapshot and
the launches of an arm that took no traffic yet. What stands there must fit all the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterator, List, Tuple

from checking.check import Complaint
from checking.later import Later
from checking.reading import shown
from checking.rules import agreement, protocol
from checking.rules.comparison import ARMS, Comparison, arm_id
from checking.rules.instants import moment, stamp
from checking.rules.protocol import OVERLAP_SLACK, SLACK

lies = Later("checking.rules.aborted_lies")

PHASES = (
    ("native-warm", "readySeconds", "nativeWarmEndedSeconds"),
    ("rr-warm", "snapshotSeconds", "rrWarmEndedSeconds"),
    ("main", "firstMainSeconds", "lastMainSeconds"),
)


def hold_launched(subject: Comparison) -> Iterator[Complaint]:
    """At most one launch a worker and arm, of workers of the comparison; an arm that was asked has all, and all ready.

    Between arms nothing but the setting differs.
    """
    for place, arm in enumerate(subject.data["arms"]):
        at = "%s#/arms/%d/launches" % (subject.path("comparison.json"), place)
        told = [launch["worker"] for launch in arm["launches"]]
        asked = bool(subject.by_arm.get(arm_id(arm)))
        if max(Counter(told).values(), default=0) > 1 or not set(told) <= set(subject.workers):
            yield (at, "launches of %s" % shown(told), "at most one of each of %s" % shown(subject.workers))
        elif asked and set(told) != set(subject.workers):
            yield (at, "launches of %s" % shown(told), "one of each of %s, since it was asked" % shown(subject.workers))
        elif asked and any(launch["ready"] is None for launch in arm["launches"]):
            yield (at, "a launch that was never ready", "ready launches, since the arm was asked")
    for path, found, expected in protocol.hold_launches(subject):
        if not path.endswith("/launches"):
            yield (path, found, expected)


def hold_spans(subject: Comparison) -> Iterator[Complaint]:
    """Samples lie in their phase as far as the timeline was reached, and each phase begins when the one before has ended."""
    for place, arm in enumerate(subject.data["arms"]):
        line = arm["timeline"]
        at = "%s#/arms/%d/timeline" % (subject.path("comparison.json"), place)
        before: Any = 0
        for phase, opens, closes in PHASES:
            rows = subject.by_phase.get((arm_id(arm), phase), [])
            if not rows:
                continue
            first = min(row["startedSeconds"] for row in rows)
            last = max(row["startedSeconds"] + row["totalSeconds"] for row in rows)
            where = "%s samples from %s s to %s s" % (phase, first, last)
            if first < before - SLACK:
                yield (at, where, "not before %s s, when the phase before had ended" % before)
            before = last
            if line is None:
                continue
            if line[opens] is None:
                yield (at + "/" + opens, "null with %s samples" % phase, "a moment not after %s s" % first)
            elif first < line[opens] - SLACK:
                yield (at + "/" + opens, where, "not before %s s" % line[opens])
            if line[closes] is not None and last > line[closes] + SLACK:
                yield (at + "/" + closes, where, "not after %s s" % line[closes])


def hold_snapshots(subject: Comparison) -> Iterator[Complaint]:
    """Snapshots are those of the first arms in order, of one source; an arm that was warmed round robin has one."""
    at = subject.path("snapshots.json") + "#/snapshots"
    told = [arm_id(one) for one in subject.snapshots]
    begun = [arm_id(arm) for arm in subject.data["arms"]]
    warmed = [arm for arm in ARMS if subject.by_phase.get((arm, "rr-warm"))]
    if told != begun[: len(told)] or len(told) < len(warmed):
        yield (at, "snapshots of %s" % shown(told), "those of %s, in their order" % shown(warmed))
    for path, found, expected in protocol.hold_snapshots(subject):
        if path != at:
            yield (path, found, expected)


def hold_ended(subject: Comparison) -> Iterator[Complaint]:
    """A run was aborted after the last end of its samples: by its own clock, and by the day's where that is told.

    The run's id tells when it began. The two clocks need not agree to the second; a stepped one tells nothing.
    """
    data = subject.data
    began = stamp(data["run"])
    if any(arm["client"] is not None and arm["client"]["wallClockStepped"] for arm in data["arms"]):
        return
    ends: List[Tuple[float, str]] = []
    for arm in data["arms"]:
        start = moment(arm["startedAt"])
        for row in subject.by_arm.get(arm_id(arm), []):
            ends.append((start + float(row["startedSeconds"] + row["totalSeconds"]), row["offer"]))
    if not ends:
        return
    last, offer = max(ends)
    at = subject.path("comparison.json") + "#/"
    if data["abortedAt"] is not None and moment(data["abortedAt"]) < last - OVERLAP_SLACK:
        yield (at + "abortedAt", data["abortedAt"], "not before the end of " + offer)
    if began and data["abortedSeconds"] is not None and float(data["abortedSeconds"]) < last - began - OVERLAP_SLACK:
        yield (
            at + "abortedSeconds",
            "%s s" % data["abortedSeconds"],
            "at least %.3f s, the end of %s" % (last - began, offer),
        )


ROWS = (
    (
        "incomplete-setting",
        "every launch carries the setting once, with its arm's value",
        protocol.hold_setting,
        (("name another candidate value of an aborted run", lies.other_value),),
    ),
    (
        "incomplete-launches",
        "at most one launch a worker and arm, and all in an arm that was asked",
        hold_launched,
        (
            ("drop a launch of an aborted run", lies.drop_launch),
            ("tell both launches of an aborted run of one worker", lies.launch_both_on_one),
            ("launch one engine of an aborted run otherwise", lies.launch_otherwise),
        ),
    ),
    (
        "incomplete-protocol",
        "the request bodies say what the protocol says",
        protocol.hold_protocol,
        (("tell another temperature of an aborted run", lies.other_temperature),),
    ),
    (
        "incomplete-order",
        "each arm began after the one before",
        protocol.hold_order,
        (("let the first arms of an aborted run begin in the other order", lies.backwards),),
    ),
    (
        "incomplete-calendar",
        "each arm began after the one before had ended",
        protocol.hold_calendar,
        (("let an arm of an aborted run begin within another", lies.overlap),),
    ),
    (
        "incomplete-moments",
        "samples lie in their phase as far as the timeline was reached",
        hold_spans,
        (("let a warm-up of an aborted run begin with its arm", lies.start_early),),
    ),
    (
        "incomplete-snapshots",
        "every arm that was warmed has its snapshot",
        hold_snapshots,
        (("drop a snapshot of an aborted run", lies.forget_snapshot),),
    ),
    (
        "incomplete-snapshot-moment",
        "a snapshot is taken between native and round-robin warm-ups",
        protocol.hold_snapshot_moment,
        (("move a snapshot of an aborted run behind the load", lies.late_snapshot),),
    ),
    (
        "incomplete-late",
        "the client was late when its figures say so, and only then",
        agreement.hold_late,
        (("deny that the client of an aborted run was late", lies.deny_late),),
    ),
    (
        "incomplete-lag",
        "no main sample lagged more than the greatest lag that is told",
        agreement.hold_least_send_lag,
        (("let a main request of an aborted run leave late and not say so", lies.lag_quietly),),
    ),
    (
        "incomplete-model",
        "one model is asked for, and one answers",
        agreement.hold_models,
        (("let another model answer once in an aborted run", lies.answer_as_another),),
    ),
    (
        "incomplete-receipt-fits",
        "path, status and content type of a receipt fit its exchange",
        agreement.hold_fitting,
        (
            (
                "let a chat request of an aborted run have gone to the embeddings path",
                lies.receive_elsewhere,
            ),
        ),
    ),
    (
        "incomplete-receipt-offset",
        "one offset lays every receipt of a ledger inside its sample",
        agreement.hold_clocks,
        (("move a receipt of an aborted run a hundred seconds on", lies.receive_later),),
    ),
    (
        "incomplete-end",
        "a run was aborted after the last end of its samples",
        hold_ended,
        (
            ("abort a run before its samples", lies.abort_at_once),
            ("abort a run as its last arm began", lies.abort_before_the_end),
        ),
    ),
)
