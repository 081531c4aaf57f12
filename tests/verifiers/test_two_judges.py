"""Three readings of the settings rules on thousands of generated comparisons: verifier, second judge, builder."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from functools import cache

from checking.rules.decision import gates

from tests.verifiers.second_judge import judge, p95

COUNT = 2400
NANO = Decimal("0.000000001")


def nanoseconds(value: int) -> Decimal:
    return Decimal(value) * NANO


def near(random_: random.Random, base: int, share: Fraction) -> int:
    """A value at the share of the base: exactly, one either side, or anywhere."""
    exact = base * share
    edge = exact.numerator // exact.denominator
    return random_.choice([edge, edge - 1, edge + 1, edge, random_.randint(max(1, base // 2), base * 2)])


@cache
def make(number: int) -> tuple[str, list[dict]]:
    """One generated comparison; a fixed seed each, boundaries more often than not."""
    dice = random.Random(number)
    kind = dice.choice(["memory", "sequence-cap"])
    pairs = []
    shares = {
        "memory": [Fraction(105, 100), Fraction(1)],
        "sequence-cap": [Fraction(9, 10), Fraction(1), Fraction(3, 4)],
    }[kind]
    for _ in range(3):
        tail = dice.choice([100_000_000, 120_000_000, dice.randint(1_000, 10**9)])
        other = max(1, near(dice, tail, dice.choice(shares)))
        sides = []
        for place, value in enumerate((tail, other)):
            low = [dice.randint(1, value) for _ in range(22)]
            ties = dice.choice([[value, value], [value, value + dice.randint(0, 5)]])
            texts = [nanoseconds(one) for one in dice.sample(low + ties, 24)]
            tokens = [dice.randint(10, 40) for _ in range(24)]
            sides.append({"ttft": texts, "tokens": tokens, "memory": {}, "place": place})
        old = sum(sides[0]["tokens"])
        target = max(24, near(dice, old, dice.choice([Fraction(105, 100), Fraction(95, 100), Fraction(1)])))
        sides[1]["tokens"] = [target - 23] + [1] * 23
        for device in ("device-1", "device-2"):
            base = dice.choice([10**9, dice.randint(1000, 10**10)])
            sides[0]["memory"][device] = base
            sides[1]["memory"][device] = near(dice, base, Fraction(7, 10))
        pairs.append({"baseline": sides[0], "candidate": sides[1]})
    return kind, pairs


def as_pairs(pairs: list[dict]) -> list[dict]:
    """The pairs as decision.json has them."""
    made = []
    for number, pair in enumerate(pairs, 1):
        sides = {}
        for name in ("baseline", "candidate"):
            side = pair[name]
            sides[name] = {
                "p95TtftSeconds": Decimal(p95([str(one) for one in side["ttft"]])),
                "completionTokens": sum(side["tokens"]),
                "devices": side["memory"],
            }
        made.append({"repetition": number, **sides})
    return made


def test_verifier_and_second_judge_agree_on_2400_comparisons() -> None:
    seen = set()
    for number in range(COUNT):
        kind, pairs = make(number)
        second = judge(
            kind, [{k: {**v, "ttft": [str(one) for one in v["ttft"]]} for k, v in pair.items()} for pair in pairs]
        )
        first = gates(kind, as_pairs(pairs))
        for gate in first:
            theirs = second["gates"][gate["gate"]]
            ratios = [None if row["relative"] is None else Fraction(row["relative"]) for row in gate["rows"]]
            assert ratios == theirs["ratios"], (number, gate["gate"])
            assert gate["holds"] is theirs["holds"], (number, gate["gate"])
            seen.add((gate["gate"], gate["holds"]))
    assert len(seen) == 10


def test_builder_agrees_with_both() -> None:
    from evidence.build import decide
    from evidence.records import Pair, Side

    for number in range(COUNT):
        kind, pairs = make(number)
        told = as_pairs(pairs)
        built = [
            Pair(
                one["repetition"],
                *(
                    Side(
                        float(one[name]["p95TtftSeconds"]), None, one[name]["completionTokens"], 0, one[name]["devices"]
                    )
                    for name in ("baseline", "candidate")
                ),
            )
            for one in told
        ]
        for gate in gates(kind, told):
            theirs = decide.GATES[gate["gate"]](built)
            assert theirs.holds is gate["holds"], (number, gate["gate"])
            assert [row.relative for row in theirs.rows] == [row["relative"] for row in gate["rows"]], (
                number,
                gate["gate"],
            )


def test_boundaries_hold_exactly() -> None:
    def pair(ttft: tuple[str, str], tokens: tuple[int, int], memory: tuple[int, int]) -> dict:
        return {
            name: {
                "p95TtftSeconds": Decimal(ttft[place]),
                "completionTokens": tokens[place],
                "devices": {"device-1": memory[place]},
            }
            for place, name in enumerate(("baseline", "candidate"))
        }

    def held(kind: str, one: dict) -> list[bool]:
        return [gate["holds"] for gate in gates(kind, [{"repetition": n, **one} for n in (1, 2, 3)])]

    assert held("memory", pair(("0.1", "0.105"), (1000, 1050), (1000, 700))) == [True, True, True]
    assert held("memory", pair(("0.1", "0.105000001"), (1000, 1051), (1000, 701))) == [False, False, False]
    assert held("sequence-cap", pair(("0.1", "0.09"), (1000, 950), (1, 1))) == [True, True, True]
    assert held("sequence-cap", pair(("0.1", "0.090000001"), (1000, 949), (1, 1))) == [False, True, False]
    assert held("sequence-cap", pair(("0.1", "0.1"), (1000, 1000), (1, 1))) == [True, False, False]
