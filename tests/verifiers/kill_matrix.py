"""All mutations of the shipped verifiers on the forged package, in memory, and the pages that are made of them.

`python -m tests.verifiers.kill_matrix` writes verifiers/CHECKS.md and tests/golden/findings.txt anew.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "verifiers") not in sys.path:
    sys.path.append(str(ROOT / "verifiers"))

from checking.check import Check, Family, Finding, Mutation, Report, judge, table  # noqa: E402
from checking.damage import Bench, sums_of  # noqa: E402
from checking.package import Memory, Overlay, Recall  # noqa: E402

from tests.verifiers.forged_package import sealed  # noqa: E402

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
    return Memory(sealed())


class Kill(NamedTuple):
    """One mutation tried: the code it is aimed at, what was altered and what was found."""

    code: str
    mutation: str
    resealed: bool
    altered: str | None
    findings: tuple[Finding, ...]
    crashes: tuple[str, ...]


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
    """Every mutation of one row."""
    on, made = ground(name), []
    for mutation in row.mutations:
        altered, overlay = damaged(on, mutation)
        report = judge(overlay, on.families, on.clean, overlay.changed, overlay.moved, recall=on.recall)
        made.append(Kill(row.code, mutation.name, mutation.resealed, altered, report.findings, report.crashes))
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


Said = Callable[[str, Check], str]


def also_seen(name: str, row: Check) -> str:
    """The codes that still reject a row's first mutation when its check is taken out, in the words of the page."""
    return ", ".join(sorted(ablated(name, row))) or "none"


def page(also: Said) -> str:
    """CHECKS.md: every code with its truth, its mutations, and by `also` which other checks see the first of them."""
    lines = [
        "# Every check and the mutations that prove it awake",
        "",
        "Generated from the tables under `checking/rules`; a test holds it to them. A mutation marked with * is resealed:",
        "afterwards indices, counts and SHA256SUMS are true again, so that only meaning can reject it. *Also seen by* names",
        "the checks that still reject the first mutation when the check itself is taken out; with none, it survives then.",
    ]
    total = resealed = 0
    for name in (*NAMES, "verify-lifecycle"):
        more = name in NAMES
        if not more:
            lines += ["", f"{total} mutations, {resealed} of them resealed."]
        lines += [
            "",
            f"## {name}",
            "",
            "| code | truth | mutations |" + " also seen by |" * more,
            "|---|---|---|" + "---|" * more,
        ]
        for row in table(verifier(name).families):
            total, resealed = total + len(row.mutations), resealed + sum(one.resealed for one in row.mutations)
            told = "; ".join(one.name + (" *" if one.resealed else "") for one in row.mutations)
            lines.append(f"| `{row.code}` | {row.truth} | {told} |" + (f" {also(name, row)} |" if more else ""))
    return "\n".join(lines) + "\n"


def told_on_the_page(name: str, row: Check) -> str:
    """Which other checks see a row's first mutation, as the page has it."""
    section = PAGE.read_text().partition(f"## {name}\n")[2]
    line = next(line for line in section.splitlines() if line.startswith(f"| `{row.code}` |"))
    return line.rstrip(" |").rpartition("| ")[2]


def line_of(one: Kill) -> str:
    """The first line that a mutation prints under the code it is aimed at, hashes left out; empty when there is none."""
    line = next((str(finding) for finding in one.findings if finding.code == one.code), "")
    return re.sub(r"(?i)\b[0-9a-f]{40,64}\b", "<sha256>", line)


def first_line(name: str, row: Check) -> str:
    """The line that a row's first mutation prints."""
    return line_of(kills_of(name, row)[0])


def golden(line: Said) -> str:
    """For every code the `line` that its first mutation prints."""
    lines = []
    for name in NAMES:
        lines.append(f"# {name}")
        for row in table(verifier(name).families):
            lines += [f"## {row.mutations[0].name}", line(name, row)]
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
    PAGE.write_text(page(also_seen))
    GOLDEN.write_text(golden(first_line))
