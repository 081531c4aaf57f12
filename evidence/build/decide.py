"""The decision of one comparison: pairs, gates and disqualifications, in exact arithmetic.

Every gate is decided on integers or `Fraction`, never on floats: `b / a - 1 <= 0.05` is false for every exact
pair at +5 %, `20 * b <= 21 * a` is right. A duration counts as the decimal that stands in the file, which is
the shortest text of its float. The gates are those of docs/format.md, section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from evidence import records
from evidence.records import Disqualification, Gate, GateRow, Pair, Sample, Side

REPETITIONS = (1, 2, 3)
DISQUALIFIERS = (
    "SAMPLE_NOT_NORMAL",
    "RECEIPT_MISMATCH",
    "CLIENT_LATE",
    "TOKENS_UNKNOWN",
    "MEMORY_UNKNOWN",
    "LOG_FINDING",
    "DATE_INPUT_DIFFERS",
    "TTFT_UNKNOWN",
    "WALL_CLOCK",
)
Ledgers = Mapping[tuple[str, str], Sequence[records.Receipt]]  # (arm id, worker) -> receipts


def exact(number: float) -> Fraction:
    """The decimal that a JSON number was written as: the shortest text that reads back the same."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def nearest_rank(values: Iterable[float | None], percent: int = 95) -> float | None:
    """The value at rank ceil(percent/100 * n) of the n values ascending; null if one is unknown or there is none.

    1..100 gives 95; of 24 values it is the 23rd. Nothing is left out and nothing is interpolated.
    """
    known: list[float] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    known.sort()  # two floats stand in the order of their shortest texts, so of the decimals that were written
    return known[-(-percent * len(known) // 100) - 1] if known else None


def decide(
    comparison: records.Comparison,
    samples: Sequence[Sample],
    ledgers: Ledgers,
    snapshots: Sequence[records.Snapshot],
    *,
    requalified: bool = False,
    date_sensitive: bool = False,
) -> records.Decision:
    """The decision that follows from what was recorded.

    `requalified` says that an attempt of its own with the candidate's setting has succeeded since; `date_sensitive`
    that the profile's rendered input depends on the date, so that a comparison without a control of it proves nothing.
    """
    pairs = [
        Pair(
            repetition,
            _side(comparison, samples, snapshots, repetition, "A"),
            _side(comparison, samples, snapshots, repetition, "B"),
        )
        for repetition in REPETITIONS
    ]
    gates = [GATES[name](pairs) for name in records.KIND_GATES[comparison.kind]]
    failed = [gate.gate for gate in gates if gate.holds is not True]
    found = _disqualifications(comparison, samples, ledgers, snapshots, date_sensitive)
    decision = "baseline" if failed or found else "candidate"
    return records.Decision(
        comparison=comparison.id,
        kind=comparison.kind,
        performance_comparison_qualified=not found,
        disqualifications=found,
        pairs=pairs,
        gates=gates,
        failed_gates=failed,
        decision=decision,
        requalification="required" if decision == "candidate" and not requalified else "not-required",
    )


def _side(
    comparison: records.Comparison,
    samples: Sequence[Sample],
    snapshots: Sequence[records.Snapshot],
    repetition: int,
    arm: str,
) -> Side:
    mains = [s for s in samples if (s.phase, s.repetition, s.arm) == ("main", repetition, arm)]
    tokens = [s.completion_tokens for s in mains]
    known = [count for count in tokens if count is not None]
    used = {worker.device: None for worker in comparison.workers} | {
        row.device: row.used_bytes
        for snapshot in snapshots
        if (snapshot.repetition, snapshot.arm) == (repetition, arm)
        for row in snapshot.devices
    }
    wall = next(a.wall_seconds for a in comparison.arms if (a.repetition, a.arm) == (repetition, arm))
    return Side(
        p95_ttft_seconds=nearest_rank(s.ttft_seconds for s in mains),
        p95_total_seconds=nearest_rank(s.total_seconds for s in mains),
        completion_tokens=sum(known) if known and len(known) == len(tokens) else None,
        wall_seconds=wall or 0,
        devices=used,
    )


def _ratio(value: Fraction | None) -> str | None:
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _all(held: Sequence[bool | None]) -> bool | None:
    return False if False in held else None if None in held else True


def _token_volume(pairs: Sequence[Pair]) -> Gate:
    rows = []
    for pair in pairs:
        b, c = pair.baseline.completion_tokens, pair.candidate.completion_tokens
        relative, holds = None, None
        if b is not None and c is not None:
            relative = Fraction(abs(c - b), b) if b else None
            holds = 20 * abs(c - b) <= b
        rows.append(GateRow(pair.repetition, None, b, c, _ratio(relative), holds))
    return Gate("token-volume", _all([row.holds for row in rows]), rows)


def _memory_reduction(pairs: Sequence[Pair]) -> Gate:
    rows = []
    for pair in pairs:
        for device in sorted(pair.baseline.devices):
            b, c = pair.baseline.devices[device], pair.candidate.devices.get(device)
            relative, holds = None, None
            if b is not None and c is not None:
                relative = Fraction(b - c, b) if b else None
                holds = b > 0 and 10 * (b - c) >= 3 * b
            rows.append(GateRow(pair.repetition, device, b, c, _ratio(relative), holds))
    return Gate("memory-reduction", _all([row.holds for row in rows]), rows)


def _latency(pair: Pair, sign: int) -> tuple[float | None, float | None, Fraction | None]:
    """Both p95 TTFTs and sign * (baseline - candidate) / baseline; null where a p95 is unknown or zero."""
    b, c = pair.baseline.p95_ttft_seconds, pair.candidate.p95_ttft_seconds
    if b is None or c is None or exact(b) == 0:
        return b, c, None
    return b, c, sign * (exact(b) - exact(c)) / exact(b)


def _latency_regression(pairs: Sequence[Pair]) -> Gate:
    rows = []
    for pair in pairs:
        b, c, relative = _latency(pair, -1)
        holds = None if relative is None else relative <= Fraction(1, 20)
        rows.append(GateRow(pair.repetition, None, b, c, _ratio(relative), holds))
    return Gate("latency-regression", _all([row.holds for row in rows]), rows)


def _latency_improvement(pairs: Sequence[Pair]) -> Gate:
    rows = []
    for pair in pairs:
        b, c, relative = _latency(pair, 1)
        holds = None if relative is None else relative > 0
        rows.append(GateRow(pair.repetition, None, b, c, _ratio(relative), holds))
    return Gate("latency-improvement", _all([row.holds for row in rows]), rows)


def _median_improvement(pairs: Sequence[Pair]) -> Gate:
    relatives = [_latency(pair, 1)[2] for pair in pairs]
    known = sorted(value for value in relatives if value is not None)
    median = known[len(known) // 2] if known and len(known) == len(relatives) else None
    holds = None if median is None else median >= Fraction(1, 10)
    return Gate("median-improvement", holds, [GateRow(None, None, None, None, _ratio(median), holds)])


GATES = {
    "token-volume": _token_volume,
    "memory-reduction": _memory_reduction,
    "latency-regression": _latency_regression,
    "latency-improvement": _latency_improvement,
    "median-improvement": _median_improvement,
}


def mismatches(samples: Sequence[Sample], ledgers: Ledgers) -> list[str]:
    """Where receipts and samples are not the same exchanges, one line for each arm that disagrees; [] if equal.

    The pairs (request hash, response hash) of an arm's traffic receipts and of its samples are equal as
    multisets, per worker where the sample knows its worker, every receipt is complete, and of the 16
    round-robin warm-ups and of the 24 main requests each worker had half.
    """
    found = []
    arms = sorted({arm for arm, _ in ledgers} | {offer_arm(s.offer) for s in samples})
    for arm in arms:
        receipts = Counter(
            (worker, r.request_sha256, r.response_sha256)
            for (of_arm, worker), rows in ledgers.items()
            if of_arm == arm
            for r in rows
            if r.traffic
        )
        mine = [s for s in samples if offer_arm(s.offer) == arm]
        known = Counter((s.worker, s.request_sha256, s.response_sha256) for s in mine if s.worker is not None)
        rest = Counter((s.request_sha256, s.response_sha256) for s in mine if s.worker is None)
        left = receipts - known
        if known - receipts or Counter(_pairs(left)) != rest:
            found.append(f"{arm}: {sum(receipts.values())} receipts and {len(mine)} samples do not match")
    return found


def offer_arm(offer: str) -> str:
    """`r1-a-main-007` -> `r1-a`; `attempt-001` -> `attempt`."""
    return "attempt" if offer.startswith("attempt") else offer[:4]


def _pairs(left: Counter[tuple[str, str, str]]) -> Iterable[tuple[str, str]]:
    return ((request, response) for _, request, response in left.elements())


def _disqualifications(
    comparison: records.Comparison,
    samples: Sequence[Sample],
    ledgers: Ledgers,
    snapshots: Sequence[records.Snapshot],
    date_sensitive: bool,
) -> list[Disqualification]:
    mains = [s for s in samples if s.phase == "main"]
    causes: dict[str, list[str]] = {code: [] for code in DISQUALIFIERS}
    for sample in mains:
        if sample.classification != "NORMAL":
            causes["SAMPLE_NOT_NORMAL"].append(f"{sample.offer} is {sample.classification}")
        if sample.completion_tokens is None:
            causes["TOKENS_UNKNOWN"].append(f"{sample.offer} has no completion tokens")
        if sample.ttft_seconds is None:
            causes["TTFT_UNKNOWN"].append(f"{sample.offer} has no TTFT")
    causes["RECEIPT_MISMATCH"] = mismatches(samples, ledgers)
    if comparison.kind == "memory":
        for snapshot in snapshots:
            for row in snapshot.devices:
                if row.used_bytes is None:
                    where = f"r{snapshot.repetition}-{snapshot.arm.lower()} {row.device}"
                    causes["MEMORY_UNKNOWN"].append(f"{where}: {row.reason or 'not read'}")
    for arm in comparison.arms:
        where = f"r{arm.repetition}-{arm.arm.lower()}"
        if arm.client is not None and arm.client.late:
            causes["CLIENT_LATE"].append(f"{where}: the client was later than {arm.client.limit_seconds} s")
        if arm.client is not None and arm.client.wall_clock_stepped:
            causes["WALL_CLOCK"].append(f"{where}: the wall clock was stepped")
        causes["LOG_FINDING"] += [f"{where} {row.worker}: {row.pattern}" for row in arm.log_findings]
    if comparison.date_control is not None:
        ids = comparison.date_control.native_token_ids
        expected = len(comparison.arms) * len(comparison.workers)
        if len({row.token_ids_sha256 for row in ids}) != 1 or len(ids) != expected:
            different = len({row.token_ids_sha256 for row in ids})
            causes["DATE_INPUT_DIFFERS"].append(
                f"{different} different rendered inputs in {len(ids)} readings, expected one in {expected}"
            )
    elif date_sensitive:
        causes["DATE_INPUT_DIFFERS"].append("the profile is date-sensitive and nobody read the rendered input")
    return [
        Disqualification(code, rows[0] if len(rows) == 1 else f"{rows[0]} and {len(rows) - 1} more")
        for code, rows in causes.items()
        if rows
    ]
