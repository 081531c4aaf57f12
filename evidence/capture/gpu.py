"""Memory snapshots: what a device or a process holds at one moment, and how that was read.

`take_snapshot` gives `source`, `method` and one row a device, as snapshots.json holds them. Only the source `nvml`
speaks of a GPU. What cannot be read is null with a reason, never 0. UUIDs, PCI addresses and host names do not appear:
devices have aliases.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evidence.capture.answer import parse
from evidence.capture.exchange import ExchangeFailed, exchange
from evidence.capture.processes import find_group
from evidence.errors import EvidenceError

SOURCES = ("nvml", "process-rss", "synthetic", "none")


class Holder(Protocol):
    """An engine as far as its memory goes."""

    @property
    def worker(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def pid(self) -> int | None: ...


@dataclass(frozen=True)
class GpuReading:
    """One GPU by NVML. `processes` is process id -> bytes, None where the driver does not say how many."""

    index: str
    used: int | None
    total: int | None
    mig: bool = False
    processes: Mapping[int, int | None] = field(default_factory=dict)
    reason: str | None = None


async def take_snapshot(
    source: str, engines: Sequence[Holder], *, read_gpus: Callable[[Sequence[str]], list[GpuReading]] | None = None
) -> dict[str, Any]:
    """`{source, method, devices: [{device, worker, usedBytes, totalBytes, reason}]}` for the workers' devices in order.

    The device of the n-th engine is called `device-n`. `read_gpus` stands in for the driver in tests.
    """
    if source not in SOURCES:
        raise EvidenceError(f"unknown snapshot source {source!r}", "expected one of " + ", ".join(SOURCES))
    aliases = [f"device-{place}" for place in range(1, len(engines) + 1)]
    if source == "nvml":
        readings = await asyncio.to_thread(read_gpus or read_nvml, [engine.device for engine in engines])
        rows = [_row_of_gpu(reading) for reading in readings]
        method = _describe_gpus(engines, readings, aliases)
    elif source == "process-rss":
        sums = [await asyncio.to_thread(sum_group, engine.pid) for engine in engines]
        rows = [(used, None, reason) for used, _, reason in sums]
        kinds = sorted({kind for _, kind, _ in sums if kind})
        method = (
            f"resident memory of the engine's process group and its descendants, {' and '.join(kinds) or 'not readable'}"
            " summed from /proc; no device memory, no total"
        )
    elif source == "synthetic":
        rows = [await _ask_synthetic(engine.url) for engine in engines]
        method = "the synthetic engine's own figure, computed from its settings; no device exists"
    else:
        rows = [(None, None, "the campaign takes no snapshot")] * len(engines)
        method = "none"
    devices = [
        {"device": alias, "worker": engine.worker, "usedBytes": used, "totalBytes": total, "reason": reason}
        for alias, engine, (used, total, reason) in zip(aliases, engines, rows, strict=True)
    ]
    return {"source": source, "method": method, "devices": devices}


Row = tuple[int | None, int | None, str | None]


def _row_of_gpu(reading: GpuReading) -> Row:
    return reading.used, reading.total, reading.reason


def _describe_gpus(engines: Sequence[Holder], readings: Sequence[GpuReading], aliases: Sequence[str]) -> str:
    """The method, with what the driver attributes to each engine's own processes."""
    parts = ["NVML memory in use on the whole device"]
    for engine, reading, alias in zip(engines, readings, aliases, strict=True):
        if reading.mig:
            parts.append(f"{alias} is a MIG device")
        used, reason = attribute_to_group(engine.pid, reading.processes)
        if used is not None:
            parts.append(f"{alias}: {used} bytes of it held by the engine's processes")
        else:
            parts.append(f"{alias}: the engine's part unknown ({reason})")
    return "; ".join(parts)


def attribute_to_group(leader: int | None, processes: Mapping[int, int | None]) -> tuple[int | None, str | None]:
    """Bytes that the driver says the group of `leader` holds, or None and why.

    In a container the driver may tell process ids of the host: then nothing matches, and nothing is known; it is not 0.
    """
    if leader is None:
        return None, "the runner did not start the engine"
    if not processes:
        return None, "the driver lists no process"
    held = [processes[pid] for pid in find_group(leader) if pid in processes]
    if not held:
        return None, "the driver's process ids match none of the engine's: another process namespace"
    known = [value for value in held if value is not None]
    if len(known) < len(held):
        return None, "the driver does not say how much a process holds"
    return sum(known), None


def read_nvml(indices: Sequence[str], nvml: Any = None) -> list[GpuReading]:
    """Read GPUs by index, UUID, or MIG UUID. A driver that is missing or refuses gives readings with a reason.

    `nvml` stands in for the module pynvml: a recorder, or a replay of what one recorded.
    """
    if nvml is None:
        import pynvml as nvml  # type: ignore[import-untyped,no-redef]
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as problem:
        return [GpuReading(index, None, None, reason=f"NVML: {problem}") for index in indices]
    try:
        return [_read_one(nvml, index) for index in indices]
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _read_one(nvml: Any, index: str) -> GpuReading:
    try:
        handle = (
            nvml.nvmlDeviceGetHandleByIndex(int(index)) if index.isdigit() else nvml.nvmlDeviceGetHandleByUUID(index)
        )
        mig = False
        with contextlib.suppress(nvml.NVMLError, AttributeError):
            mig = bool(nvml.nvmlDeviceIsMigDeviceHandle(handle))
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as problem:
        return GpuReading(index, None, None, reason=f"NVML: {problem}")
    processes: dict[int, int | None] = {}
    for list_processes in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        with contextlib.suppress(nvml.NVMLError):
            for entry in list_processes(handle):
                known = processes.get(entry.pid)
                held = entry.usedGpuMemory
                processes[entry.pid] = held if known is None else max(known, held or 0)
    return GpuReading(index, int(memory.used), int(memory.total), mig, processes)


def sum_group(leader: int | None, proc: Path = Path("/proc")) -> tuple[int | None, str | None, str | None]:
    """(bytes, what was summed, reason) over the group that `leader` leads.

    PSS counts a page that n processes share as one n-th in each, so that the sum counts it once; where the kernel does
    not tell it for every process, RSS is summed, which counts shared pages in each.
    """
    if leader is None:
        return None, None, "the runner did not start the engine"
    members = find_group(leader)
    if not members:
        return None, None, "no process of the engine is alive"
    pss = [_read_kilobytes(proc / str(pid) / "smaps_rollup", "Pss:") for pid in members]
    if all(value is not None for value in pss):
        return sum(value for value in pss if value is not None) * 1024, "PSS", None
    rss = [_read_kilobytes(proc / str(pid) / "status", "VmRSS:") for pid in members]
    if all(value is not None for value in rss):
        return sum(value for value in rss if value is not None) * 1024, "RSS (shared pages in each)", None
    return None, None, "a process of the engine ended or hides its memory"


def _read_kilobytes(path: Path, label: str) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in path.read_text().splitlines():
            if line.startswith(label):
                return int(line.split()[1])
    return None


async def _ask_synthetic(url: str) -> Row:
    try:
        answer = await exchange(url + "/synthetic/memory", seconds=10)
        value = parse(answer.body)
        return int(value["usedBytes"]), int(value["totalBytes"]), None
    except (ExchangeFailed, ValueError, KeyError, TypeError) as problem:
        return None, None, f"/synthetic/memory did not tell: {problem}"
