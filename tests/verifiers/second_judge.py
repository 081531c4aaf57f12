"""A second reading of the settings rules, from the published documents alone.

It shares no code with the verifiers or the builder: percentiles come from numpy's inverted CDF, ratios from
`Fraction`, and it works on plain numbers instead of packages. A pair is a dict of both sides:
{"baseline": SIDE, "candidate": SIDE}, SIDE = {"ttft": [decimal text], "tokens": [int], "memory": {device: int}}.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np


@lru_cache
def place95(count: int) -> int:
    """Where the 95th percentile of so many sorted values stands, by numpy's inverted CDF."""
    return int(np.quantile(np.arange(count), 0.95, method="inverted_cdf"))


def p95(texts: list[str]) -> str:
    """The text of the 95th percentile by the inverted CDF, ties and all."""
    exact = sorted(texts, key=Fraction)
    return exact[place95(len(exact))]


def judge(kind: str, pairs: list[dict]) -> dict:
    """Which gates of the kind hold, the exact ratios of each, and what is selected when nothing disqualifies."""
    gates: dict[str, dict] = {}
    volume = []
    for pair in pairs:
        old, new = (sum(pair[side]["tokens"]) for side in ("baseline", "candidate"))
        volume.append((Fraction(abs(new - old), old), Fraction(abs(new - old) * 100) <= 5 * old))
    gates["token-volume"] = {"ratios": [r for r, _ in volume], "holds": all(h for _, h in volume)}
    tails = [tuple(Fraction(p95(pair[side]["ttft"])) for side in ("baseline", "candidate")) for pair in pairs]
    if kind == "memory":
        rows = []
        for pair in pairs:
            for device in sorted(pair["baseline"]["memory"]):
                old, new = pair["baseline"]["memory"][device], pair["candidate"]["memory"][device]
                rows.append((Fraction(old - new, old), 100 * (old - new) >= 30 * old))
        gates["memory-reduction"] = {"ratios": [r for r, _ in rows], "holds": all(h for _, h in rows)}
        gates["latency-regression"] = {
            "ratios": [(new - old) / old for old, new in tails],
            "holds": all(100 * new <= 105 * old for old, new in tails),
        }
    else:
        gains = [1 - new / old for old, new in tails]
        gates["latency-improvement"] = {"ratios": gains, "holds": all(new < old for old, new in tails)}
        middle = sorted(gains)[1]
        gates["median-improvement"] = {"ratios": [middle], "holds": 10 * middle >= 1}
    failed = [name for name, gate in gates.items() if not gate["holds"]]
    return {"gates": gates, "failed": failed, "decision": "baseline" if failed else "candidate"}
