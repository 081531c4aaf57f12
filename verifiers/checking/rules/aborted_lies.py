"""Lies about an incomplete comparison as far as its run went, each coherent but for its meaning."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Callable, Optional

from checking.rules.agreement import READ
from checking.rules.comparison import Row, arm_id
from checking.rules.forgery import Desk
from checking.rules.instants import moment, stamp


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


def drop_launch(desk: Desk) -> Optional[str]:
    """Drop a launch of an arm that was asked."""
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


def start_early(desk: Desk) -> Optional[str]:
    """Let the first round-robin warm-up begin with its arm."""
    with desk.samples() as rows:
        row = next((row for row in rows if row["phase"] == "rr-warm"), None)
        if row is None:
            return None
        row["startedSeconds"] = Decimal("0.000001")
    return str(row["offer"]) + " begun with its arm"


def forget_snapshot(desk: Desk) -> Optional[str]:
    """Drop the first snapshot."""
    if not desk.bench.has(desk.path("snapshots.json")):
        return None
    with desk.edit("snapshots.json") as value:
        if not value["snapshots"]:
            return None
        value["snapshots"].pop(0)
    return "the first snapshot dropped"


def late_snapshot(desk: Desk) -> Optional[str]:
    """Take a snapshot long after the warm-ups."""
    warmed = {arm_id(row) for row in desk.load("samples.json")["samples"] if row["phase"] == "rr-warm"}
    if not desk.bench.has(desk.path("snapshots.json")):
        return None
    with desk.edit("snapshots.json") as value:
        one = next((one for one in value["snapshots"] if arm_id(one) in warmed), None)
        if one is None:
            return None
        one["takenSeconds"] += 500
    return "a snapshot taken 500 s later"


def lag_quietly(desk: Desk) -> Optional[str]:
    """Let a main sample leave late."""
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


def abort_at_once(desk: Desk) -> Optional[str]:
    """Abort a run before its samples."""
    rows = desk.load("samples.json")["samples"]
    with desk.edit("comparison.json") as data:
        if not rows or data["abortedSeconds"] is None or stamp(data["run"]) == 0:
            return None
        stepped = any(arm["client"] is not None and arm["client"]["wallClockStepped"] for arm in data["arms"])
        first = moment(data["arms"][0]["startedAt"]) - stamp(data["run"])
        if stepped or first + float(rows[-1]["startedSeconds"]) < 1.5:
            return None
        data["abortedSeconds"] = Decimal("0.1")
    return "aborted 0.1 s after the beginning"


def abort_before_the_end(desk: Desk) -> Optional[str]:
    """Abort a run as its last arm began."""
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


def answer_as_another(desk: Desk) -> Optional[str]:
    """Let another model answer the last sample."""
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


other_value = _data(_other_value)
launch_both_on_one = _data(_launch_both_on_one)
launch_otherwise = _data(_launch_otherwise)
other_temperature = _data(_other_temperature)
backwards = _data(_backwards)
overlap = _data(_overlap)
deny_late = _data(_deny_late)
receive_elsewhere = _last_seen(lambda row: row.update(path="/v1/embeddings"))
receive_later = _last_seen(_later)
