"""What the documents of one attempt say of one another: launches, instants, controls, probes and the two clocks."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, Iterator, List, Optional

from checking.check import Check, Complaint, Family, Mutation
from checking.later import Later
from checking.package import Unreadable
from checking.reading import JsonFault, read_json, shown
from checking.rules import agreement, attempts, clocks
from checking.rules.comparison import engine_of, peek
from checking.rules.converged import Attempt
from checking.rules.instants import begun, instant
from checking.rules.receipts import WITNESS_SLACK

lies = Later("checking.rules.attempt_agreement_lies")

Row = Dict[str, Any]
CLOCK_SLACK = 0.5  # seconds by which a wall clock may be set while an attempt runs
DIED = ("ENGINE_DIED", "NOT_READY")


def _at(subject: Attempt, pointer: str) -> str:
    return subject.path("attempt.json") + "#" + pointer


def _alike(launch: Row) -> str:
    """A launch without what may differ between the workers of an attempt."""
    alias = launch["worker"]
    arguments = [word.replace(alias, "{alias}") for word in launch["arguments"]]
    environment = {name: value.replace(alias, "{alias}") for name, value in launch["environment"].items()}
    return shown([arguments, environment], 2000)


def hold_launches(subject: Attempt) -> Iterator[Complaint]:
    """Every worker that had traffic was launched, each at most once, all alike but for what names the worker."""
    launches = subject.data["launches"]
    workers = [launch["worker"] for launch in launches]
    for worker in sorted(set(workers)):
        if workers.count(worker) > 1:
            yield (_at(subject, "/launches"), "%d launches of %s" % (workers.count(worker), worker), "one")
    for worker, count in sorted(subject.traffic_counts().items()):
        if count and worker not in workers:
            yield (_at(subject, "/launches"), "no launch of %s, which has %d receipts" % (worker, count), "one")
    for number, launch in enumerate(launches[1:], 1):
        if _alike(launch) != _alike(launches[0]):
            yield (
                _at(subject, "/launches/%d" % number),
                shown(launch["arguments"], 200),
                "the launch of %s but for placeholders: %s" % (workers[0], shown(launches[0]["arguments"], 200)),
            )


def _instant(text: str) -> Optional[datetime]:
    try:
        return instant(text)
    except ValueError:
        return None


def hold_span(subject: Attempt) -> Iterator[Complaint]:
    """The run's stamp is the instant when the attempt began, and its last answer came before its end."""
    data = subject.data
    right = begun(data["run"])
    if right is not None and data["startedAt"] != right:
        yield (_at(subject, "/startedAt"), data["startedAt"], "the stamp of its run: " + right)
    if data["endedAt"] is None or not subject.samples:
        return
    start, ended = _instant(data["startedAt"]), _instant(data["endedAt"])
    last = max(float(row["startedSeconds"] + row["totalSeconds"]) for row in subject.samples)
    if start is not None and ended is not None and (ended - start).total_seconds() + CLOCK_SLACK < last:
        yield (
            _at(subject, "/endedAt"),
            "%s, %.3f s after the start" % (data["endedAt"], (ended - start).total_seconds()),
            "not before its last answer, %.3f s after the start" % last,
        )


def hold_asked(subject: Attempt) -> Iterator[Complaint]:
    """A kind of control was asked of every launched worker or of none, unless an engine died over it."""
    if subject.data["reason"] in DIED or not subject.data["ended"]:
        return
    launched = {launch["worker"] for launch in subject.data["launches"]}
    kinds: Dict[str, List[str]] = {}
    for one in subject.controls:
        kinds.setdefault(one["kind"], []).append(one["worker"])
    for kind, workers in sorted(kinds.items()):
        if sorted(workers) != sorted(launched):
            yield (subject.path("controls.json"), "%s of %s" % (kind, shown(workers)), "one of each launched worker")


def hold_seen(subject: Attempt) -> Iterator[Complaint]:
    """What a recorder saw of a control is stored, and a control that it saw has the status that it saw.

    The runner asks past the recorders; a gateway that asks the same goes through them.
    """
    there: Dict[Any, List[Optional[int]]] = {}
    for (_, worker), rows in subject.ledgers.items():
        name = subject.ledger_names.get(("attempt", worker), worker)
        for row in rows:
            if row["traffic"]:
                continue
            there.setdefault((worker, row["path"], row["responseSha256"]), []).append(row["status"])
            for key, size in (("requestSha256", "requestBytes"), ("responseSha256", "responseBytes")):
                if row[size] and not subject.bodies.has(row[key]):
                    yield ("%s#%d/%s" % (name, row["sequence"], key), row[key], "the hash of a stored body")
    for one in subject.controls:
        statuses = there.get((one["worker"], one["path"], one["sha256"]))
        if statuses is not None and one["status"] not in statuses:
            at = "%s#%s/status" % (subject.path("controls.json"), shown(one["id"]))
            yield (at, shown(one["status"]), "what the recorder saw: " + shown(statuses))


def _asks(value: Any) -> Any:
    """What a request or a probe asks: its messages or its prompt; None when it has neither."""
    inner = value.get("request", value) if isinstance(value, dict) else None
    return (inner.get("messages"), inner.get("prompt")) if isinstance(inner, dict) else None


def hold_probe(subject: Attempt) -> Iterator[Complaint]:
    """The expected token ids are those of the registry's probe that asks the same."""
    told = subject.data["exact"]
    engine = engine_of(subject.view, subject.data["engine"])
    if told is None or engine is None or not engine.get("registry") or not subject.bodies.has(told["requestSha256"]):
        return
    for one in peek(subject.view, "%s/manifest.json" % engine["registry"]).get("probes", ()):
        if one["profile"] != subject.data["profile"] or not subject.view.has(one["path"]):
            continue
        try:
            mine = _asks(read_json(subject.bodies.read(told["requestSha256"])))
            same = mine is not None and mine == _asks(read_json(subject.view.read(one["path"])))
        except (JsonFault, Unreadable):
            continue
        if same and one["expectedTokenIds"] != told["expectedTokenIds"]:
            yield (
                _at(subject, "/exact/expectedTokenIds"),
                shown(told["expectedTokenIds"]),
                "those of the probe %s: %s" % (one["path"], shown(one["expectedTokenIds"])),
            )


def hold_witness(subject: Attempt) -> Iterator[Complaint]:
    """What the client timed took at least as long as what the recorder saw, in the middle of the attempt's requests.

    One late wake-up proves nothing, so the median counts, with the slack that comparisons have.
    """
    spent = {
        row["requestId"]: row["endedSeconds"] - row["startedSeconds"]
        for _, row in subject.traffic("attempt")
        if row["complete"] and row["requestId"] is not None
    }
    gaps = sorted(
        row["totalSeconds"] - spent[row["offer"]]
        for row in subject.samples
        if row["offer"] in spent and row["transport"] == "complete"
    )
    if gaps and gaps[len(gaps) // 2] < -WITNESS_SLACK:
        yield (
            subject.path("samples.json"),
            "a client that took %s s less than the recorder" % -gaps[len(gaps) // 2],
            "never less, but for 5 ms",
        )


CHECKS = (
    Check(
        "attempt-launches",
        "every worker with traffic was launched once, all alike",
        hold_launches,
        (
            Mutation("forget the launch of a worker with traffic", lies.forget_launch),
            Mutation("launch one worker twice and the other never", lies.launch_one_twice),
            Mutation("launch one worker of two with another argument", lies.launch_one_otherwise),
        ),
    ),
    Check(
        "attempt-span",
        "an attempt began when its run's stamp says, and ended after its last answer",
        hold_span,
        (
            Mutation("let an attempt begin years before its run", lies.begin_earlier),
            Mutation("end an attempt before its last answer", lies.end_at_once),
        ),
    ),
    Check(
        "attempt-asked",
        "a kind of control was asked of every launched worker or of none",
        hold_asked,
        (Mutation("drop a control of one worker of two", lies.drop_control),),
    ),
    Check(
        "attempt-control-seen",
        "what a recorder saw of a control is stored and has its status",
        hold_seen,
        (
            Mutation("tell another status of a control than its recorder saw", lies.other_status),
            Mutation("alter the hash of a control's receipt", lies.other_control_hash),
        ),
    ),
    Check(
        "attempt-probe",
        "expected token ids are those of the registry's probe",
        hold_probe,
        (Mutation("expect other tokens than the registry's probe", lies.expect_others),),
    ),
    Check(
        "attempt-witness",
        "the client's times hold the recorder's, in the middle of an attempt",
        hold_witness,
        (Mutation("tell every answer of an attempt a thousand times faster", lies.tell_faster),),
    ),
    Check(
        "attempt-offset",
        "one offset lays every receipt of an attempt inside its sample",
        agreement.hold_clocks,
        (Mutation("move a receipt of an attempt a hundred seconds on", lies.receive_later),),
    ),
    Check(
        "attempt-answer-own",
        "no two functional samples have one answer",
        agreement.hold_answer_ids,
        (Mutation("give a functional request the answer of another", lies.answer_again),),
    ),
    Check(
        "attempt-engine-times",
        "no functional answer came sooner than the engine says that it worked at it",
        clocks.hold_work,
        (Mutation("let an engine work at a functional answer for longer than it took", lies.work_longer),),
    ),
    Check(
        "attempt-engine-dates",
        "the engine made each functional answer within its exchange, by one offset of its clock",
        clocks.hold_dated,
        (Mutation("let a functional answer have been made the day before", lies.date_back),),
    ),
    Check(
        "attempt-engine-build",
        "one build of the engine is named by all functional answers of a worker",
        clocks.hold_build,
        (Mutation("let two functional answers name two builds", lies.build_anew),),
    ),
)

FAMILY: Family = attempts.FAMILY._replace(checks=(*attempts.CHECKS, *CHECKS))
