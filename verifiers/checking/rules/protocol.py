"""The protocol of a comparison: arms, launches, moments, snapshots, the client's own lag."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Dict, Iterator, Optional, Tuple

from checking.check import Complaint
from checking.plan import ORDER, WORKERS
from checking.reading import shown
from checking.rules.comparison import ARMS, LEDGER, Comparison, arm_id, engine_of
from checking.rules.instants import moment
from checking.rules.launches import launch_values, values_of
from checking.rules.shapes import TIMES

SLACK = Decimal("0.000001")
OVERLAP_SLACK = 1.0
BUDGETS = ("max_tokens", "max_completion_tokens")


def _at(subject: Comparison, place: int, rest: str = "") -> str:
    return "%s#/arms/%d%s" % (subject.path("comparison.json"), place, rest)


def hold_files(subject: Comparison) -> Iterator[Complaint]:
    """The folder holds the documents, the ledgers of its arms, and bodies under their hashes; nothing else."""
    cut = len(subject.folder) + 1
    for name in subject.view.below(subject.folder, subject.bodies.folder):
        inner = name[cut:]
        if inner.startswith("bodies/") and len(inner) == 71 and not inner[7:].strip("0123456789abcdef"):
            continue
        if inner in ("comparison.json", "samples.json", "snapshots.json", "decision.json"):
            continue
        if inner.startswith("ledgers/") and LEDGER.match(inner[8:]):
            match = LEDGER.match(inner[8:])
            if match and match.group(1) in ARMS and match.group(2) in subject.workers:
                continue
        yield (name, "a file that no comparison has", "documents, ledgers of its arms and bodies")


def hold_names(subject: Comparison) -> Iterator[Complaint]:
    """Every document names the comparison, and every ledger the arm and the worker, that its path says."""
    own = subject.folder.rpartition("/")[2]
    if subject.data["id"] != own:
        yield (subject.path("comparison.json") + "#/id", subject.data["id"], own)
    for name in ("samples.json", "snapshots.json", "decision.json"):
        document = subject.scope.documents.get(subject.path(name))
        if document is not None and document["comparison"] != own:
            yield (subject.path(name) + "#/comparison", document["comparison"], own)
    for (arm, worker), name in subject.ledger_names.items():
        ledger = subject.scope.documents[name]
        if (ledger["arm"], ledger["worker"]) != (arm, worker):
            yield (name, "%s of %s" % (ledger["worker"], ledger["arm"]), "%s of %s" % (worker, arm))


def hold_workers(subject: Comparison) -> Iterator[Complaint]:
    """Two workers on two devices, each alias once."""
    told = [(one["alias"], one["device"]) for one in subject.data["workers"]]
    if told != [("worker-%d" % number, "device-%d" % number) for number in range(1, WORKERS + 1)]:
        yield (subject.path("comparison.json") + "#/workers", shown(told), "worker-1 on device-1, worker-2 on device-2")


def hold_order(subject: Comparison) -> Iterator[Complaint]:
    """The arms ran A, B, B, A, A, B: sequence, repetition and arm agree, and each began after the one before."""
    before = ""
    for place, arm in enumerate(subject.data["arms"]):
        told = (arm["sequence"], arm["repetition"], arm["arm"])
        right = (place + 1, place // 2 + 1, ORDER[place])
        if told != right:
            yield (_at(subject, place), "sequence %d, repetition %d, arm %s" % told, "%d, %d, %s" % right)
        if arm["startedAt"] <= before:
            yield (_at(subject, place, "/startedAt"), arm["startedAt"], "later than " + before)
        before = arm["startedAt"]


def hold_calendar(subject: Comparison) -> Iterator[Complaint]:
    """Every arm began on a day that exists, and not before the one before it had ended."""
    end = 0.0
    for place, arm in enumerate(subject.data["arms"]):
        start = moment(arm["startedAt"])
        if not start:
            yield (_at(subject, place, "/startedAt"), arm["startedAt"], "a day of the calendar")
            continue
        stepped = arm["client"] is not None and arm["client"]["wallClockStepped"]
        if start < end - OVERLAP_SLACK and not stepped:
            yield (_at(subject, place, "/startedAt"), arm["startedAt"], "not before the arm before had ended")
        end = start + float(arm["wallSeconds"] or 0)


def hold_setting(subject: Comparison) -> Iterator[Complaint]:
    """Every launch carries the setting once, with the value of its arm, and the two values differ."""
    setting = subject.data["setting"]
    if setting["baseline"] == setting["candidate"]:
        yield (subject.path("comparison.json") + "#/setting", "the same value twice", "two different values")
    for place, arm in enumerate(subject.data["arms"]):
        right = setting["baseline"] if arm["arm"] == "A" else setting["candidate"]
        for number, launch in enumerate(arm["launches"]):
            values = launch_values(launch, setting["argument"])
            if values != [right]:
                yield (
                    _at(subject, place, "/launches/%d/arguments" % number),
                    "%s with %s" % (shown(setting["argument"]), shown(values)),
                    "the value %s once" % shown(right),
                )


def hold_launches(subject: Comparison) -> Iterator[Complaint]:
    """A launch a worker in every arm; between arms nothing but the setting differs."""
    setting = subject.data["setting"]
    first: Dict[str, Any] = {}
    for place, arm in enumerate(subject.data["arms"]):
        workers = [launch["worker"] for launch in arm["launches"]]
        if workers != subject.workers:
            yield (_at(subject, place, "/launches"), "launches of %s" % shown(workers), shown(subject.workers))
        for number, launch in enumerate(arm["launches"]):
            bare = list(launch["arguments"])
            for spot, _, joined in values_of(bare, setting["argument"]):
                bare[spot if joined else spot + 1] = setting["argument"] + "="
            environment = {
                key: one for key, one in launch["environment"].items() if "ENV:" + key != setting["argument"]
            }
            told = (bare, environment)
            if first.setdefault(launch["worker"], told) != told:
                yield (
                    _at(subject, place, "/launches/%d" % number),
                    "arguments or environment that differ beyond %s" % shown(setting["argument"]),
                    "those of the first arm",
                )


def hold_protocol(subject: Comparison) -> Iterator[Complaint]:
    """The request bodies say what the protocol says: stream, temperature, output budget; the native one is plain."""
    requests, protocol = subject.data["requests"], subject.data["protocol"]
    at = subject.path("comparison.json") + "#/protocol/"
    main = subject.bodies.request(requests["main"]["sha256"])
    native = subject.bodies.request(requests["native"]["sha256"])
    if main.streaming != protocol["stream"]:
        yield (at + "stream", shown(protocol["stream"]), "what the main body asks: " + shown(main.streaming))
    if native.streaming:
        yield (subject.path("comparison.json") + "#/requests/native", "a stream", "a plain JSON answer")
    asked = main.fields.get("temperature")
    if asked is not None and asked != protocol["temperature"] and Decimal(str(asked)) != protocol["temperature"]:
        yield (at + "temperature", shown(protocol["temperature"]), "what the main body asks: " + shown(asked))
    budgets = [main.fields[key] for key in BUDGETS if main.fields.get(key) is not None]
    if budgets and protocol["outputBudget"] not in budgets:
        yield (at + "outputBudget", shown(protocol["outputBudget"]), "what the main body asks: " + shown(budgets))


def hold_timeline(subject: Comparison) -> Iterator[Complaint]:
    """The moments of an arm stand in order, and its wall time ends with its last main response."""
    for place, arm in enumerate(subject.data["arms"]):
        if arm["timeline"] is None:
            continue
        before: Any = 0
        for name in TIMES:
            now = arm["timeline"][name]
            if now is None:
                continue
            if now < before:
                yield (_at(subject, place, "/timeline/" + name), "%s s" % now, "not before %s s" % before)
            before = now
        last = arm["timeline"]["lastMainSeconds"]
        if arm["wallSeconds"] is not None and last is not None and abs(arm["wallSeconds"] - last) > SLACK:
            yield (
                _at(subject, place, "/wallSeconds"),
                "%s s" % arm["wallSeconds"],
                "%s s, the last main response" % last,
            )


def _edges(subject: Comparison, arm: str, phase: str) -> Optional[Tuple[Any, Any]]:
    """When the first sample of an arm's phase began and the last one ended."""
    spans = subject.spans(arm, phase)
    return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else None


def hold_moments(subject: Comparison) -> Iterator[Complaint]:
    """Samples lie in their phase: native warm-ups, then round-robin warm-ups, then main, as the timeline says."""
    for place, arm in enumerate(subject.data["arms"]):
        line = arm["timeline"]
        if line is None:
            continue
        spans = {phase: _edges(subject, arm_id(arm), phase) for phase in ("native-warm", "rr-warm", "main")}
        bounds = (
            ("native-warm", "readySeconds", "nativeWarmEndedSeconds"),
            ("rr-warm", "snapshotSeconds", "rrWarmEndedSeconds"),
        )
        for phase, opens, closes in bounds:
            span = spans[phase]
            if span is None or line[opens] is None or line[closes] is None:
                continue
            if span[0] < line[opens] - SLACK or span[1] > line[closes] + SLACK:
                yield (
                    _at(subject, place, "/timeline/" + closes),
                    "%s samples from %s s to %s s" % (phase, span[0], span[1]),
                    "between %s s and %s s" % (line[opens], line[closes]),
                )
        span = spans["main"]
        if span is None or line["firstMainSeconds"] is None or line["lastMainSeconds"] is None:
            continue
        for name, told, right in (
            ("firstMainSeconds", line["firstMainSeconds"], span[0]),
            ("lastMainSeconds", line["lastMainSeconds"], span[1]),
        ):
            if abs(told - right) > SLACK:
                yield (_at(subject, place, "/timeline/" + name), "%s s" % told, "%s s, by the main samples" % right)


def hold_snapshots(subject: Comparison) -> Iterator[Complaint]:
    """One snapshot an arm, of one source, each naming every device with its worker once.

    What follows a semicolon in the method are figures of that snapshot: of a GPU, what each engine's processes hold.
    """
    at = subject.path("snapshots.json") + "#/snapshots/"
    right = list(ARMS[: len(subject.data["arms"])])
    told = [arm_id(one) for one in subject.snapshots]
    if told != right:
        yield (at[:-1], "snapshots of %s" % shown(told), shown(right))
    devices = sorted((one["device"], one["alias"]) for one in subject.data["workers"])
    for place, one in enumerate(subject.snapshots):
        seen = sorted((row["device"], row["worker"]) for row in one["devices"])
        if seen != devices:
            yield ("%s%d/devices" % (at, place), shown(seen), shown(devices))
        told, first = (row["source"] + ", " + row["method"].split(";")[0] for row in (one, subject.snapshots[0]))
        if told != first:
            yield ("%s%d/source" % (at, place), told, "the source of the first: " + first)


def hold_snapshot_moment(subject: Comparison) -> Iterator[Complaint]:
    """A snapshot is taken after the native warm-ups and before the round-robin ones."""
    arms = {arm_id(arm): arm for arm in subject.data["arms"]}
    for place, one in enumerate(subject.snapshots):
        line = arms.get(arm_id(one), {}).get("timeline")
        native = _edges(subject, arm_id(one), "native-warm")
        rr = _edges(subject, arm_id(one), "rr-warm")
        taken = one["takenSeconds"]
        low = max(
            [span for span in (native and native[1], line and line["nativeWarmEndedSeconds"]) if span is not None]
            or [0]
        )
        highs = [span for span in (rr and rr[0], line and line["snapshotSeconds"]) if span is not None]
        if taken < low - SLACK or (highs and taken > min(highs) + SLACK):
            yield (
                "%s#/snapshots/%d/takenSeconds" % (subject.path("snapshots.json"), place),
                "%s s" % taken,
                "from %s s to %s s" % (low, min(highs) if highs else "the end"),
            )


def hold_memory(subject: Comparison) -> Iterator[Complaint]:
    """A figure that was not read is null with a reason, never 0; what is used is at most what there is."""
    for place, one in enumerate(subject.snapshots):
        for number, row in enumerate(one["devices"]):
            at = "%s#/snapshots/%d/devices/%d" % (subject.path("snapshots.json"), place, number)
            used, total = row["usedBytes"], row["totalBytes"]
            if used is None and not row["reason"]:
                yield (at + "/reason", "null", "a reason, since usedBytes is null")
            elif used == 0:
                yield (at + "/usedBytes", "0", "a figure that was read, or null with a reason")
            elif used is not None and total is not None and used > total:
                yield (at + "/usedBytes", "%d of %d" % (used, total), "at most the total")


def hold_synthetic(subject: Comparison) -> Iterator[Complaint]:
    """What the synthetic engine made says so, here, in its snapshots and in the manifest."""
    engine = engine_of(subject.view, subject.data["engine"])
    told = subject.data["synthetic"]
    if engine is None:
        yield (subject.path("comparison.json") + "#/engine", subject.data["engine"], "an engine of the manifest")
        return
    if engine.get("synthetic") is not told or (engine.get("adapter") == "synthetic") is not told:
        yield (subject.path("comparison.json") + "#/synthetic", shown(told), shown(engine.get("synthetic")))
    for place, one in enumerate(subject.snapshots):
        if told and one["source"] == "nvml":
            yield (
                "%s#/snapshots/%d/source" % (subject.path("snapshots.json"), place),
                "nvml",
                "no GPU: the engine is synthetic",
            )
        if one["source"] == "synthetic" and not told:
            yield (
                "%s#/snapshots/%d/source" % (subject.path("snapshots.json"), place),
                "synthetic",
                "synthetic only with synthetic",
            )


def hold_log_window(subject: Comparison) -> Iterator[Complaint]:
    """A finding in an engine's log lies in the main window of its arm."""
    for place, arm in enumerate(subject.data["arms"]):
        line = arm["timeline"] or {}
        last = line.get("lastMainSeconds")
        for number, one in enumerate(arm["logFindings"]):
            if one["worker"] not in subject.workers:
                yield (_at(subject, place, "/logFindings/%d" % number), one["worker"], "a worker of the comparison")
            elif last is not None and one["atSeconds"] < (line.get("rrWarmEndedSeconds") or 0) - SLACK:
                yield (
                    _at(subject, place, "/logFindings/%d" % number),
                    "%s s" % one["atSeconds"],
                    "inside the main window",
                )


def hold_date(subject: Comparison) -> Iterator[Complaint]:
    """A date control reads every worker in every arm once."""
    control = subject.data["dateControl"]
    if control is None:
        return
    told = sorted((arm_id(one), one["worker"]) for one in control["nativeTokenIds"])
    right = sorted((arm_id(arm), worker) for arm in subject.data["arms"] for worker in subject.workers)
    if told != right:
        at = subject.path("comparison.json") + "#/dateControl/nativeTokenIds"
        yield (at, "%d readings" % len(told), "one of every worker in every arm: %d" % len(right))
