"""Lies about samples, receipts and snapshots of an aborted run."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from checking.rules.agreement import READ
from checking.rules.comparison import Row
from checking.rules.forgery import Desk

Lie = Callable[[Desk], Optional[str]]


def _sample(change: Callable[[Row], Any]) -> Lie:
    """Change the first sample that was answered whole."""

    def tell(desk: Desk) -> Optional[str]:
        with desk.samples() as rows:
            row = next((row for row in rows if row["classification"] in READ), None)
            if row is not None:
                change(row)
        return None if row is None else str(row["offer"])

    return tell


def _receipt(change: Callable[[Row], Any]) -> Lie:
    """Change the first receipt of a whole exchange."""

    def tell(desk: Desk) -> Optional[str]:
        for name in desk.ledger_names():
            with desk.edit(name) as ledger:
                row = next((row for row in ledger["receipts"] if row["traffic"] and row["complete"]), None)
                if row is not None:
                    change(row)
                    return "%s#%d" % (name, row["sequence"])
        return None

    return tell


def _devices(change: Callable[[List[Row]], bool]) -> Lie:
    """Change the first devices of all snapshots; False when there is nothing of the kind."""

    def tell(desk: Desk) -> Optional[str]:
        if not desk.bench.has(desk.path("snapshots.json")):
            return None
        with desk.edit("snapshots.json") as value:
            done = change([one["devices"][0] for one in value["snapshots"] if one["devices"]])
        return "snapshots.json" if done else None

    return tell


def list_twice(desk: Desk) -> Optional[str]:
    """List the last sample twice."""
    with desk.samples() as rows:
        if not rows:
            return None
        rows.append(dict(rows[-1]))
    return "%s twice" % rows[-1]["offer"]


def _write_zero(rows: List[Row]) -> bool:
    for row in rows:
        row["usedBytes"] = 0
    return bool(rows)


def _grow(rows: List[Row]) -> bool:
    if len(rows) < 2 or rows[-1]["totalBytes"] is None:
        return False
    rows[-1]["totalBytes"] *= 2
    return True


finish_otherwise = _sample(lambda row: row.update(finishReason="another"))
time_reasoning = _sample(lambda row: row.update(reasoningSeconds=row["totalSeconds"]))
take_no_time = _sample(lambda row: row.update(totalSeconds=0))
hide_traffic = _receipt(lambda row: row.update(traffic=False))
cut_silently = _receipt(lambda row: row.update(complete=False))
other_length = _receipt(lambda row: row["requestHeaders"].update({"content-length": "1"}))
write_zero = _devices(_write_zero)
grow = _devices(_grow)
