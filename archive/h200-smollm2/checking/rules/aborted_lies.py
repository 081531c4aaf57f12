"""Lies about an incomplete comparison as far as its run went, each coherent but for its meaning, and the table of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Callable, Optional

from checking.rules import aborted, agreement, protocol
from checking.rules.agreement import READ
from checking.rules.comparison import Row, arm_id
from checking.rules.forgery import Desk


def _data(change: Callable[[Row], Optional[str]]) -> Callable[[Desk], Optional[str]]:
    """Change comparison.json; None when `change` found nothing of its kind."""

    def tell(desk: Desk) -> Optional[str]:
        data = desk.load("comparison.json")
        told = change(data)
        if told is not None:
            desk.bench.store(desk.path("comparison.json"), data)
        return told

    return tell


def _other_value(data: Row) -> str:
    data["setting"]["candidate"] = "another"
    return "the candidate told as another"


def _launch_otherwise(data: Row) -> Optional[str]:
    if len([arm for arm in data["arms"] if arm["launches"]]) < 2:
        return None
    for arm in data["arms"]:
        for launch in arm["launches"]:
            if any(launch["worker"] == one["worker"] for one in data["arms"][1]["launches"]):
                launch["environment"]["FURTHER"] = "1"
                return "a further variable in " + arm_id(arm)
    return None


def _other_temperature(data: Row) -> str:
    data["protocol"]["temperature"] = Decimal("1.25")
    return "temperature told as 1.25"


def _drop_launch(desk: Desk) -> Optional[str]:
    asked = {arm_id(row) for row in desk.load("samples.json")["samples"]}
    with desk.edit("comparison.json") as data:
        for arm in data["arms"]:
            if arm_id(arm) in asked and arm["launches"]:
                arm["launches"].pop()
                return "a launch of %s dropped" % arm_id(arm)
    return None


def _launch_both_on_one(data: Row) -> Optional[str]:
    arm = next((arm for arm in data["arms"] if len(arm["launches"]) > 1), None)
    if arm is None:
        return None
    arm["launches"][1] = dict(arm["launches"][0])
    return "both launches told of " + str(arm["launches"][0]["worker"])


def _backwards(data: Row) -> Optional[str]:
    if len(data["arms"]) < 2:
        return None
    one, two = data["arms"][:2]
    one["startedAt"], two["startedAt"] = two["startedAt"], one["startedAt"]
    return "the first two arms begun in the other order"


def _overlap(data: Row) -> Optional[str]:
    if len(data["arms"]) < 2 or (data["arms"][0]["wallSeconds"] or 0) < 3:
        return None
    data["arms"][1]["startedAt"] = data["arms"][0]["startedAt"][:-7] + "999999Z"
    return "the second arm begun within the first"


def _start_early(desk: Desk) -> Optional[str]:
    with desk.samples() as rows:
        row = next((row for row in rows if row["phase"] == "rr-warm"), None)
        if row is None:
            return None
        row["startedSeconds"] = Decimal("0.000001")
    return str(row["offer"]) + " begun with its arm"


def _forget_snapshot(desk: Desk) -> Optional[str]:
    if not desk.bench.has(desk.path("snapshots.json")):
        return None
    with desk.edit("snapshots.json") as value:
        if not value["snapshots"]:
            return None
        value["snapshots"].pop(0)
    return "the first snapshot dropped"


def _late_snapshot(desk: Desk) -> Optional[str]:
    warmed = {arm_id(row) for row in desk.load("samples.json")["samples"] if row["phase"] == "rr-warm"}
    if not desk.bench.has(desk.path("snapshots.json")):
        return None
    with desk.edit("snapshots.json") as value:
        one = next((one for one in value["snapshots"] if arm_id(one) in warmed), None)
        if one is None:
            return None
        one["takenSeconds"] += 500
    return "a snapshot taken 500 s later"


def _lag_quietly(desk: Desk) -> Optional[str]:
    told = {arm_id(arm) for arm in desk.load("comparison.json")["arms"] if arm["client"] is not None}
    with desk.samples() as rows:
        row = next((row for row in rows if row["phase"] == "main" and arm_id(row) in told), None)
        if row is None:
            return None
        row["sendLagSeconds"] += 50
    return str(row["offer"]) + " left 50 s later"


def _deny_late(data: Row) -> Optional[str]:
    client = next((arm["client"] for arm in data["arms"] if arm["client"] is not None), None)
    if client is None:
        return None
    client.update(late=False, sendLagMaxSeconds=client["limitSeconds"] + 99)
    return "a lag of 99 s and not late"


def _abort_at_once(desk: Desk) -> Optional[str]:
    rows = desk.load("samples.json")["samples"]
    with desk.edit("comparison.json") as data:
        if not rows or data["abortedSeconds"] is None or protocol.stamp(data["run"]) == 0:
            return None
        stepped = any(arm["client"] is not None and arm["client"]["wallClockStepped"] for arm in data["arms"])
        first = protocol.moment(data["arms"][0]["startedAt"]) - protocol.stamp(data["run"])
        if stepped or first + float(rows[-1]["startedSeconds"]) < 1.5:
            return None
        data["abortedSeconds"] = Decimal("0.1")
    return "aborted 0.1 s after the beginning"


def _abort_before_the_end(desk: Desk) -> Optional[str]:
    rows = desk.load("samples.json")["samples"]
    with desk.edit("comparison.json") as data:
        if any(arm["client"] is not None and arm["client"]["wallClockStepped"] for arm in data["arms"]):
            return None
        arm = data["arms"][-1] if data["arms"] else None
        if arm is None or not any(arm_id(row) == arm_id(arm) and row["startedSeconds"] > 1.5 for row in rows):
            return None
        data["abortedAt"] = arm["startedAt"]
    return "aborted as the last arm began"


def _last_seen(change: Callable[[Row], Any]) -> Callable[[Desk], Optional[str]]:
    """Change the last receipt of a ledger that carries the id of an answered sample."""

    def tell(desk: Desk) -> Optional[str]:
        answered = {row["offer"] for row in desk.load("samples.json")["samples"] if row["classification"] in READ}
        for name in desk.ledger_names():
            ledger = desk.load(name)
            seen = [row for row in ledger["receipts"] if row["complete"] and row["requestId"] in answered]
            if len(seen) > 1:
                change(seen[-1])
                desk.bench.store(desk.path(name), ledger)
                return "%s#%d" % (name, seen[-1]["sequence"])
        return None

    return tell


def _later(row: Row) -> None:
    row["startedSeconds"] += 100
    row["endedSeconds"] += 100


def _answer_as_another(desk: Desk) -> Optional[str]:
    rows = [row for row in desk.load("samples.json")["samples"] if row["classification"] in READ]
    if len(rows) < 2:
        return None
    old, data = rows[-1]["responseSha256"], desk.body(rows[-1])
    piece = next((piece for piece in (b'"model":"', b'"model": "') if piece in data), None)
    if piece is None:
        return None
    data = data.replace(piece, piece + b"another-")
    new = desk.bench.body(desk.folder, data)
    for name in ["samples.json", "offers.json", *desk.ledger_names()]:
        text = desk.bench.read(desk.path(name)).decode().replace(old, new)
        desk.bench.put(desk.path(name), text.encode())
    desk.bench.remove(desk.path("bodies/" + old))
    _longer(desk, new, len(data))
    return str(rows[-1]["offer"]) + " answered by another model"


def _longer(desk: Desk, digest: str, length: int) -> None:
    """Tell the length of a body everywhere."""
    with desk.samples() as rows:
        for row in rows:
            if row["responseSha256"] == digest:
                row["responseBytes"] = length
    with desk.edit("offers.json") as value:
        for offer in value["offers"]:
            for side in (offer["client"], offer["upstream"]):
                if side is not None and side["sha256"] == digest:
                    side["bytes"] = length
    for name in desk.ledger_names():
        with desk.edit(name) as ledger:
            for row in ledger["receipts"]:
                if row["responseSha256"] == digest:
                    row["responseBytes"] = length
                    row["responseHeaders"].pop("content-length", None)


ROWS = (
    (
        "incomplete-setting",
        "every launch carries the setting once, with its arm's value",
        protocol.hold_setting,
        (("name another candidate value of an aborted run", _data(_other_value)),),
    ),
    (
        "incomplete-launches",
        "at most one launch a worker and arm, and all in an arm that was asked",
        aborted.hold_launched,
        (
            ("drop a launch of an aborted run", _drop_launch),
            ("tell both launches of an aborted run of one worker", _data(_launch_both_on_one)),
            ("launch one engine of an aborted run otherwise", _data(_launch_otherwise)),
        ),
    ),
    (
        "incomplete-protocol",
        "the request bodies say what the protocol says",
        protocol.hold_protocol,
        (("tell another temperature of an aborted run", _data(_other_temperature)),),
    ),
    (
        "incomplete-order",
        "each arm began after the one before",
        protocol.hold_order,
        (("let the first arms of an aborted run begin in the other order", _data(_backwards)),),
    ),
    (
        "incomplete-calendar",
        "each arm began after the one before had ended",
        protocol.hold_calendar,
        (("let an arm of an aborted run begin within another", _data(_overlap)),),
    ),
    (
        "incomplete-moments",
        "samples lie in their phase as far as the timeline was reached",
        aborted.hold_spans,
        (("let a warm-up of an aborted run begin with its arm", _start_early),),
    ),
    (
        "incomplete-snapshots",
        "every arm that was warmed has its snapshot",
        aborted.hold_snapshots,
        (("drop a snapshot of an aborted run", _forget_snapshot),),
    ),
    (
        "incomplete-snapshot-moment",
        "a snapshot is taken between native and round-robin warm-ups",
        protocol.hold_snapshot_moment,
        (("move a snapshot of an aborted run behind the load", _late_snapshot),),
    ),
    (
        "incomplete-late",
        "the client was late when its figures say so, and only then",
        agreement.hold_late,
        (("deny that the client of an aborted run was late", _data(_deny_late)),),
    ),
    (
        "incomplete-lag",
        "no main sample lagged more than the greatest lag that is told",
        agreement.hold_least_send_lag,
        (("let a main request of an aborted run leave late and not say so", _lag_quietly),),
    ),
    (
        "incomplete-model",
        "one model is asked for, and one answers",
        agreement.hold_models,
        (("let another model answer once in an aborted run", _answer_as_another),),
    ),
    (
        "incomplete-receipt-fits",
        "path, status and content type of a receipt fit its exchange",
        agreement.hold_fitting,
        (
            (
                "let a chat request of an aborted run have gone to the embeddings path",
                _last_seen(lambda row: row.update(path="/v1/embeddings")),
            ),
        ),
    ),
    (
        "incomplete-receipt-offset",
        "one offset lays every receipt of a ledger inside its sample",
        agreement.hold_clocks,
        (("move a receipt of an aborted run a hundred seconds on", _last_seen(_later)),),
    ),
    (
        "incomplete-end",
        "a run was aborted after the last end of its samples",
        aborted.hold_ended,
        (
            ("abort a run before its samples", _abort_at_once),
            ("abort a run as its last arm began", _abort_before_the_end),
        ),
    ),
)
