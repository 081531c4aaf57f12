"""Lies about the decision of a comparison and what disqualifies it, each coherent but for its meaning."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Optional

from checking.rules.forgery import Desk, main_rows


def flip_decision(desk: Desk) -> str:
    """Turn the decision round, in the index too."""
    with desk.edit("decision.json") as data:
        data["decision"] = "baseline" if data["decision"] == "candidate" else "candidate"
        data["requalification"] = "required" if data["decision"] == "candidate" else "not-required"
    desk.index(decision=data["decision"])
    return "decision told as " + str(data["decision"])


def flip_everything(desk: Desk) -> str:
    """Turn the decision round with its gate table, its failed gates and the index."""
    with desk.edit("decision.json") as data:
        take = data["decision"] == "baseline"
        for gate in data["gates"]:
            gate["holds"] = take
            for row in gate["rows"]:
                row["holds"] = take
        data["failedGates"] = [] if take else [gate["gate"] for gate in data["gates"]]
        data["decision"] = "candidate" if take else "baseline"
        data["requalification"] = "required" if take else "not-required"
    desk.index(decision=data["decision"], failedGates=data["failedGates"])
    return "everything turned to " + str(data["decision"])


def _number(value: Any, by: str) -> Any:
    return (Decimal(value) * Decimal(by)).quantize(Decimal("0.000000001"))


def better_tail(desk: Desk) -> Optional[str]:
    """Tell the candidate's p95 a fifth better in pair and gates."""
    with desk.edit("decision.json") as data:
        side = data["pairs"][0]["candidate"]
        if side["p95TtftSeconds"] is None:
            return None
        side["p95TtftSeconds"] = _number(side["p95TtftSeconds"], "0.8")
    return "p95 of r1-b a fifth shorter"


def other_percentile(desk: Desk) -> Optional[str]:
    """Take the 22nd of 24 for the p95 instead of the 23rd."""
    rows = main_rows(desk.load("samples.json")["samples"], "r2-a")
    values = sorted(row["totalSeconds"] for row in rows)
    with desk.edit("decision.json") as data:
        data["pairs"][1]["baseline"]["p95TotalSeconds"] = values[21]
    return "rank 22 told as p95" if values[21] != values[22] else None


def other_tokens(desk: Desk) -> Optional[str]:
    """Tell another token total."""
    with desk.edit("decision.json") as data:
        side = data["pairs"][2]["baseline"]
        side["completionTokens"] = (side["completionTokens"] or 0) + 1
    return "a token more in r3-a"


def other_memory(desk: Desk) -> Optional[str]:
    """Tell another memory figure in a pair."""
    with desk.edit("decision.json") as data:
        devices = data["pairs"][1]["candidate"]["devices"]
        device = sorted(devices)[0]
        devices[device] = (devices[device] or 0) + 1
    return "a byte more on %s in r2-b" % device


def other_wall(desk: Desk) -> Optional[str]:
    """Tell a shorter wall time in a pair."""
    with desk.edit("decision.json") as data:
        side = data["pairs"][0]["candidate"]
        side["wallSeconds"] = _number(side["wallSeconds"], "0.5")
    return "wall time of r1-b halved"


def flip_gate(desk: Desk) -> Optional[str]:
    """Turn one gate round."""
    with desk.edit("decision.json") as data:
        gate = data["gates"][0]
        gate["holds"] = not gate["holds"]
    return "%s told as %s" % (gate["gate"], gate["holds"])


def other_ratio(desk: Desk) -> Optional[str]:
    """Tell another exact ratio."""
    with desk.edit("decision.json") as data:
        data["gates"][1]["rows"][0]["relative"] = "99/100"
    return "ratio 99/100"


def drop_gate_row(desk: Desk) -> Optional[str]:
    """Drop the worst row of a gate."""
    with desk.edit("decision.json") as data:
        data["gates"][1]["rows"].pop()
    return "last row of the second gate dropped"


def other_gate(desk: Desk) -> Optional[str]:
    """Put an easier gate in the place of one."""
    with desk.edit("decision.json") as data:
        data["gates"][1] = dict(data["gates"][0])
    return "the first gate told twice"


def forget_failed(desk: Desk) -> Optional[str]:
    """Change the list of failed gates alone."""
    with desk.edit("decision.json") as data:
        data["failedGates"] = [] if data["failedGates"] else ["token-volume"]
    desk.index(failedGates=data["failedGates"])
    return "failed gates told as %s" % data["failedGates"]


def excuse(desk: Desk) -> Optional[str]:
    """Change the list of disqualifications alone."""
    with desk.edit("decision.json") as data:
        data["disqualifications"] = [] if data["disqualifications"] else [{"code": "WALL_CLOCK", "detail": "stepped"}]
    return "disqualifications changed"


def raise_qualified(desk: Desk) -> Optional[str]:
    """Turn performanceComparisonQualified round, in the index too."""
    with desk.edit("decision.json") as data:
        data["performanceComparisonQualified"] = not data["performanceComparisonQualified"]
    desk.index(performanceComparisonQualified=data["performanceComparisonQualified"])
    return "qualified told as %s" % data["performanceComparisonQualified"]


def keep_log_error(desk: Desk) -> str:
    """Record an engine error in the main window and leave the comparison qualified."""
    with desk.edit("comparison.json") as data:
        arm = data["arms"][1]
        at = arm["timeline"]["firstMainSeconds"]
        arm["logFindings"].append({"worker": "worker-1", "pattern": "ERROR", "line": "an error", "atSeconds": at})
    return "an engine error inside the main window of r1-b"


def step_clock(desk: Desk) -> str:
    """Record a stepped wall clock and leave the comparison qualified."""
    with desk.edit("comparison.json") as data:
        data["arms"][1]["client"]["wallClockStepped"] = True
    return "wall clock of r1-b stepped"


def be_late(desk: Desk) -> str:
    """Record a late client and leave the comparison qualified."""
    with desk.edit("comparison.json") as data:
        data["arms"][1]["client"]["late"] = True
    return "client of r1-b late"


def other_kind(desk: Desk) -> Optional[str]:
    """Name another kind in the decision."""
    with desk.edit("decision.json") as data:
        data["kind"] = "memory" if data["kind"] == "sequence-cap" else "sequence-cap"
    return "kind told as " + str(data["kind"])


def drop_requalification(desk: Desk) -> Optional[str]:
    """Take the requalification off a candidate, or put one on a baseline."""
    with desk.edit("decision.json") as data:
        data["requalification"] = "required" if data["requalification"] == "not-required" else "not-required"
    return "requalification told as " + str(data["requalification"])
