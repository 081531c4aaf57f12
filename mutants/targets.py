"""The table of what is altered and which tests must see it; a new row is all that a new module needs."""

from __future__ import annotations

from typing import NamedTuple

KILLS = "tests/verifiers/test_kill_matrix.py::test_every_mutation_is_killed_by_the_code_it_is_aimed_at"
EDGES = "tests/verifiers/test_edges.py"
JUDGES = "tests/verifiers/test_two_judges.py::test_boundaries_hold_exactly"
RULES = "verifiers/checking/rules/"


class Target(NamedTuple):
    """One module: its path, the tests in the order in which they are tried, and how much more often it is drawn."""

    path: str
    tests: tuple[str, ...]
    weight: float = 1.0


TARGETS = (
    Target("verifiers/checking/arithmetic.py", ("tests/verifiers/test_arithmetic.py", JUDGES, KILLS), 2),
    Target("verifiers/checking/reading.py", ("tests/verifiers/test_reading.py", EDGES, KILLS), 1.5),
    Target("verifiers/checking/check.py", (KILLS, "tests/verifiers/test_command.py")),
    Target("verifiers/checking/package.py", (KILLS, "tests/verifiers/test_command.py")),
    Target("verifiers/checking/shape.py", ("tests/verifiers/test_shapes.py", KILLS)),
    Target(RULES + "decision.py", (JUDGES, KILLS), 2),
    *(
        Target(RULES + name, (EDGES, KILLS))
        for name in (
            "answers.py",
            "attempt_agreement.py",
            "attempts.py",
            "checksums.py",
            "comparison.py",
            "converged.py",
            "identities.py",
            "incomplete.py",
            "manifest.py",
            "matrix.py",
            "prefill_decode.py",
            "protocol.py",
            "receipts.py",
            "samples.py",
            "settings.py",
            "settings_index.py",
            "structure.py",
            "tree.py",
            "verdict.py",
        )
    ),
    *(
        Target(f"{RULES}lifecycle_{name}.py", (EDGES, "tests/verifiers/test_lifecycle.py"), 0.4)
        for name in ("coresidency", "crash", "events", "figures", "index", "lora", "raw", "record", "shape")
    ),
    *(
        Target(
            f"{RULES}lifecycle_{name}.py",
            ("tests/verifiers/test_lifecycle_selection.py", "tests/verifiers/test_lifecycle.py"),
            0.4,
        )
        for name in ("selection", "selection_events")
    ),
    Target("evidence/build/decide.py", ("tests/build/test_decide.py", JUDGES, "tests/build/test_package.py"), 2),
    Target("evidence/build/classify.py", ("tests/build/test_classify.py",), 2),
    Target("evidence/build/matrix.py", ("tests/build/test_converged.py", "tests/build/test_package.py"), 2),
    Target("evidence/build/incomplete.py", ("tests/build/test_incomplete.py",), 1.5),
)
