"""Which complete run of a comparison is which: its id, its number, and when it began."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from checking.check import Check, Complaint, Mutation
from checking.later import Later
from checking.reading import shown
from checking.rules.index import Index
from checking.rules.instants import begun, moment, run_name
from checking.rules.protocol import OVERLAP_SLACK

lies = Later("checking.rules.runs_lies")

LONGEST_ID = 63


def hold_runs(subject: Index) -> Iterator[Complaint]:
    """The latest complete run of a comparison has its id, earlier ones are `.run-<n>`, numbered from the oldest.

    When a run began its id says, and its first arm did not begin before it. So nobody can tell the better of two runs as
    the latest, nor leave one out of the middle.
    """
    runs: Dict[str, List[Tuple[str, str]]] = {}
    for folder, facts in sorted(subject.found.items()):
        if facts is None:
            continue
        began, first = begun(facts["run"]), facts["startedAt"]
        at = folder + "/comparison.json#/"
        if began is None:
            yield (at + "run", shown(facts["run"]), "the name of a comparison and the stamp of a run")
            continue
        runs.setdefault(run_name(facts["run"]), []).append((began, folder))
        if first is not None and moment(first) < moment(began) - OVERLAP_SLACK:
            yield (at + "arms/0/startedAt", first, "not before the stamp of its run, " + began)
    for name, found in sorted(runs.items()):
        before = ""
        for number, (_, folder) in enumerate(sorted(found), 1):
            at = folder + "/comparison.json#/"
            suffix = "" if number == len(found) else ".run-%d" % number
            right = "%s/%s" % (
                subject.table.parent,
                (name[: LONGEST_ID - len(suffix)] if suffix else name) + suffix,
            )
            if folder != right:
                yield (at + "run", "run %d of %d of %s" % (number, len(found), name), "in " + right)
            first = subject.found[folder]["startedAt"] or before
            if first < before:
                yield (at + "arms/0/startedAt", first, "after the runs of %s before it" % name)
            before = first


CHECK = Check(
    "index-runs",
    "the latest run of a comparison has its id, earlier ones are numbered from the oldest",
    hold_runs,
    (
        Mutation("tell the latest run as an earlier one", lies.be_latest),
        Mutation("number a run as if others had been before it", lies.skip_run),
        Mutation("let a comparison begin before its run", lies.begin_before),
        Mutation("take the stamp from the id of a run", lies.lose_stamp),
    ),
)
