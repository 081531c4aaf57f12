"""settings-index.json against the comparisons that are there."""

from __future__ import annotations

from typing import Any, Dict, Iterator

from checking.check import Complaint
from checking.plan import MAIN_TOTAL, WARM_TOTAL
from checking.rules import shapes_decision
from checking.rules.index import Index, Table

TABLE = Table(
    name="results/settings-index.json",
    key="comparisons",
    parent="results/settings",
    kind="comparison",
    shape=shapes_decision.SETTINGS_INDEX,
    holding=" with a comparison",
    beside=("a file beside the comparisons", "folders of comparisons only"),
)


class SettingsIndex(Index):
    """The index, and what the comparisons were found to be."""

    table = TABLE


def hold_distinct(subject: SettingsIndex) -> Iterator[Complaint]:
    """No comparison is a copy of another: a run is packaged once, and no main batch comes twice."""
    runs: Dict[str, str] = {}
    batches: Dict[str, str] = {}
    for folder, facts in sorted(subject.found.items()):
        if facts is None:
            continue
        other = runs.setdefault(facts["run"], folder)
        if other != folder:
            yield (folder + "/comparison.json#/run", facts["run"], "a run of its own, not that of " + other)
        for arm, batch in facts["batches"]:
            first = batches.setdefault(batch, folder)
            if first != folder:
                yield ("%s/samples.json#%s" % (folder, arm), "the main batch of " + first, "a batch of its own")


def facts(subject: SettingsIndex) -> Dict[str, Any]:
    """Counts over all comparisons."""
    return {
        "counts": {
            "comparisons": len(subject.rows),
            "main samples": len(subject.rows) * MAIN_TOTAL,
            "warm samples": len(subject.rows) * WARM_TOTAL,
        }
    }
