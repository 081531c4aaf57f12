"""The verifiers prove that they are not blind: every mutation killed, by its own check."""

from __future__ import annotations

import pytest
from checking.check import Check

from tests.verifiers.kill_matrix import (
    GOLDEN,
    NAMES,
    PAGE,
    STRUCTURE,
    ablated,
    also_seen,
    golden,
    golden_lines,
    kills_of,
    line_of,
    page,
    table,
    told_on_the_page,
    verifier,
)

ROWS = [(name, row) for name in NAMES for row in table(verifier(name).families)]


each_row = pytest.mark.parametrize(("name", "row"), ROWS, ids=[f"{name}:{row.code}" for name, row in ROWS])


@each_row
def test_every_mutation_is_killed_by_the_code_it_is_aimed_at(name: str, row: Check) -> None:
    for one in kills_of(name, row):
        assert one.altered is not None, one.mutation
        assert one.crashes == (), one.mutation
        assert line_of(one), (one.mutation, one.altered, sorted({finding.code for finding in one.findings}))
        for finding in one.findings:
            assert finding.path
            assert finding.found
            assert finding.expected
            assert "\n" not in str(finding)
    first = kills_of(name, row)[0]
    assert line_of(first) == golden_lines()[name, row.code, first.mutation]


@each_row
def test_without_its_check_a_mutation_survives_or_the_page_names_who_else_sees_it(name: str, row: Check) -> None:
    assert row.code not in ablated(name, row)
    assert also_seen(name, row) == told_on_the_page(name, row)


def test_at_least_120_mutations_and_60_coherent_forgeries() -> None:
    every = [one for _, row in ROWS for one in row.mutations]
    assert len(every) >= 120
    assert sum(one.resealed for one in every) >= 60
    names = [(name, one.name) for name, row in ROWS for one in row.mutations]
    assert len(set(names)) == len(names)


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


# What the two pages say of a row is held above, row by row; here the rest of them.
def test_checks_page_is_current() -> None:
    assert PAGE.read_text() == page(told_on_the_page), "run python -m tests.verifiers.kill_matrix"


def test_golden_lines_are_current() -> None:
    lines = golden_lines()
    assert GOLDEN.read_text() == golden(lambda name, row: lines[name, row.code, row.mutations[0].name])
