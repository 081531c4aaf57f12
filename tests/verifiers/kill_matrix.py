"""All mutations of the shipped verifiers on the forged package, in memory, and the pages that are made of them.

`python -m tests.verifiers.kill_matrix` writes verifiers/CHECKS.md and tests/golden/findings.txt anew.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "verifiers") not in sys.path:
    sys.path.append(str(ROOT / "verifiers"))

from checking.check import Check, Family, Finding, Mutation, Report, judge, table  # noqa: E402
from checking.damage import Bench, sums_of  # noqa: E402
from checking.package import Memory, Overlay, Recall  # noqa: E402

from tests.verifiers.forged_package import Forge  # noqa: E402

NAMES = ("verify-results", "verify-incomplete-results", "verify-converged")
PAGE = ROOT / "verifiers" / "CHECKS.md"
GOLDEN = ROOT / "tests" / "golden" / "findings.txt"


@lru_cache
def verifier(name: str) -> Any:
    """The VERIFIER of a shipped script."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / "verifiers" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.VERIFIER


@lru_cache
def forged() -> Memory:
    """The forged package."""
    return Memory(Forge().seal())


class Kill(NamedTuple):
    """One mutation tried: the code it is aimed at, what was altered, what was found, with and without its check."""

    code: str
    mutation: str
    resealed: bool
    altered: str | None
    findings: tuple[Finding, ...]
    crashes: tuple[str, ...]
    without: frozenset[str] | None


def without(families: tuple[Family, ...], code: str) -> tuple[Family, ...]:
    """The families with one check taken out."""
    return tuple(one._replace(checks=tuple(row for row in one.checks if row.code != code)) for one in families)


STRUCTURE = ("json-", "schema-", "file-missing")


class Ground(NamedTuple):
    """What every mutation of a verifier is tried on: the forged package, and its clean report."""

    source: Memory
    families: tuple[Family, ...]
    clean: Report
    sums: dict[str, str]
    recall: Recall


@lru_cache
def ground(name: str) -> Ground:
    """The ground of a verifier. Unaltered, the package verifies."""
    source, families = forged(), verifier(name).families
    clean = judge(source, families, again=True)
    assert (clean.findings, clean.crashes) == ((), ())
    return Ground(source, families, clean, sums_of(source), Recall())


def damaged(on: Ground, mutation: Mutation) -> tuple[str | None, Overlay]:
    """What a mutation altered, and the package with it."""
    bench = Bench(on.source, on.sums)
    altered = mutation.damage(bench)
    if altered is not None and mutation.resealed:
        bench.reseal()
    return altered, bench.overlay()


@lru_cache
def kills_of(name: str, row: Check) -> tuple[Kill, ...]:
    """Every mutation of one row, without its ablation."""
    on, made = ground(name), []
    for mutation in row.mutations:
        altered, overlay = damaged(on, mutation)
        report = judge(overlay, on.families, on.clean, overlay.changed, overlay.moved, recall=on.recall)
        made.append(Kill(row.code, mutation.name, mutation.resealed, altered, report.findings, report.crashes, None))
    return tuple(made)


def ablated(name: str, row: Check) -> frozenset[str]:
    """The codes that still reject a row's first mutation when its check is taken out."""
    on = ground(name)
    _, overlay = damaged(on, row.mutations[0])
    hidden = frozenset([row.code]) if row.code.startswith(STRUCTURE) else frozenset()
    fewer = without(on.families, row.code)
    report = judge(overlay, fewer, on.clean, overlay.changed, overlay.moved, hidden, recall=on.recall)
    assert not report.crashes, (row.code, report.crashes)
    return report.codes()


@lru_cache
def kills(name: str) -> tuple[Kill, ...]:
    """Every mutation of a verifier; the first of each row with what still sees it when its check is taken out."""
    made: list[Kill] = []
    for row in table(verifier(name).families):
        first, *rest = kills_of(name, row)
        made += [first._replace(without=ablated(name, row)), *rest]
    return tuple(made)


def page() -> str:
    """CHECKS.md: every code with its truth, its mutations, and which other checks see the first of them."""
    lines = [
        "# Every check and the mutations that prove it awake",
        "",
        "Generated from the tables under `checking/rules`; a test holds it to them. A mutation marked with * is resealed:",
        "afterwards indices, counts and SHA256SUMS are true again, so that only meaning can reject it. *Also seen by* names",
        "the checks that still reject the first mutation when the check itself is taken out; with none, it survives then.",
    ]
    total = resealed = 0
    for name in NAMES:
        rows, tried = table(verifier(name).families), kills(name)
        lines += ["", f"## {name}", "", "| code | truth | mutations | also seen by |", "|---|---|---|---|"]
        for row in rows:
            mine = [one for one in tried if one.code == row.code]
            total, resealed = total + len(mine), resealed + sum(one.resealed for one in mine)
            told = "; ".join(one.mutation + (" *" if one.resealed else "") for one in mine)
            also = ", ".join(sorted(next(one.without for one in mine if one.without is not None) or ())) or "none"
            lines.append(f"| `{row.code}` | {row.truth} | {told} | {also} |")
    lines += ["", f"{total} mutations, {resealed} of them resealed."]
    lifecycle = table(verifier("verify-lifecycle").families)
    lines += ["", "## verify-lifecycle", "", "| code | truth | mutations |", "|---|---|---|"]
    for row in lifecycle:
        told = "; ".join(one.name + (" *" if one.resealed else "") for one in row.mutations)
        lines.append(f"| `{row.code}` | {row.truth} | {told} |")
    return "\n".join(lines) + "\n"


def line_of(one: Kill) -> str:
    """The first line that a mutation prints under the code it is aimed at, hashes left out; empty when there is none."""
    line = next((str(finding) for finding in one.findings if finding.code == one.code), "")
    return re.sub(r"(?i)\b[0-9a-f]{40,64}\b", "<sha256>", line)


def golden() -> str:
    """For every code the line that its first mutation prints."""
    lines = []
    for name in NAMES:
        lines.append(f"# {name}")
        for row in table(verifier(name).families):
            first = kills_of(name, row)[0]
            lines += [f"## {first.mutation}", line_of(first)]
    return "\n".join(lines) + "\n"


def golden_lines() -> dict[tuple[str, str, str], str]:
    """The golden page as (verifier, code, mutation) -> line."""
    made, name, mutation = {}, "", ""
    for line in GOLDEN.read_text().splitlines():
        if line.startswith("## "):
            mutation = line[3:]
        elif line.startswith("# "):
            name = line[2:]
        else:
            made[name, line.split(" ")[0], mutation] = line
    return made


if __name__ == "__main__":
    PAGE.write_text(page())
    GOLDEN.write_text(golden())
