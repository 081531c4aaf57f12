"""The decision of a comparison, worked out from samples, snapshots and stored bytes alone.

Fractions decide every gate; a number that is not known makes a gate neither hold nor fail (`holds` null),
which counts as failed. The table of gates is that of the package format, section 4.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable, Dict, List, Optional, Tuple

from checking.arithmetic import (
    LATENCY_REGRESSION,
    MEDIAN_IMPROVEMENT,
    MEMORY_REDUCTION,
    TOKEN_VOLUME,
    fraction,
    median,
    nearest_rank,
    written,
)
from checking.plan import ORDER, REPETITIONS, WORKERS, Number
from checking.rules.agreement import date_sensitive
from checking.rules.comparison import ARMS, Comparison, arm_id
from checking.rules.pairing import mismatched

Row = Dict[str, Any]
GATES_OF = {
    "memory": ("token-volume", "memory-reduction", "latency-regression"),
    "sequence-cap": ("token-volume", "latency-improvement", "median-improvement"),
}


def _p95(values: List[Optional[Number]]) -> Optional[Number]:
    known = [value for value in values if value is not None]
    return nearest_rank(known) if known and len(known) == len(values) else None


def side(subject: Comparison, arm: str) -> Row:
    """One arm of a pair: percentiles, tokens from stored bodies, wall time, memory by device."""
    rows = subject.main(arm)
    tokens = [told.completion_tokens if told else None for told in map(subject.bodies.answer, rows)]
    known = [count for count in tokens if count is not None]
    devices: Dict[str, Optional[int]] = {one["device"]: None for one in subject.data["workers"]}
    for snapshot in subject.snapshots:
        if arm_id(snapshot) == arm:
            devices.update({one["device"]: one["usedBytes"] for one in snapshot["devices"]})
    return {
        "p95TtftSeconds": _p95([row["ttftSeconds"] for row in rows]),
        "p95TotalSeconds": _p95([row["totalSeconds"] for row in rows]),
        "completionTokens": sum(known) if known and len(known) == len(tokens) else None,
        "wallSeconds": next((one["wallSeconds"] for one in subject.data["arms"] if arm_id(one) == arm), None),
        "devices": devices,
    }


def pairs(subject: Comparison) -> List[Row]:
    """The three pairs: baseline is arm A, candidate arm B, of one repetition."""
    return [
        {
            "repetition": number,
            "baseline": side(subject, "r%d-a" % number),
            "candidate": side(subject, "r%d-b" % number),
        }
        for number in range(1, REPETITIONS + 1)
    ]


def _row(
    repetition: Optional[int],
    device: Optional[str],
    baseline: Optional[Number],
    candidate: Optional[Number],
    relative: Optional[Fraction],
    holds: Optional[bool],
) -> Row:
    return {
        "repetition": repetition,
        "device": device,
        "baseline": baseline,
        "candidate": candidate,
        "relative": written(relative),
        "holds": holds,
    }


def _gate(gate: str, rows: List[Row]) -> Row:
    held = [row["holds"] for row in rows]
    holds = False if False in held else None if None in held else True
    return {"gate": gate, "holds": holds, "rows": rows}


def _token_volume(told: List[Row]) -> List[Row]:
    rows = []
    for pair in told:
        b, c = pair["baseline"]["completionTokens"], pair["candidate"]["completionTokens"]
        relative = holds = None
        if b is not None and c is not None:
            relative = Fraction(abs(c - b), b) if b else None
            holds = abs(c - b) <= TOKEN_VOLUME * b
        rows.append(_row(pair["repetition"], None, b, c, relative, holds))
    return rows


def _memory_reduction(told: List[Row]) -> List[Row]:
    rows = []
    for pair in told:
        for device in sorted(pair["baseline"]["devices"]):
            b, c = pair["baseline"]["devices"][device], pair["candidate"]["devices"].get(device)
            relative = holds = None
            if b is not None and c is not None:
                relative = Fraction(b - c, b) if b else None
                holds = relative is not None and relative >= MEMORY_REDUCTION
            rows.append(_row(pair["repetition"], device, b, c, relative, holds))
    return rows


def _latency(pair: Row) -> Tuple[Optional[Number], Optional[Number], Optional[Fraction]]:
    """Both p95 TTFTs and the improvement (b - c) / b; None where one is unknown or the baseline is zero."""
    b, c = pair["baseline"]["p95TtftSeconds"], pair["candidate"]["p95TtftSeconds"]
    if b is None or c is None or not b:
        return b, c, None
    return b, c, (fraction(b) - fraction(c)) / fraction(b)


def _latency_regression(told: List[Row]) -> List[Row]:
    rows = []
    for pair in told:
        b, c, gained = _latency(pair)
        holds = None if gained is None else -gained <= LATENCY_REGRESSION
        rows.append(_row(pair["repetition"], None, b, c, None if gained is None else -gained, holds))
    return rows


def _latency_improvement(told: List[Row]) -> List[Row]:
    rows = []
    for pair in told:
        b, c, gained = _latency(pair)
        rows.append(_row(pair["repetition"], None, b, c, gained, None if gained is None else gained > 0))
    return rows


def _median_improvement(told: List[Row]) -> List[Row]:
    gains = [_latency(pair)[2] for pair in told]
    known = [gain for gain in gains if gain is not None]
    middle = median(known) if len(known) == REPETITIONS else None
    return [_row(None, None, None, None, middle, None if middle is None else middle >= MEDIAN_IMPROVEMENT)]


_GATES: Dict[str, Callable[[List[Row]], List[Row]]] = {
    "token-volume": _token_volume,
    "memory-reduction": _memory_reduction,
    "latency-regression": _latency_regression,
    "latency-improvement": _latency_improvement,
    "median-improvement": _median_improvement,
}


def gates(kind: str, told: List[Row]) -> List[Row]:
    """The gates of a kind in table order, from pairs."""
    return [_gate(name, _GATES[name](told)) for name in GATES_OF[kind]]


def disqualifications(subject: Comparison) -> List[str]:
    """The codes that keep a complete comparison from being qualified, in the order of the format."""
    main = [(row, told) for row, told in zip(subject.samples, subject.answers) if row["phase"] == "main"]
    data = subject.data
    ids = data["dateControl"]["nativeTokenIds"] if data["dateControl"] is not None else []
    unknown = [one for snapshot in subject.snapshots for one in snapshot["devices"] if one["usedBytes"] is None]
    found = {
        "SAMPLE_NOT_NORMAL": any(told is None or told.classification != "NORMAL" for _, told in main),
        "RECEIPT_MISMATCH": any(mismatched(subject, arm) for arm in ARMS),
        "CLIENT_LATE": any(arm["client"]["late"] for arm in data["arms"]),
        "TOKENS_UNKNOWN": any(told is None or told.completion_tokens is None for _, told in main),
        "MEMORY_UNKNOWN": data["kind"] == "memory" and bool(unknown),
        "LOG_FINDING": any(arm["logFindings"] for arm in data["arms"]),
        "DATE_INPUT_DIFFERS": (data["dateControl"] is not None or date_sensitive(subject))
        and (len({one["tokenIdsSha256"] for one in ids}) != 1 or len(ids) != len(ORDER) * WORKERS),
        "TTFT_UNKNOWN": any(row["ttftSeconds"] is None for row, _ in main),
        "WALL_CLOCK": any(arm["client"]["wallClockStepped"] for arm in data["arms"]),
    }
    return [code for code, holds in found.items() if holds]


def derive(subject: Comparison) -> Row:
    """Everything that decision.json says but for the words of its disqualifications and requalification."""
    told = pairs(subject)
    judged = gates(subject.data["kind"], told)
    failed = [gate["gate"] for gate in judged if gate["holds"] is not True]
    codes = disqualifications(subject)
    return {
        "pairs": told,
        "gates": judged,
        "failedGates": failed,
        "disqualifications": codes,
        "performanceComparisonQualified": not codes,
        "decision": "baseline" if failed or codes else "candidate",
    }
