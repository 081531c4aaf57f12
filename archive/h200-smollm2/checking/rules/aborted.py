"""What must hold of an incomplete comparison as far as its run went: launches, moments, snapshots, its end.

A run that was killed may lack anything at its end: the client record and the timeline of the last arm, the snapshot and
the launches of an arm that took no traffic yet. What stands there must fit all the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterator, List, Tuple

from checking.check import Complaint
from checking.reading import shown
from checking.rules import protocol
from checking.rules.comparison import ARMS, Comparison, arm_id
from checking.rules.protocol import OVERLAP_SLACK, SLACK, moment

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
    stamp = protocol.stamp(data["run"])
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
    if stamp and data["abortedSeconds"] is not None and float(data["abortedSeconds"]) < last - stamp - OVERLAP_SLACK:
        yield (
            at + "abortedSeconds",
            "%s s" % data["abortedSeconds"],
            "at least %.3f s, the end of %s" % (last - stamp, offer),
        )
