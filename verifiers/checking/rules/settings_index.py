"""settings-index.json against the comparisons that are there."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from checking.check import Complaint
from checking.plan import MAIN_TOTAL, WARM_TOTAL
from checking.reading import shown
from checking.rules import shapes_decision
from checking.rules.index import Index, Table
from checking.rules.instants import begun, moment, run_name
from checking.rules.protocol import OVERLAP_SLACK

LONGEST_ID = 63

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


def hold_runs(subject: SettingsIndex) -> Iterator[Complaint]:
    """The latest complete run of a comparison has its id, earlier ones are `.run-<n>`, numbered from the oldest.

    When a run began its id says, and its first arm did not begin before it. So nobody can tell the better of two runs as
    the latest, nor leave one out of the middle.
    """
    runs: Dict[str, List[Tuple[str, str]]] = {}
    for folder, facts in sorted(subject.found.items()):
        if facts is None:
            continue
        began = begun(facts["run"])
        at = folder + "/comparison.json#/"
        if began is None:
            yield (at + "run", shown(facts["run"]), "the name of a comparison and the stamp of a run")
            continue
        runs.setdefault(run_name(facts["run"]), []).append((began, folder))
        first = facts["startedAt"]
        if first is not None and moment(first) < moment(began) - OVERLAP_SLACK:
            yield (at + "arms/0/startedAt", first, "not before the stamp of its run, " + began)
    for name, found in sorted(runs.items()):
        before = ""
        for number, (_, folder) in enumerate(sorted(found), 1):
            first = subject.found[folder]["startedAt"] or before
            if first < before:
                yield (folder + "/comparison.json#/arms/0/startedAt", first, "after the runs of %s before it" % name)
            before = first
            suffix = "" if number == len(found) else ".run-%d" % number
            right = "%s/%s" % (TABLE.parent, (name[: LONGEST_ID - len(suffix)] if suffix else name) + suffix)
            if folder != right:
                yield (
                    folder + "/comparison.json#/run",
                    "run %d of %d of %s" % (number, len(found), name),
                    "in " + right,
                )


def facts(subject: SettingsIndex) -> Dict[str, Any]:
    """Counts over all comparisons."""
    return {
        "counts": {
            "comparisons": len(subject.rows),
            "main samples": len(subject.rows) * MAIN_TOTAL,
            "warm samples": len(subject.rows) * WARM_TOTAL,
        }
    }
