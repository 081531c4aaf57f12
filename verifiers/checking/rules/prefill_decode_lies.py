"""Lies in pd-index.json, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from checking.damage import Bench
from checking.rules.prefill_decode import NAME

Lie = Callable[[Bench], Optional[str]]


def _case(outcome: str, change: Callable[[Dict[str, Any]], Any]) -> Lie:
    """A lie about the first case of an outcome."""

    def damage(bench: Bench) -> Optional[str]:
        if not bench.has(NAME):
            return None
        value = bench.load(NAME)
        one = next((one for one in value["cases"] if one["outcome"] == outcome), None)
        if one is None:
            return None
        change(one)
        bench.store(NAME, value)
        return "%s#%s" % (NAME, one["id"])

    return damage


publish_unreviewed = _case("QUALIFIED", lambda one: one.update(reviewed=False))
unlisted_profile = _case("FAILED", lambda one: one.update(profile="unlisted"))
inherit_qualification = _case("FAILED", lambda one: one.update(outcome="QUALIFIED", reason=None))
no_transfer = _case("QUALIFIED", lambda one: one["decodeTransferCounters"].update(after=0, before=0))
hide_reason = _case("FAILED", lambda one: one.update(reason=None))


def other_engine(bench: Bench) -> Optional[str]:
    """Summarise a case of the matrix under another engine."""
    if not bench.has(NAME):
        return None
    value, rows = bench.load(NAME), bench.load("runtime-matrix.json")["rows"]
    if not value["cases"]:
        return None
    value["cases"][0].update(case=rows[0]["case"], profile=rows[0]["profile"], engine="another-engine")
    bench.store(NAME, value)
    return "%s#%s" % (NAME, value["cases"][0]["id"])
