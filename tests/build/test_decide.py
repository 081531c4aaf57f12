"""Gates are exact: integers and fractions at the very edge, and nothing unknown ever passes one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evidence import records
from evidence.build import decide
from evidence.build.decide import GATES, nearest_rank
from evidence.records import Pair, Side


def side(ttft: float | None = 0.1, tokens: int | None = 100, memory: int | None = 1000) -> Side:
    return Side(ttft, 1.0, tokens, 2.0, {"device-1": memory, "device-2": memory})


def pairs(baseline: Side, candidate: Side) -> list[Pair]:
    return [Pair(repetition, baseline, candidate) for repetition in (1, 2, 3)]


def holds(gate: str, baseline: Side, candidate: Side) -> bool | None:
    return GATES[gate](pairs(baseline, candidate)).holds


def test_nearest_rank_of_one_to_a_hundred_is_95() -> None:
    assert nearest_rank([float(n) for n in range(100, 0, -1)]) == 95


def test_nearest_rank_of_24_values_is_the_23rd() -> None:
    assert nearest_rank([float(n) for n in range(1, 25)]) == 23


def test_a_missing_value_leaves_no_percentile() -> None:
    assert nearest_rank([0.1] * 23 + [None]) is None
    assert nearest_rank([]) is None


@pytest.mark.parametrize("tokens", [20, 40, 60, 8000, 123460])
def test_token_volume_holds_at_exactly_five_per_cent(tokens: int) -> None:
    more, less = tokens * 21 // 20, tokens * 19 // 20
    assert holds("token-volume", side(tokens=tokens), side(tokens=more)) is True
    assert holds("token-volume", side(tokens=tokens), side(tokens=less)) is True
    assert holds("token-volume", side(tokens=tokens), side(tokens=more + 1)) is False
    assert holds("token-volume", side(tokens=tokens), side(tokens=less - 1)) is False


def test_memory_reduction_holds_at_exactly_thirty_per_cent_on_each_device() -> None:
    assert holds("memory-reduction", side(memory=1000), side(memory=700)) is True
    assert holds("memory-reduction", side(memory=1000), side(memory=701)) is False
    uneven = Side(0.1, 1.0, 100, 2.0, {"device-1": 500, "device-2": 701})
    assert holds("memory-reduction", side(memory=1000), uneven) is False


def test_nothing_is_saved_of_nothing() -> None:
    assert holds("memory-reduction", side(memory=0), side(memory=0)) is False


@pytest.mark.parametrize("hundredths", range(1, 200, 13))
def test_latency_regression_holds_at_exactly_five_per_cent(hundredths: int) -> None:
    baseline = side(ttft=20 * hundredths / 1000)
    assert holds("latency-regression", baseline, side(ttft=21 * hundredths / 1000)) is True
    assert holds("latency-regression", baseline, side(ttft=21 * hundredths / 1000 + 1e-9)) is False


def test_latency_improvement_needs_every_repetition() -> None:
    slower = [Pair(1, side(0.2), side(0.1)), Pair(2, side(0.2), side(0.2)), Pair(3, side(0.2), side(0.1))]
    gate = GATES["latency-improvement"](slower)
    assert [row.holds for row in gate.rows] == [True, False, True]
    assert gate.holds is False
    assert [row.relative for row in gate.rows] == ["1/2", "0/1", "1/2"]


def test_median_improvement_is_the_middle_of_three_and_holds_at_a_tenth() -> None:
    def three(*candidates: float) -> Sequence[Pair]:
        return [Pair(n, side(0.3), side(ttft)) for n, ttft in enumerate(candidates, 1)]

    gate = GATES["median-improvement"](three(0.29, 0.27, 0.01))
    assert (gate.rows[0].relative, gate.holds, gate.rows[0].repetition) == ("1/10", True, None)
    assert GATES["median-improvement"](three(0.29, 0.270000001, 0.01)).holds is False


@pytest.mark.parametrize("gate", GATES)
def test_what_is_unknown_holds_no_gate(gate: str) -> None:
    unknown = side(None, None, None)
    assert holds(gate, unknown, side()) is None
    assert holds(gate, side(), unknown) is None


def test_zero_is_no_latency() -> None:
    assert holds("latency-improvement", side(ttft=0.0), side(ttft=0.0)) is None


def sample(offer: str, worker: str | None = "worker-1", response: str = "b") -> records.Sample:
    return records.Sample(
        offer, int(offer[1]), offer[3].upper(), "main", worker, "a" * 64, 1, response * 64, 1, 200, "complete", 0.0, 0.1, None,
        0.2, 0.0, "NORMAL", "stop", 1, 1,
    )  # fmt: skip


def receipt(response: str = "b", *, traffic: bool = True) -> records.Receipt:
    return records.Receipt(
        1,
        None,
        "POST",
        "/v1/chat/completions",
        traffic,
        "a" * 64,
        1,
        response * 64,
        1,
        200,
        True,
        None,
        0.0,
        0.1,
        {},
        {},
    )


def test_receipts_and_samples_are_equal_as_multisets() -> None:
    samples = [sample("r1-a-main-001"), sample("r1-a-main-002", None, "c")]
    ledgers = {("r1-a", "worker-1"): [receipt()], ("r1-a", "worker-2"): [receipt("c"), receipt("d", traffic=False)]}
    assert decide.mismatches(samples, ledgers) == []


@pytest.mark.parametrize(
    "ledgers",
    [
        {("r1-a", "worker-1"): [receipt(), receipt()]},
        {("r1-a", "worker-2"): [receipt()]},
        {("r1-a", "worker-1"): [receipt("c")]},
        {("r1-b", "worker-1"): [receipt()]},
        {},
    ],
)
def test_a_receipt_too_many_too_few_elsewhere_or_of_other_bytes_does_not_match(
    ledgers: dict[tuple[str, str], list[records.Receipt]],
) -> None:
    assert decide.mismatches([sample("r1-a-main-001")], ledgers)
