"""Lies about receipts, each coherent but for its meaning."""

from __future__ import annotations

from decimal import Decimal
from typing import List, Optional

from checking.rules.forgery import Desk, Row, main_rows, pick


def _first_ledger(desk: Desk) -> str:
    return desk.ledger_names()[0]


def _traffic(rows: List[Row]) -> Optional[Row]:
    return next((row for row in rows if row["traffic"]), None)


def alter_receipt_hash(desk: Desk) -> Optional[str]:
    """Alter the response hash of the first receipt; the body under that hash does not exist."""
    name = _first_ledger(desk)
    with desk.edit(name) as ledger:
        row = _traffic(ledger["receipts"])
        if row is None:
            return None
        row["responseSha256"] = ("0" if row["responseSha256"][0] != "0" else "1") + row["responseSha256"][1:]
    return "%s#%d" % (name, row["sequence"])


def move_receipt(desk: Desk) -> Optional[str]:
    """Move a receipt to the other worker."""
    one, two = desk.ledger_names("r1-a")[:2]
    with desk.edit(one) as source, desk.edit(two) as target:
        row = source["receipts"].pop()
        row["sequence"] = len(target["receipts"]) + 1
        target["receipts"].append(row)
    return "last receipt of %s moved to %s" % (one, two)


def drop_receipt(desk: Desk) -> str:
    """Drop the last receipt of a ledger."""
    with desk.edit(desk.ledger_names("r2-b")[0]) as ledger:
        row = ledger["receipts"].pop()
    return "receipt %d of r2-b dropped" % row["sequence"]


def repeat_receipt(desk: Desk) -> str:
    """Append a copy of a receipt."""
    with desk.edit(desk.ledger_names("r1-b")[0]) as ledger:
        row = dict(ledger["receipts"][-1])
        row["sequence"] += 1
        ledger["receipts"].append(row)
    return "receipt %d told twice" % (row["sequence"] - 1)


def empty_ledger(desk: Desk) -> str:
    """Empty a ledger."""
    with desk.edit(desk.ledger_names("r3-a")[0]) as ledger:
        del ledger["receipts"][:]
    return "ledger of r3-a emptied"


def renumber(desk: Desk) -> str:
    """Leave a gap in the numbers of a ledger."""
    with desk.edit(_first_ledger(desk)) as ledger:
        for row in ledger["receipts"][5:]:
            row["sequence"] += 1
    return "number 6 left out"


def hide_traffic(desk: Desk) -> str:
    """Call an exchange of traffic a control."""
    with desk.edit(_first_ledger(desk)) as ledger:
        row = _traffic(ledger["receipts"])
        assert row is not None
        row["traffic"] = False
    return "receipt %d told as a control" % row["sequence"]


def cut_receipt(desk: Desk) -> str:
    """Keep an incomplete exchange without its reason."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0].update(complete=False, reason=None)
    return "receipt 1 incomplete without a reason"


def complete_with_reason(desk: Desk) -> str:
    """Call an exchange complete that its reason says was cut."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0].update(complete=True, reason="upstream-closed")
    return "receipt 1 complete though upstream closed"


def call_partial_complete(desk: Desk) -> Optional[str]:
    """Let the recorder have seen a cut exchange that the client calls complete."""
    with desk.samples() as rows:
        row = pick(rows, "r2-a", 1)
    with desk.receipt(row["offer"]) as told:
        if told is None:
            return None
        told.update(complete=False, reason="upstream-closed")
    return str(row["offer"]) + " cut before the recorder"


def lose_header(desk: Desk) -> Optional[str]:
    """Give a receipt the content length of another body."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0]["requestHeaders"]["content-length"] = "7"
    return "content-length 7"


def other_request_header(desk: Desk) -> Optional[str]:
    """Give a receipt another request id than its header carries."""
    with desk.edit(_first_ledger(desk)) as ledger:
        ledger["receipts"][0]["requestHeaders"]["x-request-id"] = "r1-a-main-024"
    return "x-request-id r1-a-main-024"


def end_first(desk: Desk) -> str:
    """Let an exchange end before it began."""
    with desk.edit(_first_ledger(desk)) as ledger:
        row = ledger["receipts"][2]
        row["startedSeconds"], row["endedSeconds"] = row["endedSeconds"], row["startedSeconds"]
    return "receipt 3 ends before it begins"


def copy_receipt_times(desk: Desk) -> str:
    """Give a receipt the times of the one before."""
    with desk.edit(_first_ledger(desk)) as ledger:
        one, two = ledger["receipts"][3:5]
        two["startedSeconds"], two["endedSeconds"] = one["startedSeconds"], one["endedSeconds"]
    return "receipt 5 with the times of 4"


def swap_ids(desk: Desk) -> Optional[str]:
    """Exchange the request ids of two receipts."""
    with desk.edit(desk.ledger_names("r1-a")[0]) as ledger:
        one, two = ledger["receipts"][-2:]
        if one["requestId"] is None or one["responseSha256"] == two["responseSha256"]:
            return None
        one["requestId"], two["requestId"] = two["requestId"], one["requestId"]
        for row in (one, two):
            row["requestHeaders"]["x-request-id"] = row["requestId"]
    return "request ids of the last two receipts exchanged"


def move_worker(desk: Desk) -> Optional[str]:
    """Tell a sample as the other worker's."""
    with desk.samples() as rows:
        row = pick(rows, "r1-a", 5)
        if row["worker"] is None:
            return None
        row["worker"] = "worker-2" if row["worker"] == "worker-1" else "worker-1"
    return str(row["offer"]) + " told as the other worker's"


def unbalance(desk: Desk) -> Optional[str]:
    """Let one worker serve two main requests of the other: samples, receipts and ids alike."""
    one, two = desk.ledger_names("r1-a")[:2]
    moved = []
    with desk.edit(one) as source, desk.edit(two) as target:
        for _ in range(2):
            row = source["receipts"].pop()
            row["sequence"] = len(target["receipts"]) + 1
            target["receipts"].append(row)
            moved.append(row["requestId"])
        worker = target["worker"]
    with desk.samples() as rows:
        for row in rows:
            if row["offer"] in moved:
                row["worker"] = worker
    return "two main requests of r1-a moved to " + str(worker)


def halve_client_times(desk: Desk) -> str:
    """Let the client of one arm have taken half as long as its recorder."""
    with desk.samples() as rows:
        for row in main_rows(rows, "r1-b"):
            row["totalSeconds"] = (Decimal(row["totalSeconds"]) / 2).quantize(Decimal("0.000000001"))
            if row["ttftSeconds"] is not None:
                row["ttftSeconds"] = min(row["ttftSeconds"], row["totalSeconds"])
        last = max(row["startedSeconds"] + row["totalSeconds"] for row in main_rows(rows, "r1-b"))
    with desk.edit("comparison.json") as data:
        data["arms"][1]["wallSeconds"] = data["arms"][1]["timeline"]["lastMainSeconds"] = last
    return "totals of r1-b halved"
