"""Lies in which two sides of a comparison no longer say the same, each coherent but for that."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Optional

from checking.rules.comparison import ARMS
from checking.rules.forgery import Desk, Row, main_rows, pick


def _greatest(desk: Desk, arm: str) -> Row:
    rows: Row = max(main_rows(desk.load("samples.json")["samples"], arm), key=lambda row: row["sendLagSeconds"])
    return rows


def hide_send_lag(desk: Desk) -> str:
    """Let one main request leave a second late, tell that lag, and still call the client in time."""
    with desk.samples() as rows:
        pick(rows, "r1-b", 2)["sendLagSeconds"] = Decimal("1.5")
    with desk.edit("comparison.json") as data:
        data["arms"][1]["client"].update(sendLagMaxSeconds=Decimal("1.5"), sendLagP99Seconds=Decimal("1.5"))
    return "r1-b-main-003 left 1.5 s late"


def shrink_send_lag(desk: Desk) -> Optional[str]:
    """Tell half the greatest send lag of an arm."""
    half = (Decimal(_greatest(desk, "r1-a")["sendLagSeconds"]) / 2).quantize(Decimal("0.000000001"))
    with desk.edit("comparison.json") as data:
        data["arms"][0]["client"].update(sendLagMaxSeconds=half, sendLagP99Seconds=half)
    return "greatest send lag of r1-a halved"


def lag_quietly(desk: Desk) -> str:
    """Let one main request leave fifty seconds late and tell no more lag than before."""
    with desk.samples() as rows:
        pick(rows, "r2-a", 5)["sendLagSeconds"] = Decimal("50")
    return "r2-a-main-006 left 50 s late"
