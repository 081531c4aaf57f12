"""The runner of mutants: the sample is fixed, a wrong line is seen, a survivor is told, and the checkout is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.targets import TARGETS, Target

pytest.importorskip("cosmic_ray", reason="cosmic-ray comes with the extra `dev`")

from mutants import trial
from mutants.__main__ import reasons
from mutants.sampling import draw

ROOT = Path(__file__).resolve().parents[1]
SOURCE = """
def least(values: list[int], most: int = 8) -> int:
    \"\"\"The least of the values.\"\"\"
    kept = [value for value in values if value < most]
    return min(kept) - 0


def damage(bench) -> str:
    return "never altered" if 1 < 2 else ""


def _forged(row):
    return 3 + 4
"""
TEST = """
from checking.rules.small import least

def test_least():
    assert least([9, 3, 4]) == 3
"""


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, Target]:
    """A tree with one module of rules and one test of it, blind at the limit."""
    root = tmp_path / "tree"
    for name, text in {
        "verifiers/checking/__init__.py": "",
        "verifiers/checking/rules/__init__.py": "",
        "verifiers/checking/rules/small.py": SOURCE,
        "tests/test_small.py": TEST,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = [".", "verifiers"]\n',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root, Target("verifiers/checking/rules/small.py", ("tests/test_small.py",))


def test_every_row_of_the_table_is_there() -> None:
    for target in TARGETS:
        assert (ROOT / target.path).is_file()
        for test in target.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), test
            assert not name or f"def {name}(" in (ROOT / path).read_text(), test


def test_every_survivor_has_a_reason_and_its_line_still_stands() -> None:
    for (path, _, before, after), reason in reasons().items():
        assert before != after
        assert len(reason) > 10
        assert before in (ROOT / path).read_text(), (path, before)


def test_the_sample_is_fixed_and_a_small_one_begins_a_large_one() -> None:
    targets = TARGETS[:1]
    large = [mutant for mutant, _, _ in draw(ROOT, 12, targets=targets)]
    assert large[:5] == [mutant for mutant, _, _ in draw(ROOT, 5, targets=targets)]
    assert large != [mutant for mutant, _, _ in draw(ROOT, 12, seed=1, targets=targets)]


def test_only_what_judges_is_altered(project: tuple[Path, Target]) -> None:
    root, target = project
    drawn = [mutant for mutant, _, _ in draw(root, 100, targets=(target,))]
    assert {mutant.function for mutant in drawn} == {"least"}
    assert drawn


def test_a_seen_mutant_is_killed_and_a_blind_spot_is_told(project: tuple[Path, Target], tmp_path: Path) -> None:
    root, target = project
    wrong = next(row for row in draw(root, 100, targets=(target,)) if row[0].after.endswith(("- 1", "- -1")))
    blind = next(row for row in draw(root, 100, targets=(target,)) if "most: int = 8" in row[0].before)
    copies = trial.Copies(root, tmp_path / "copies", 1)
    outcomes = {outcome.mutant: outcome for outcome in copies.try_all([(None, target, None), wrong, blind], 30)}
    assert outcomes[None].verdict == "survived", outcomes[None].said
    assert outcomes[wrong[0]].verdict == "killed", outcomes[wrong[0]].said
    assert outcomes[wrong[0]].tests == ("tests/test_small.py::test_least",)
    assert outcomes[blind[0]].verdict == "survived"
    assert outcomes[blind[0]].tests == ()
    assert (root / target.path).read_text() == SOURCE
    # The copy is whole again.
    (again,) = copies.try_all([(None, target, None)], 30)
    assert again.verdict == "survived"


def test_a_mutant_that_never_ends_is_told_with_the_test_that_it_was_in(
    project: tuple[Path, Target], tmp_path: Path
) -> None:
    root, target = project
    mutant = next(row for row in draw(root, 1, targets=(target,)))[0]
    endless = SOURCE.replace("    kept =", "    while True:\n        pass\n    kept =")
    (outcome,) = trial.Copies(root, tmp_path / "copies", 1).try_all([(mutant, target, endless)], 1)
    assert (outcome.verdict, outcome.said) == ("timed out", "in tests/test_small.py::test_least")


def test_a_module_that_cannot_be_imported_kills_by_the_tests_that_read_it(
    project: tuple[Path, Target], tmp_path: Path
) -> None:
    root, target = project
    mutant = next(row for row in draw(root, 1, targets=(target,)))[0]
    (outcome,) = trial.Copies(root, tmp_path / "copies", 1).try_all([(mutant, target, "1 / 0\n")], 30)
    assert (outcome.verdict, outcome.tests) == ("killed", ("tests/test_small.py",))


def test_what_changes_no_verdict_by_its_construction_is_not_altered(tmp_path: Path) -> None:
    path = tmp_path / "evidence/build/small.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from dataclasses import dataclass\n_CHUNK = 1 << 20\n\n\n@dataclass(slots=True)\nclass One:\n    pass\n\n\n"
        "@lru_cache(maxsize=8)\ndef told(data, shown):\n    if len(data) > _CHUNK:\n        return shown(data, 40)\n    return len(data) + 1\n"
    )
    drawn = [mutant.before for mutant, _, _ in draw(tmp_path, 100, targets=(Target("evidence/build/small.py", ()),))]
    assert set(drawn) == {"@dataclass(slots=True)", "return len(data) + 1"}
    assert drawn.count("@dataclass(slots=True)") == 1  # the decorator itself may go
