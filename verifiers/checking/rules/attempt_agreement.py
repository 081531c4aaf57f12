"""What the documents of one attempt say of one another: launches, instants, controls, probes and the two clocks."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Any, Dict, Iterator, List, Optional

from checking.check import Check, Complaint, Family
from checking.package import Unreadable
from checking.reading import JsonFault, read_json, shown
from checking.rules import attempts, converged
from checking.rules.attempts import exact, lie, ran
from checking.rules.comparison import engine_of, peek
from checking.rules.converged import Attempt
from checking.rules.forgery import Desk
from checking.rules.protocol import instant
from checking.rules.receipts import WITNESS_SLACK

Row = Dict[str, Any]
STAMP = re.compile(r"-(\d{4})(\d{2})(\d{2})t(\d{2})(\d{2})(\d{2})\.(\d{6})z\Z")
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
    match = STAMP.search(data["run"])
    if match is not None:
        right = "%s-%s-%sT%s:%s:%s.%sZ" % match.groups()
        if data["startedAt"] != right:
            yield (_at(subject, "/startedAt"), data["startedAt"], "the stamp of its run: " + right)
    if data["endedAt"] is None or not subject.samples:
        return
    begun, ended = _instant(data["startedAt"]), _instant(data["endedAt"])
    last = max(float(row["startedSeconds"] + row["totalSeconds"]) for row in subject.samples)
    if begun is not None and ended is not None and (ended - begun).total_seconds() + CLOCK_SLACK < last:
        yield (
            _at(subject, "/endedAt"),
            "%s, %.3f s after the start" % (data["endedAt"], (ended - begun).total_seconds()),
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


def _two(data: Row) -> Any:
    return data["requests"] and len(data["launches"]) > 1


def _stamped(data: Row) -> Any:
    return STAMP.search(data["run"])


def _launch(change: Any) -> Any:
    def tell(desk: Desk) -> str:
        with desk.edit("attempt.json") as data:
            change(data["launches"])
        return "launches"

    return tell


def _times(desk: Desk, **values: Any) -> str:
    with desk.edit("attempt.json") as data:
        data.update(values)
    with desk.bench.edit(converged.INDEX) as index:
        for row in index["attempts"]:
            if row["folder"] == desk.folder:
                row.update(values)
    return shown(values)


def _began_earlier(desk: Desk) -> str:
    told = desk.load("attempt.json")["startedAt"]
    return _times(desk, startedAt="2020" + told[4:])


def _ended_at_once(desk: Desk) -> str:
    return _times(desk, endedAt=desk.load("attempt.json")["startedAt"])


def _drop_control(desk: Desk) -> Optional[str]:
    with desk.edit("controls.json") as data:
        workers = {one["worker"] for one in data["controls"]}
        if len(workers) < 2:
            return None
        last = data["controls"].pop()
    return str(last["id"]) + " dropped"


def _other_status(desk: Desk) -> Optional[str]:
    seen = {
        (row["path"], row["responseSha256"])
        for name in desk.ledger_names()
        for row in desk.load(name)["receipts"]
        if not row["traffic"]
    }
    with desk.edit("controls.json") as data:
        one = next((one for one in data["controls"] if (one["path"], one["sha256"]) in seen), None)
        if one is None:
            return None
        one["status"] = 500
    return str(one["id"])


def _control_hash(desk: Desk) -> Optional[str]:
    for name in desk.ledger_names():
        with desk.edit(name) as ledger:
            for row in ledger["receipts"]:
                if not row["traffic"]:
                    row["responseSha256"] = "0" * 64
                    return name
    return None


def _expect(desk: Desk) -> str:
    with desk.edit("attempt.json") as data:
        data["exact"]["expectedTokenIds"] = [*data["exact"]["expectedTokenIds"], 7]
        if data["exact"]["tokenIdsEqual"]:
            data["exact"]["observedTokenIds"] = None
            data["exact"]["tokenIdsEqual"] = data["exact"]["control"] = None
    return "another expectation"


def _halve(desk: Desk) -> str:
    with desk.samples() as rows:
        for row in rows:
            row["totalSeconds"] = round(Decimal(row["totalSeconds"]) / 1000, 9).normalize()
            if row["ttftSeconds"] is not None:
                row["ttftSeconds"] = row["totalSeconds"]
            row["reasoningSeconds"] = None
    return "every answer told a thousand times faster"


def _twice(launches: List[Row]) -> None:
    launches[1]["worker"] = launches[0]["worker"]


CHECKS = (
    Check(
        "attempt-launches",
        "every worker with traffic was launched once, all alike",
        hold_launches,
        (
            lie("forget the launch of a worker with traffic", _two, _launch(lambda launches: launches.pop())),
            lie("launch one worker twice and the other never", _two, _launch(_twice)),
            lie(
                "launch one worker of two with another argument",
                _two,
                _launch(lambda launches: launches[1]["arguments"].append("--another")),
            ),
        ),
    ),
    Check(
        "attempt-span",
        "an attempt began when its run's stamp says, and ended after its last answer",
        hold_span,
        (
            lie("let an attempt begin years before its run", _stamped, _began_earlier),
            lie("end an attempt before its last answer", ran, _ended_at_once),
        ),
    ),
    Check(
        "attempt-asked",
        "a kind of control was asked of every launched worker or of none",
        hold_asked,
        (lie("drop a control of one worker of two", _two, _drop_control),),
    ),
    Check(
        "attempt-control-seen",
        "what a recorder saw of a control is stored and has its status",
        hold_seen,
        (
            lie("tell another status of a control than its recorder saw", ran, _other_status),
            lie("alter the hash of a control's receipt", ran, _control_hash),
        ),
    ),
    Check(
        "attempt-probe",
        "expected token ids are those of the registry's probe",
        hold_probe,
        (lie("expect other tokens than the registry's probe", exact, _expect),),
    ),
    Check(
        "attempt-witness",
        "the client's times hold the recorder's, in the middle of an attempt",
        hold_witness,
        (lie("tell every answer of an attempt a thousand times faster", ran, _halve),),
    ),
)

FAMILY: Family = attempts.FAMILY._replace(checks=(*attempts.CHECKS, *CHECKS))
