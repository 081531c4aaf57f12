"""One fact altered in the forged package, the rest made true again, and what a verifier says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checking.check import judge
from checking.damage import Bench
from checking.rules.forgery import Desk

from tests.verifiers.kill_matrix import ground

Change = Callable[[Desk], object]
RESULTS, INCOMPLETE, CONVERGED = "verify-results", "verify-incomplete-results", "verify-converged"


def told(verifier: str, code: str, damage: Callable[[Bench], object]) -> list[str]:
    """The lines that a verifier prints under a code on the forged package after an edit, resealed.

    The check is asked alone: what else would be said is left aside, and with it the time that it takes.
    """
    on = ground(verifier)
    bench = Bench(on.source, on.sums)
    damage(bench)
    bench.reseal()
    overlay = bench.overlay()
    alone = tuple(one._replace(checks=tuple(row for row in one.checks if row.code == code)) for one in on.families)
    assert sum(len(one.checks) for one in alone) == 1, code
    report = judge(overlay, alone, on.clean, overlay.changed, overlay.moved, recall=on.recall)
    assert not report.crashes, report.crashes
    return [str(finding) for finding in report.findings if finding.code == code]


def only(bench: Bench, parent: str, start: str = "") -> Desk:
    """The one folder below a parent whose name begins so."""
    (folder,) = [one for one in bench.folders("results/" + parent) if one.rpartition("/")[2].startswith(start)]
    return Desk(bench, folder)


def told_of(desk: Callable[[Bench], Desk], folder: str, verifier: str, code: str, *changes: Change) -> list[str]:
    """What stands after the code and the folder in the lines that the changes give."""

    def damage(bench: Bench) -> None:
        at = desk(bench)
        for change in changes:
            change(at)

    start = f"{code} {folder}/"
    return [line[len(start) :] for line in told(verifier, code, damage) if line.startswith(start)]


def edited(name: str, change: Callable[[Any], object]) -> Change:
    """A change of one document of a folder."""

    def apply(desk: Desk) -> None:
        with desk.edit(name) as value:
            change(value)

    return apply


def sampled(offer: str, **values: Any) -> Change:
    """A change of the sample of one offer."""

    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            next(row for row in rows if row["offer"] == offer).update(values)

    return apply


def received(offer: str, **values: Any) -> Change:
    """A change of the receipt of one offer."""

    def apply(desk: Desk) -> None:
        with desk.receipt(offer) as row:
            assert row is not None
            row.update(values)

    return apply
