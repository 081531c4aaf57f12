"""Lies about the memory of devices that a snapshot's own words give away."""

from __future__ import annotations

from typing import Optional

from checking.rules.forgery import Desk
from checking.rules.memory import HELD


def hold_less(desk: Desk) -> Optional[str]:
    """Tell half of what the engine's processes are told to hold on a device."""
    with desk.edit("snapshots.json") as value:
        for one in value["snapshots"]:
            held = dict(HELD.findall(one["method"].partition(";")[2]))
            for row in one["devices"]:
                if row["device"] in held and row["usedBytes"] is not None and int(held[row["device"]]) > 1:
                    row["usedBytes"] = int(held[row["device"]]) // 2
                    return "%s holds %d" % (row["device"], row["usedBytes"])
    return None


def grow(desk: Desk) -> Optional[str]:
    """Let a device be twice as large in the last snapshot."""
    with desk.edit("snapshots.json") as value:
        row = value["snapshots"][-1]["devices"][0]
        if row["totalBytes"] is None:
            return None
        row["totalBytes"] *= 2
    return "%s of %d bytes" % (row["device"], row["totalBytes"])


def explain(desk: Desk) -> Optional[str]:
    """Give a reason why a figure was not read that stands there."""
    with desk.edit("snapshots.json") as value:
        row = value["snapshots"][0]["devices"][0]
        if row["usedBytes"] is None or row["totalBytes"] is None:
            return None
        row["reason"] = "it could not be read"
    return "%s read and not read" % row["device"]
