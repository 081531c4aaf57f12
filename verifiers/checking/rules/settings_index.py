"""settings-index.json against the comparisons that are there."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict

from checking.check import Check, Mutation
from checking.plan import MAIN_TOTAL, WARM_TOTAL
from checking.rules import index, runs, shapes_decision

TABLE = index.Table(
    name="results/settings-index.json",
    key="comparisons",
    parent="results/settings",
    document="comparison.json",
    kind="comparison",
    shape=shapes_decision.SETTINGS_INDEX,
    one="a comparison",
    many="comparisons",
    codes=("index-complete", "index-files", "index-rows"),
)
NAMED = (
    ("comparison.json", "id"),
    ("samples.json", "comparison"),
    ("snapshots.json", "comparison"),
    ("decision.json", "comparison"),
)
COUNTED = (("comparisons", 1), ("mainSamples", MAIN_TOTAL), ("warmSamples", WARM_TOTAL))


def facts(subject: index.Index) -> Dict[str, Any]:
    """Counts over all comparisons."""
    return {
        "counts": {
            "comparisons": len(subject.rows),
            "main samples": len(subject.rows) * MAIN_TOTAL,
            "warm samples": len(subject.rows) * WARM_TOTAL,
        }
    }


FAMILY = index.family(
    TABLE,
    (
        ("turn a decision round in the index alone", index.lies.other_decision),
        ("list a comparison under another profile", index.lies.other_profile),
    ),
    Check(
        "index-distinct",
        "no comparison is a copy of another",
        index.hold_distinct,
        (Mutation("package a comparison twice", partial(index.lies.package_twice, TABLE, NAMED, COUNTED)),),
    ),
    runs.CHECK,
    lists=(("reverse the index of the comparisons", index.lies.reverse),),
    facts=facts,
)
