"""Packs runs side by side: each in a tree of its own, put together in the order of the runs.

Reading, hashing, classifying and searching ten thousand bodies is the greater part of a build, and no run needs another.
The result is the same with one process and with many.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evidence import records
from evidence.build import arms, comparisons, converged, incomplete
from evidence.build.comparisons import Settled
from evidence.build.converged import Packed
from evidence.build.privacy import Machine, Scanner
from evidence.build.runs import Json, Run
from evidence.build.tree import Tree
from evidence.campaign import Campaign
from evidence.errors import EvidenceError

LOG = logging.getLogger("evidence")
FEWEST_RUNS = 4
MOST_PROCESSES = 8
Result = Packed | Settled | records.IncompleteEntry | None


class Task(NamedTuple):
    """One run and how it is to be packed: `folder` is the id of a complete comparison, None for everything else."""

    run: Run
    folder: str | None = None
    requalified: bool = False


@dataclass
class Outcome:
    """What packing one run gave. `refusal` is the error that ended it: message, hint, exit code."""

    run: Run
    result: Result
    tree: Tree
    engines: dict[str, Json] = field(default_factory=dict)
    refusal: tuple[str, str, int] | None = None


@dataclass
class Packer:
    """Packs `runs` runs into `tree`, with as many processes as there are processors, begun once for all of them."""

    campaign: Campaign
    tree: Tree
    runs: int
    _pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Packer:
        processes = min(os.cpu_count() or 1, MOST_PROCESSES, self.runs)
        # A forked process has everything imported; where there is no fork, one process does the work.
        if processes > 1 and self.runs >= FEWEST_RUNS and "fork" in multiprocessing.get_all_start_methods():
            self._pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _begin, self._common())
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _common(self) -> tuple[Campaign, Machine, Path]:
        return self.campaign, self.tree.scanner.machine, self.tree.staging

    def pack(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Begin with the tasks; give the outcome of each in their order, absorbed into the tree. Raises what ended a task."""
        if self._pool is None:
            return (self._absorb(_pack(*self._common(), task)) for task in tasks)
        return self._collect(deque([self._pool.submit(_work, task) for task in tasks]))

    def _collect(self, waiting: deque[Future[Outcome]]) -> Iterator[Outcome]:
        while waiting:  # what was absorbed is let go of: a future holds on to its result
            yield self._absorb(waiting.popleft().result())

    def _absorb(self, outcome: Outcome) -> Outcome:
        if outcome.refusal is not None:
            message, hint, code = outcome.refusal
            raise EvidenceError(message, hint, code=code)
        self.tree.absorb(outcome.tree)
        outcome.tree = self.tree
        return outcome


_shared: list[Any] = []


def _begin(*common: Any) -> None:
    _shared[:] = common


def _work(task: Task) -> Outcome:
    return _pack(_shared[0], _shared[1], _shared[2], task)


def _pack(campaign: Campaign, machine: Machine, staging: Path, task: Task) -> Outcome:
    run = task.run
    tree = Tree(staging, Scanner(machine, campaign.privacy_exceptions))
    outcome = Outcome(run, None, tree)
    try:
        if run.kind == "attempt":
            outcome.result = converged.pack(run, campaign, tree)
        elif task.folder is None:
            outcome.result = incomplete.pack(run, campaign, tree)
        else:
            outcome.result = comparisons.pack(run, task.folder, campaign, tree, requalified=task.requalified)
        outcome.engines = {event["engine"]: event for event in arms.identity_of(run, campaign)}
    except EvidenceError as error:
        outcome.refusal = error.message, error.hint, error.code
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        LOG.info("%s", run.id, exc_info=True)
        said = f"nothing at {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        outcome.refusal = (
            f"{run.folder}: found an event or a receipt out of form ({said:.200}), expected what capture wrote",
            "the run folder was altered after the capture; it is no evidence any more",
            1,
        )
    finally:
        tree.scanner.settle()
        run.forget()
    return outcome
