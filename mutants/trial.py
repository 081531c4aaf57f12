"""Runs the tests on mutants, each in a copy of the tree: the checkout is never altered.

The libraries that tests import are loaded once, here; a trial is a forked process that has them already, sees the
project of its copy alone and leaves with the verdict of pytest.
"""

from __future__ import annotations

import compileall
import contextlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mutants.sampling import Mutant
from mutants.targets import Target

COPIED = ("archive", "campaigns", "docs", "evidence", "fuzz", "schemas", "tests", "verifiers")
FILES = ("SHA256SUMS", "pyproject.toml", "hatch_build.py", "Makefile", "README.md")
LEFT = shutil.ignore_patterns("__pycache__")
PROJECT = ("checking", "evidence", "tests", "fuzz")
LIBRARIES = (
    "hypothesis",
    "jsonschema",
    "numpy",
    "orjson",
    "click",
    "httptools",
    "detect_secrets",
    "referencing",
)


PATIENCE = 10  # the limit is processor time; a busy machine may take so many times as long


class Outcome(NamedTuple):
    """What became of a mutant: killed, survived or timed out (which is killed), and what the tests said last."""

    mutant: Mutant | None
    verdict: str
    seconds: float
    said: str


class Nearest:
    """A plugin of pytest: the tests of the rows whose check stands in the altered module come first."""

    def __init__(self, path: str) -> None:
        self.module = path.removeprefix("verifiers/").removesuffix(".py").replace("/", ".")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort, keeping the order otherwise: rows of this module, rows of its verifiers, other rows."""

        def parameters(item: Any) -> dict[str, Any]:
            return item.callspec.params if hasattr(item, "callspec") else {}

        rows = [told for told in map(parameters, items) if "row" in told]
        mine = {told["name"] for told in rows if told["row"].hold.__module__ == self.module}

        def distance(item: Any) -> int:
            told = parameters(item)
            if "row" not in told or told["row"].hold.__module__ == self.module:
                return 0
            return 1 if told["name"] in mine else 2

        items.sort(key=distance)


def copy_tree(root: Path, slot: Path, compiled: bool = False) -> Path:
    """A copy of what the tests need, without or with its compiled modules."""
    slot.mkdir(parents=True)
    for name in COPIED:
        if (root / name).exists():
            shutil.copytree(root / name, slot / name, ignore=None if compiled else LEFT)
    for name in FILES:
        if (root / name).exists():
            shutil.copy2(root / name, slot / name)
    return slot


def load_libraries() -> None:
    """Import what the forked processes need and the project does not hold."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            __import__(name)


def _child(slot: Path, target: Target) -> int:
    log = os.open(slot / "trial.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(slot)
    for name in [one for one in sys.modules if one.split(".")[0] in PROJECT]:
        del sys.modules[name]
    sys.path[:] = [str(slot), *[one for one in sys.path if one not in ("", str(Path.cwd()))]]
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(slot), "--tb=line", *target.tests]
    if any("hypothesis" in one for one in sys.modules):
        arguments.append("--hypothesis-seed=0")
    return int(pytest.main([one for one in arguments if _there(slot, one)], plugins=[Nearest(target.path)]))


def _there(slot: Path, argument: str) -> bool:
    return not argument.startswith("tests/") or (slot / argument.split("::")[0]).exists()


class Running(NamedTuple):
    """One forked process at work in its copy."""

    pid: int
    slot: Path
    mutant: Mutant | None
    target: Target
    begun: float
    limit: float


def begin(slot: Path, target: Target, mutant: Mutant | None, altered: str | None, limit: float) -> Running:
    """Lay the altered module into the copy and fork the tests."""
    if altered is not None:
        (slot / target.path).write_text(altered)
        os.utime(slot / target.path, (1, 1))  # never the time that its compiled form was made from
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            code = _child(slot, target)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return Running(pid, slot, mutant, target, time.monotonic(), limit)


def ended(one: Running) -> Outcome | None:
    """The outcome of a process that has ended or overrun its limit; None while it runs."""
    pid, status = os.waitpid(one.pid, os.WNOHANG)
    seconds = time.monotonic() - one.begun
    if pid == 0:
        if seconds < PATIENCE * one.limit:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        os.waitpid(one.pid, 0)
        return Outcome(one.mutant, "timed out", seconds, f"over {PATIENCE * one.limit:.0f} s")
    said = (one.slot / "trial.log").read_text(errors="replace").strip().split("\n")
    code = os.waitstatus_to_exitcode(status)
    if code == pytest.ExitCode.OK:
        return Outcome(one.mutant, "survived", seconds, said[-1])
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(one.mutant, "timed out", seconds, "out of processor time")
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED, 70) and one.mutant is None:
        return Outcome(None, "broken", seconds, "\n".join(said[-5:]))
    failed = [line for line in said if line.startswith(("FAILED", "ERROR", "E  "))]
    return Outcome(one.mutant, "killed", seconds, (failed or said)[-1][:200])


def try_all(
    root: Path, folder: Path, sample: Iterable[tuple[Mutant | None, Target, str | None]], jobs: int, limit: float
) -> Iterator[Outcome]:
    """Try mutants in as many copies as there are jobs; outcomes come as they end."""
    load_libraries()
    pristine = copy_tree(root, folder / "pristine")
    for name in ("evidence", "verifiers", "tests"):
        compileall.compile_dir(pristine / name, quiet=2)
    free = [copy_tree(pristine, folder / f"copy-{number}", True) for number in range(max(1, jobs))]
    source, running = iter(sample), list[Running]()
    following = next(source, None)
    while following or running:
        while following and free:
            mutant, target, altered = following
            running.append(begin(free.pop(), target, mutant, altered, limit))
            following = next(source, None)
        time.sleep(0.02)
        for one in list(running):
            outcome = ended(one)
            if outcome is not None:
                running.remove(one)
                if one.mutant is not None:
                    shutil.copy2(pristine / one.target.path, one.slot / one.target.path)
                free.append(one.slot)
                yield outcome
