"""The verifiers prove that they are not blind: every mutation killed, by its own check."""

from __future__ import annotations

import pytest
from checking.check import Check

from tests.verifiers.kill_matrix import (
    GOLDEN,
    NAMES,
    PAGE,
    STRUCTURE,
    golden,
    golden_lines,
    kills,
    kills_of,
    line_of,
    page,
    table,
    verifier,
)

pytestmark = pytest.mark.xdist_group("kill-matrix")


ROWS = [(name, row) for name in NAMES for row in table(verifier(name).families)]


@pytest.mark.parametrize(("name", "row"), ROWS, ids=[f"{name}:{row.code}" for name, row in ROWS])
def test_every_mutation_is_killed_by_the_code_it_is_aimed_at(name: str, row: Check) -> None:
    for one in kills_of(name, row):
        assert one.altered is not None, one.mutation
        assert one.crashes == (), one.mutation
        assert line_of(one), (one.mutation, one.altered, sorted({finding.code for finding in one.findings}))
    first = kills_of(name, row)[0]
    assert line_of(first) == golden_lines()[name, row.code, first.mutation]


def test_at_least_120_mutations_and_60_coherent_forgeries() -> None:
    every = [one for name in NAMES for one in kills(name)]
    assert len(every) >= 120
    assert sum(one.resealed for one in every) >= 60
    names = [(name, one.mutation) for name in NAMES for one in kills(name)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", NAMES)
def test_without_its_check_a_mutation_survives_or_the_page_names_who_else_sees_it(name: str) -> None:
    text = PAGE.read_text()
    section = text[text.index(f"## {name}\n") :]
    for one in kills(name):
        if one.without is None:
            continue
        assert one.code not in one.without
        line = next(line for line in section.splitlines() if line.startswith(f"| `{one.code}` |"))
        told = line.rstrip(" |").rsplit("| ", 1)[1]
        assert told == (", ".join(sorted(one.without)) or "none")


@pytest.mark.parametrize("name", [*NAMES, "verify-lifecycle"])
def test_every_row_says_a_truth_and_has_a_mutation(name: str) -> None:
    for row in table(verifier(name).families):
        assert row.truth
        assert row.mutations
        if not row.code.startswith(STRUCTURE):
            assert row.hold is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_check_needs_only_checks_of_its_family_before_it(name: str) -> None:
    for family in verifier(name).families:
        before: list[str] = []
        for row in family.checks:
            assert set(row.needs) <= set(before), row.code
            before.append(row.code)


def test_checks_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.verifiers.kill_matrix"


def test_golden_lines_are_current() -> None:
    assert GOLDEN.read_text() == golden(), "run python -m tests.verifiers.kill_matrix"


@pytest.mark.parametrize("name", NAMES)
def test_every_line_says_file_found_and_expected(name: str) -> None:
    for one in kills(name):
        for finding in one.findings:
            assert finding.path
            assert finding.found
            assert finding.expected
            assert "\n" not in str(finding)
