"""The table of what is altered and which tests must see it; a new row is all that a new module needs."""

from __future__ import annotations

from typing import NamedTuple

KILLS = "tests/verifiers/test_kill_matrix.py::test_every_mutation_is_killed_by_the_code_it_is_aimed_at"
JUDGES = "tests/verifiers/test_two_judges.py::test_boundaries_hold_exactly"
LIFECYCLE = "tests/verifiers/test_lifecycle.py"
CHECKING = "verifiers/checking/"
RULES = CHECKING + "rules/"


def _edges(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/verifiers/test_edges{'_' * bool(name)}{name}.py" for name in names)


class Target(NamedTuple):
    """One module: its path, the tests in the order in which they are tried, and how much more often it is drawn."""

    path: str
    tests: tuple[str, ...]
    weight: float = 1.0


TARGETS = (
    Target(CHECKING + "arithmetic.py", ("tests/verifiers/test_arithmetic.py", JUDGES, KILLS), 2),
    Target(CHECKING + "plan.py", (*_edges("comparison"), JUDGES, KILLS)),
    Target(CHECKING + "reading.py", (*_edges(""), "tests/verifiers/test_reading.py", KILLS), 1.5),
    Target(CHECKING + "check.py", (*_edges("check"), KILLS)),
    Target(CHECKING + "package.py", (*_edges("package"), KILLS)),
    Target(CHECKING + "listing.py", (*_edges("listing"), KILLS)),
    Target(CHECKING + "sums.py", (*_edges("sums"), KILLS)),
    Target(CHECKING + "streams.py", (*_edges("streams", "answers"), KILLS)),
    *(Target(f"{CHECKING}{name}.py", _edges("command")) for name in ("command", "control")),
    Target(CHECKING + "later.py", ("tests/verifiers/test_later.py", KILLS)),
    Target(CHECKING + "damage.py", (*_edges("command", "comparison"), KILLS)),
    Target(CHECKING + "shape.py", (*_edges("shape"), "tests/verifiers/test_proof.py", KILLS)),
    Target(CHECKING + "proof.py", ("tests/verifiers/test_proof.py",)),
    Target(RULES + "decision.py", (JUDGES, *_edges("comparison"), KILLS), 2),
    Target(RULES + "answers.py", (*_edges("answers", ""), KILLS)),
    *(
        Target(f"{RULES}{name}.py", (*_edges("comparison", *more), KILLS))
        for name, *more in (
            ("agreement",),
            ("clocks", "clocks", "attempts"),
            ("comparison",),
            ("launches", "inputs"),
            ("memory", "clocks", "incomplete"),
            ("protocol",),
            ("pairing", "incomplete"),
            ("receipts", "incomplete"),
            ("samples",),
            ("runs",),
            ("settings",),
            ("settings_clocks",),
            ("settings_index",),
            ("settings_receipts",),
            ("settings_samples",),
            ("verdict", "inputs"),
        )
    ),
    Target(RULES + "index.py", (*_edges("attempts", "incomplete", "comparison"), KILLS)),
    *(
        Target(f"{RULES}{name}.py", (*_edges("incomplete"), KILLS))
        for name in ("aborted", "incomplete", "unfinished", "unfinished_samples")
    ),
    Target(RULES + "instants.py", (*_edges("attempts", "incomplete", "comparison"), KILLS)),
    *(Target(f"{RULES}{name}.py", (*_edges("attempts"), KILLS)) for name in ("attempt_agreement", "converged")),
    *(
        Target(f"{RULES}{name}.py", (*_edges("campaign"), KILLS))
        for name in ("checksums", "manifest", "matrix", "prefill_decode", "structure", "tree")
    ),
    Target(RULES + "identities.py", (*_edges("inputs", ""), KILLS)),
    *(
        Target(f"{RULES}lifecycle_{name}.py", (*_edges("lifecycle", "schema"), LIFECYCLE), 0.4)
        for name in (
            "command",
            "coresidency",
            "crash",
            "derive",
            "events",
            "figures",
            "index",
            "lora",
            "raw",
            "record",
            "shape",
            "worth",
        )
    ),
    *(
        Target(f"{RULES}lifecycle_{name}.py", ("tests/verifiers/test_lifecycle_selection.py", LIFECYCLE), 0.4)
        for name in ("selection", "selection_events")
    ),
    Target("evidence/build/decide.py", ("tests/build/test_edges_decide.py", "tests/build/test_decide.py", JUDGES), 2),
    Target("evidence/build/matrix.py", ("tests/build/test_edges_decide.py", "tests/build/test_converged.py"), 2),
    Target("evidence/build/classify.py", ("tests/build/test_classify.py", "tests/build/test_edges_classify.py"), 2),
    Target("evidence/build/incomplete.py", ("tests/build/test_edges_fates.py", "tests/build/test_incomplete.py"), 1.5),
)
# Constants that say how much is remembered or read at once: no verdict hangs on them, nor on what is compared with them.
SIZES = frozenset(("_AT_HAND", "_CHUNK", "_KNOWN", "MOST", "SHORT"))
