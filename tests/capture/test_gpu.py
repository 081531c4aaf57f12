"""A snapshot says what it read and how; what it could not read is null with a reason, never 0."""

import asyncio
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvml_replay import NVMLError, Recorder, Replay
from synthetic_server import serve

from evidence.capture.gpu import attribute_to_group, read_nvml, sum_group, take_snapshot
from evidence.errors import EvidenceError

RECORDED = json.loads((Path(__file__).parents[1] / "vectors/nvml/h200.json").read_text())


@dataclass(frozen=True)
class Holder:
    worker: str = "worker-1"
    device: str = "0"
    url: str = ""
    pid: int | None = None


@pytest.fixture
def child() -> Iterator[int]:
    """A process that holds 64 MiB, leader of its own group, with a child that holds 32 MiB."""
    inner = "x = bytearray(b'x') * (32 << 20); print('held', flush=True); import time; time.sleep(600)"
    outer = (
        "import subprocess, sys, time; x = bytearray(b'x') * (64 << 20); "
        f"subprocess.Popen([sys.executable, '-S', '-c', {inner!r}]); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-S", "-c", outer], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process.pid
    os.killpg(process.pid, 9)
    process.wait()


def snapshot(holder: Holder, calls: list[dict[str, Any]], pids: dict[int, int] | None = None) -> dict[str, Any]:
    replay = Replay(calls, pids)
    return asyncio.run(take_snapshot("nvml", [holder], read_gpus=lambda indices: read_nvml(indices, replay)))


def replaced(call: str, **more: Any) -> list[dict[str, Any]]:
    return [{"call": entry["call"], **more} if entry["call"] == call else entry for entry in RECORDED["calls"]]


def test_what_a_real_gpu_said(child: int) -> None:
    found = snapshot(Holder(pid=child), RECORDED["calls"], {RECORDED["childPid"]: child})
    assert found == RECORDED["snapshot"]
    assert found["devices"][0]["usedBytes"] == 2_367_553_536
    assert "1713373184 bytes of it held by the engine's processes" in found["method"]


def test_process_ids_of_another_namespace_are_unknown_not_zero(child: int) -> None:
    """sglang-omni#1685: the driver tells host ids, the container sees its own."""
    assert attribute_to_group(child, {4_000_000: 5}) == (
        None,
        "the driver's process ids match none of the engine's: another process namespace",
    )
    found = snapshot(Holder(pid=child), RECORDED["calls"], {RECORDED["childPid"]: 4_000_000})
    assert found["devices"][0]["usedBytes"] == 2_367_553_536  # the device's figure stands
    assert "engine's part unknown (the driver's process ids match none" in found["method"]
    assert " 0 bytes" not in found["method"]


def test_processes_are_matched_by_the_group(child: int) -> None:
    members = [child, *(int(word) for word in Path(f"/proc/{child}/task/{child}/children").read_text().split())]
    assert len(members) == 2
    assert attribute_to_group(child, {members[0]: 10, members[1]: 5, 1: 100}) == (15, None)
    assert attribute_to_group(child, {members[0]: 10, members[1]: None})[0] is None
    assert attribute_to_group(child, {}) == (None, "the driver lists no process")
    assert attribute_to_group(None, {1: 1}) == (None, "the runner did not start the engine")


def test_a_driver_that_is_missing_or_refuses_gives_null_with_a_reason() -> None:
    lost = [
        entry for entry in replaced("nvmlDeviceGetMemoryInfo", error="GPU is lost") if "Processes" not in entry["call"]
    ]
    for calls in ([{"call": "nvmlInit", "error": "Driver Not Loaded"}], lost):
        row = snapshot(Holder(), calls)["devices"][0]
        assert (row["usedBytes"], row["totalBytes"]) == (None, None)
        assert row["reason"].startswith("NVML: ")


def test_without_a_gpu_the_real_module_gives_a_reason() -> None:
    reading = read_nvml(["0"])[0]
    assert (reading.used is None) == (reading.reason is not None)


def test_a_mig_device_is_named_as_such() -> None:
    calls = replaced("nvmlDeviceIsMigDeviceHandle", answer=1)
    calls = [{**entry, "call": entry["call"].replace("ByIndex", "ByUUID")} for entry in calls]
    found = snapshot(Holder(device="MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"), calls)
    assert "device-1 is a MIG device" in found["method"]
    assert "c6d4f1ef" not in json.dumps(found)


def test_a_held_size_that_the_driver_hides_is_unknown(child: int) -> None:
    calls = replaced("nvmlDeviceGetComputeRunningProcesses", answer=[{"pid": child, "usedGpuMemory": None}])
    found = snapshot(Holder(pid=child), calls)
    assert "engine's part unknown (the driver does not say how much a process holds)" in found["method"]


def test_resident_memory_is_summed_over_the_group(child: int) -> None:
    used, kind, reason = sum_group(child)
    assert reason is None
    assert used is not None
    assert 96 << 20 < used < 160 << 20
    assert kind in ("PSS", "RSS (shared pages in each)")
    found = asyncio.run(take_snapshot("process-rss", [Holder(pid=child), Holder("worker-2", "1")]))
    first, second = found["devices"]
    assert (first["device"], second["device"]) == ("device-1", "device-2")
    assert first["usedBytes"] > 96 << 20
    assert first["totalBytes"] is None
    assert (second["usedBytes"], second["reason"]) == (None, "the runner did not start the engine")
    assert "PSS" in found["method"] or "RSS" in found["method"]
    assert "GPU" not in found["method"]


def test_where_pss_is_hidden_rss_is_summed_and_said(child: int, tmp_path: Path) -> None:
    for entry in [*Path(f"/proc/{child}/task/{child}/children").read_text().split(), str(child)]:
        (tmp_path / entry).mkdir()
        (tmp_path / entry / "status").write_text("Name:\tx\nVmRSS:\t    100 kB\n")
    assert sum_group(child, tmp_path) == (2 * 100 * 1024, "RSS (shared pages in each)", None)


def test_an_engine_that_is_gone_holds_unknown_memory() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    assert sum_group(process.pid) == (None, None, "no process of the engine is alive")


def test_the_synthetic_figure_says_that_no_device_exists() -> None:
    with serve("--sequence-cap", "2", "--memory-bytes", "1000000000000") as server:
        found = asyncio.run(take_snapshot("synthetic", [Holder(url=server.url)]))
    row = found["devices"][0]
    assert row["usedBytes"] == (2 << 30) + 2 * 4096 * 131072
    assert row["totalBytes"] == 1_000_000_000_000
    assert "no device exists" in found["method"]
    gone = asyncio.run(take_snapshot("synthetic", [Holder(url=server.url)]))["devices"][0]
    assert gone["usedBytes"] is None
    assert "/synthetic/memory did not tell" in gone["reason"]


def test_no_snapshot_is_null_with_a_reason() -> None:
    row = asyncio.run(take_snapshot("none", [Holder()]))["devices"][0]
    assert (row["usedBytes"], row["reason"]) == (None, "the campaign takes no snapshot")
    with pytest.raises(EvidenceError, match="unknown snapshot source 'rocm'"):
        asyncio.run(take_snapshot("rocm", []))


def test_the_recorder_keeps_what_it_passes_on() -> None:
    def fail(handle: Any) -> Any:
        raise NVMLError("not supported")

    memory = SimpleNamespace(total=3, free=2, used=1, version=7)
    real = SimpleNamespace(
        NVMLError=NVMLError, nvmlInit=lambda: None, nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: object(), nvmlDeviceIsMigDeviceHandle=lambda handle: ctypes.c_uint(0),
        nvmlDeviceGetMemoryInfo=lambda handle: memory, nvmlDeviceGetComputeRunningProcesses=fail,
        nvmlDeviceGetGraphicsRunningProcesses=lambda handle: [SimpleNamespace(pid=1, usedGpuMemory=5)],
    )  # fmt: skip
    recorder = Recorder(real)
    reading = read_nvml(["0"], recorder)
    assert read_nvml(["0"], Replay(json.loads(json.dumps(recorder.calls)))) == reading
    assert reading[0].processes == {1: 5}
    assert not reading[0].mig
