"""The shape of what is decided of a comparison, and of the index of the complete ones."""

from __future__ import annotations

from checking.plan import MAIN_TOTAL, REPETITIONS, WARM_TOTAL
from checking.rules.shapes import ALIAS, KIND, PATH, REPETITION
from checking.shape import (
    BOOL,
    COUNT,
    HASH,
    ID,
    LINE,
    NUMBER,
    RELATION,
    SECONDS,
    VERSION,
    Keys,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    matching,
)

DEVICE = matching(r"device-[1-9][0-9]?", "an alias such as device-1")
GATES = ("token-volume", "memory-reduction", "latency-regression", "latency-improvement", "median-improvement")
DISQUALIFICATIONS = (
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
_SIDE = Keys(
    p95TtftSeconds=Maybe(SECONDS),
    p95TotalSeconds=Maybe(SECONDS),
    completionTokens=Maybe(COUNT),
    wallSeconds=SECONDS,
    devices=MapOf(DEVICE, Maybe(COUNT)),
)
_ROW = Keys(
    repetition=Maybe(REPETITION),
    device=Maybe(ALIAS),
    baseline=Maybe(NUMBER),
    candidate=Maybe(NUMBER),
    relative=Maybe(RELATION),
    holds=Maybe(BOOL),
)
DECISION = Keys(
    schemaVersion=VERSION,
    comparison=ID,
    kind=KIND,
    performanceComparisonQualified=BOOL,
    disqualifications=ListOf(Keys(code=OneOf(*DISQUALIFICATIONS), detail=LINE)),
    pairs=ListOf(Keys(repetition=REPETITION, baseline=_SIDE, candidate=_SIDE), REPETITIONS),
    gates=ListOf(Keys(gate=OneOf(*GATES), holds=Maybe(BOOL), rows=ListOf(_ROW)), 3),
    failedGates=ListOf(OneOf(*GATES), unique=True),
    decision=OneOf("baseline", "candidate"),
    requalification=OneOf("required", "not-required"),
)
SETTINGS_INDEX = Keys(
    schemaVersion=VERSION,
    comparisons=ListOf(
        Keys(
            id=ID,
            case=ID,
            profile=ID,
            engine=ID,
            kind=KIND,
            synthetic=BOOL,
            folder=PATH,
            decision=OneOf("baseline", "candidate"),
            failedGates=ListOf(OneOf(*GATES)),
            performanceComparisonQualified=BOOL,
            mainSamples=OneOf(MAIN_TOTAL),
            warmSamples=OneOf(WARM_TOTAL),
            files=Keys(comparison=HASH, samples=HASH, snapshots=HASH, decision=HASH),
        )
    ),
)
