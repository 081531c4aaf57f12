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

from checking.check import Family, Finding, judge, table  # noqa: E402
from checking.damage import Bench, sums_of  # noqa: E402
from checking.package import Memory, Names, Recall  # noqa: E402

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


@lru_cache
def kills(name: str) -> tuple[Kill, ...]:
    """Every mutation of a verifier; the first of each row once more with its check taken out."""
    source, families = forged(), verifier(name).families
    clean = judge(source, families)
    assert (clean.findings, clean.crashes) == ((), ())
    sums, names, recall = sums_of(source), Names(source.entries), Recall()
    made = []
    for row in table(families):
        for number, mutation in enumerate(row.mutations):
            bench = Bench(source, sums, names)
            altered = mutation.damage(bench)
            if altered is not None and mutation.resealed:
                bench.reseal()
            overlay = bench.overlay()
            report = judge(overlay, families, clean, overlay.changed, overlay.moved, recall=recall)
            left = None
            if number == 0:
                hidden = frozenset([row.code]) if row.code.startswith(STRUCTURE) else frozenset()
                fewer = without(families, row.code)
                ablated = judge(overlay, fewer, clean, overlay.changed, overlay.moved, hidden, recall=recall)
                assert not ablated.crashes, (row.code, ablated.crashes)
                left = ablated.codes()
            made.append(
                Kill(row.code, mutation.name, mutation.resealed, altered, report.findings, report.crashes, left)
            )
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


def golden() -> str:
    """For every code the line that its first mutation prints."""
    lines = []
    for name in NAMES:
        lines.append(f"# {name}")
        seen = set()
        for one in kills(name):
            if one.code not in seen:
                seen.add(one.code)
                first = next(finding for finding in one.findings if finding.code == one.code)
                lines += [f"## {one.mutation}", str(first)]
    return re.sub(r"(?i)\b[0-9a-f]{40,64}\b", "<sha256>", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    GOLDEN.write_text(golden())
