"""The device whose memory the models share, as one total and one figure of free bytes.

`nvml`: what the driver says of one GPU, everybody's use of it included. `process-rss-against-budget`: on a machine
without a GPU the total is a configured budget, and used is the resident memory of the live engine processes and their
descendants, added up, and a ballast that exists as a number alone. What cannot be read is an error, never 0.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from evidence.capture.processes import find_group
from evidence.errors import EvidenceError
from evidence.supervisor.config import NVML, Config

PAGE = os.sysconf("SC_PAGE_SIZE")


class Device(Protocol):
    """Memory of one device."""

    source: str
    total_bytes: int
    name: str | None
    index: int | None

    def read_free(self) -> int:
        """Free bytes now."""


def read_resident(pids: Iterable[int]) -> int:
    """Resident bytes of processes, added up; one that has ended adds nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return total


class BudgetDevice:
    """A budget against the resident memory of process groups."""

    source = "process-rss-against-budget"
    name: str | None = None
    index: int | None = None

    def __init__(self, total_bytes: int, leaders: Callable[[], Iterable[int]]) -> None:
        self.total_bytes = total_bytes
        self.ballast_bytes = 0
        self._leaders = leaders

    def read_used(self) -> int:
        """Bytes that engine processes hold, without the ballast."""
        return read_resident({pid for leader in self._leaders() for pid in find_group(leader)})

    def read_free(self) -> int:
        return self.total_bytes - self.ballast_bytes - self.read_used()


class NvmlDevice:
    """One GPU by NVML."""

    source = NVML

    def __init__(self, index: int) -> None:
        self.index: int | None = index
        try:
            import pynvml  # type: ignore[import-untyped]

            pynvml.nvmlInit()
            self._nvml: Any = pynvml
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            name = pynvml.nvmlDeviceGetName(self._handle)
            self.name: str | None = name if isinstance(name, str) else name.decode("utf-8", "replace")
            self.total_bytes = int(pynvml.nvmlDeviceGetMemoryInfo(self._handle).total)
        except Exception as error:
            raise EvidenceError(
                f"device {index}: NVML gives nothing: {error}",
                f'without a GPU use source = "{BudgetDevice.source}"',
                code=4,
            ) from None

    def read_free(self) -> int:
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).free)


def open_device(config: Config, leaders: Callable[[], Iterable[int]]) -> Device:
    """The device of a configuration; `leaders` tells the process groups that run now."""
    if config.source == NVML:
        return NvmlDevice(config.index)
    assert config.budget_bytes is not None
    return BudgetDevice(config.budget_bytes, leaders)
