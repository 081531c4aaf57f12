"""Three nearest ranks, of judge, clerk and second judge, on the same values; and one decision from all of them."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from checking.arithmetic import nearest_rank

from evidence import records
from evidence.build import decide
from tests.verifiers.second_judge import judge, p95
from tests.verifiers.test_two_judges import COUNT, as_pairs, make

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 98, 99, 100)


@pytest.mark.parametrize("percent", PERCENTS)
def test_the_clerks_rank_is_the_least_that_reaches_the_share(percent: int) -> None:
    for count in range(1, 1001):
        # The values are their ranks in descending order, so what is returned is the rank itself.
        rank = decide.nearest_rank(range(count, 0, -1), percent)
        assert rank is not None
        assert Fraction(int(rank), count) >= Fraction(percent, 100)
        assert rank == 1 or Fraction(int(rank) - 1, count) < Fraction(percent, 100)


@pytest.mark.parametrize("percent", PERCENTS)
def test_judge_and_clerk_take_the_same_value(percent: int) -> None:
    dice = random.Random(percent)
    for count in range(1, 200):
        values = [dice.randint(1, 40) / 1000 for _ in range(count)]
        theirs = nearest_rank([Decimal(repr(value)) for value in values], Fraction(percent, 100))
        assert Decimal(repr(decide.nearest_rank(values, percent))) == theirs


def test_three_readings_of_the_p95_agree_ties_and_neighbours_included() -> None:
    edges = 0
    for number in range(COUNT):
        _, pairs = make(number)
        for pair in pairs:
            for side in pair.values():
                texts = [str(one) for one in side["ttft"]]
                second = Decimal(p95(texts))
                assert nearest_rank(side["ttft"]) == second, number
                assert Decimal(repr(decide.nearest_rank([float(text) for text in texts]))) == second, number
                edges += texts.count(p95(texts)) > 1
    assert edges > COUNT


def test_the_generated_comparisons_stand_on_every_edge() -> None:
    """What the agreement is worth: exactly at each limit, and one unit either side of it, both happen often."""
    seen: dict[str, int] = {}
    for number in range(COUNT):
        kind, pairs = make(number)
        for pair in pairs:
            old, new = (sum(pair[side]["tokens"]) for side in ("baseline", "candidate"))
            tails = [int(Decimal(p95([str(t) for t in pair[s]["ttft"]])) * 10**9) for s in ("baseline", "candidate")]
            limits = {"tokens 5 %": (20 * abs(new - old), old, 20)}
            if kind == "memory":
                memory = [pair[side]["memory"]["device-1"] for side in ("baseline", "candidate")]
                limits |= {"memory 30 %": (10 * memory[1], 7 * memory[0], 10)}
                limits |= {"latency 5 %": (20 * tails[1], 21 * tails[0], 20)}
            else:
                limits |= {"latency 10 %": (10 * tails[1], 9 * tails[0], 10), "latency equal": (tails[1], tails[0], 1)}
            for name, (left, right, unit) in limits.items():
                word = "at" if left == right else "above" if 0 < left - right <= unit else "below"
                if left == right or abs(left - right) <= unit:
                    seen[f"{name}: {word}"] = seen.get(f"{name}: {word}", 0) + 1
    names = ("tokens 5 %", "memory 30 %", "latency 5 %", "latency 10 %", "latency equal")
    for name in names:
        for word in ("at", "above", "below"):
            assert seen.get(f"{name}: {word}", 0) >= 20, (name, word, seen)


def test_second_judge_and_clerk_name_the_same_failed_gates() -> None:
    chosen = {"candidate": 0, "baseline": 0}
    for number in range(COUNT):
        kind, pairs = make(number)
        second = judge(kind, [{k: {**v, "ttft": [str(t) for t in v["ttft"]]} for k, v in one.items()} for one in pairs])
        built = [
            records.Pair(one["repetition"], *(
                records.Side(float(one[name]["p95TtftSeconds"]), None, one[name]["completionTokens"], 0, one[name]["devices"])
                for name in ("baseline", "candidate")
            ))
            for one in as_pairs(pairs)
        ]  # fmt: skip
        failed = [name for name in records.KIND_GATES[kind] if decide.GATES[name](built).holds is not True]
        assert failed == second["failed"], number
        chosen[second["decision"]] += 1
    assert min(chosen.values()) > 50  # both decisions are really taken
