"""Lies in lifecycle-index.json, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from checking.damage import LIFECYCLE_INDEX, Bench

Rows = List[Dict[str, Any]]
Lie = Callable[[Bench], Optional[str]]


def _edit(change: Callable[[Rows], Any]) -> Lie:
    """A lie in the index alone; sums are sealed, its hashes are not put right."""

    def damage(bench: Bench) -> Optional[str]:
        if not bench.has(LIFECYCLE_INDEX):
            return None
        index = bench.load(LIFECYCLE_INDEX)
        if not index["records"]:
            return None
        change(index["records"])
        bench.store(LIFECYCLE_INDEX, index)
        bench.reseal_sums()
        return "%s#/records/0" % LIFECYCLE_INDEX

    return damage


def _zero_hash(rows: Rows) -> None:
    rows[0]["sha256"] = "0" * 64


def _other_experiment(rows: Rows) -> None:
    rows[0]["experiments"] = ["another-experiment"]


leave_record_out = _edit(lambda rows: rows.pop(0))
other_hash = _edit(_zero_hash)
other_experiment = _edit(_other_experiment)
