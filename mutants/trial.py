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
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mutants.targets import Target

if TYPE_CHECKING:
    from mutants.sampling import Mutant

COPIED = ("archive", "benchmarks", "campaigns", "docs", "evidence", "schemas", "tests", "verifiers")
FILES = ("SHA256SUMS", "pyproject.toml", "hatch_build.py", "Makefile", "README.md")
LEFT = shutil.ignore_patterns("__pycache__")
PROJECT = ("benchmarks", "checking", "evidence", "tests")
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


LOG, NOTE = "trial.log", "trial.test"
PATIENCE = 10  # the limit is processor time; a busy machine may take so many times as long


class Outcome(NamedTuple):
    """What became of a mutant: killed, survived or timed out (which is killed), by which tests, and what was said last.

    Without a mutant it is the unaltered tree that was tried.
    """

    mutant: Mutant | None
    verdict: str
    seconds: float
    said: str
    tests: tuple[str, ...]


class Nearest:
    """A plugin of pytest: the rows whose check stands in the altered module come first; the test at work is noted."""

    def __init__(self, path: str, note: Path) -> None:
        self.module = path.removeprefix("verifiers/").removesuffix(".py").replace("/", ".")
        self.note = note

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Of a trial that ends here the reader knows the test."""
        self.note.write_text(nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """A module that cannot be read fails before any of its tests."""
        if report.failed:
            self.note.write_text(report.nodeid)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort, keeping the order otherwise: rows of this module, tests that are no rows, rows of its verifiers, others."""

        def parameters(item: Any) -> dict[str, Any]:
            return item.callspec.params if hasattr(item, "callspec") else {}

        rows = [told for told in map(parameters, items) if "row" in told]
        mine = {told["name"] for told in rows if told["row"].hold.__module__ == self.module}

        def distance(item: Any) -> int:
            told = parameters(item)
            if "row" not in told:
                return 1
            if told["row"].hold.__module__ == self.module:
                return 0
            return 2 if told["name"] in mine else 3

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
    log = os.open(slot / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name in [one for one in sys.modules if one.split(".")[0] in PROJECT]:
        del sys.modules[name]
    sys.path[:] = [str(slot), *[one for one in sys.path if one not in ("", str(Path.cwd()))]]
    os.chdir(slot)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(slot), "--tb=line", *target.tests]
    if any("hypothesis" in one for one in sys.modules):
        arguments.append("--hypothesis-seed=0")
    arguments = [one for one in arguments if _there(slot, one)]
    return int(pytest.main(arguments, plugins=[Nearest(target.path, slot / NOTE)]))


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
    (slot / NOTE).unlink(missing_ok=True)
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
    code: int | None = None
    if pid != 0:
        code = os.waitstatus_to_exitcode(status)
    elif seconds < PATIENCE * one.limit:
        return None
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        os.waitpid(one.pid, 0)
    said = (one.slot / LOG).read_text(errors="replace").strip().split("\n")
    if code == pytest.ExitCode.OK:
        return Outcome(one.mutant, "survived", seconds, said[-1], ())
    noted = one.slot / NOTE
    tests = (noted.read_text(),) if noted.exists() else one.target.tests
    if code in (None, -signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(one.mutant, "timed out", seconds, "in " + tests[0], tests)
    failed = [line for line in said if line.startswith(("FAILED", "ERROR", "E  "))]
    return Outcome(one.mutant, "killed", seconds, (failed or said)[-1][:200], tests)


class Copies:
    """As many copies of the tree as there are jobs; what is altered in one is put back before it is used again."""

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        load_libraries()
        self.pristine = copy_tree(root, folder / "pristine")
        for name in ("benchmarks", "evidence", "verifiers", "tests"):
            compileall.compile_dir(self.pristine / name, quiet=2)
        self.free = [copy_tree(self.pristine, folder / f"copy-{number}", True) for number in range(max(1, jobs))]

    def try_all(self, sample: Iterable[tuple[Mutant | None, Target, str | None]], limit: float) -> Iterator[Outcome]:
        """Try mutants; outcomes come as they end."""
        source, running = iter(sample), list[Running]()
        following = next(source, None)
        while following or running:
            while following and self.free:
                mutant, target, altered = following
                running.append(begin(self.free.pop(), target, mutant, altered, limit))
                following = next(source, None)
            time.sleep(0.02)
            for one in list(running):
                outcome = ended(one)
                if outcome is not None:
                    running.remove(one)
                    if one.mutant is not None:
                        shutil.copy2(self.pristine / one.target.path, one.slot / one.target.path)
                    self.free.append(one.slot)
                    yield outcome
