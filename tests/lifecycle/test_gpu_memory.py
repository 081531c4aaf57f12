"""What a GPU run leans on, without a GPU: NVML and libcuda are doubles, the loop around them is the real one."""

import asyncio
import ctypes
import sys
from types import SimpleNamespace

import pytest

from evidence.errors import EvidenceError
from evidence.lifecycle import ballast, coresidency
from evidence.lifecycle.coresidency import CoResidency, apply_ballast, await_memory
from evidence.lifecycle.events import NAME, EventLog, parse_events
from evidence.lifecycle.target import Listing
from evidence.supervisor.config import parse_config
from evidence.supervisor.device import open_device

MB = 1 << 20
SETTINGS = CoResidency(models=("p", "a"), pinned_model="p", next_load_model="b")


class Cuda:
    """libcuda as far as a ballast calls it; `room` bytes can be had."""

    def __init__(self, room, failing=""):
        self.room, self.failing, self.calls = room, failing, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == self.failing:
                return 100
            if name == "cuMemAlloc_v2":
                self.room -= arguments[1].value
                return 2 if self.room < 0 else 0
            return 0

        return call


def test_ballast_is_taken_in_pieces_of_a_gib(monkeypatch):
    cuda = Cuda(room=3 << 30)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: cuda)
    ballast.allocate((2 << 30) + 5 * MB, 0)
    assert cuda.calls == ["cuInit", "cuDeviceGet", "cuCtxCreate_v2", *["cuMemAlloc_v2"] * 3]
    assert cuda.room == (1 << 30) - 5 * MB


@pytest.mark.parametrize(("cuda", "said"), [(Cuda(0, "cuInit"), "cuInit gave error 100"), (Cuda(MB), "cuMemAlloc_v2")])
def test_a_call_that_fails_is_named(cuda, said, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: cuda)
    with pytest.raises(EvidenceError, match=said):
        ballast.allocate(2 * MB, 0)


def test_no_driver_is_said(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: no such file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(EvidenceError, match="libcuda"):
        ballast.allocate(MB, 0)


class Gpu:
    """A target on a GPU: a ballast's process costs `context` bytes beyond its size, and its memory comes back late."""

    def __init__(self, free, context, late=2):
        self.free, self.context, self.late, self.taken, self.owed = free, context, late, 0, []
        self.asked = []

    async def read_listing(self):
        if self.owed and len(self.asked) >= self.owed[0][0]:
            self.owed.pop(0)
        self.asked.append(self.free_now())
        return Listing((), self.free_now(), 100_000 * MB, "nvml", "a GPU", 3)

    def free_now(self):
        return self.free - self.taken - sum(size for _, size in self.owed)

    async def take(self, size, budget, index):
        assert (budget, index) == (None, 3)
        assert size + self.context <= self.free_now(), "out of memory"
        self.taken += size + self.context
        gpu = self

        class Held:
            method = "cuMemAlloc"

            async def release(self):
                gpu.owed.append((len(gpu.asked) + gpu.late, size + gpu.context))
                gpu.taken -= size + gpu.context

        return Held()


def test_second_ballast_is_smaller_by_the_context_and_waits_for_the_first(monkeypatch, tmp_path):
    gpu, log = Gpu(free=90_000 * MB, context=500 * MB), EventLog(tmp_path / NAME)
    monkeypatch.setattr(coresidency, "take_ballast", gpu.take)

    async def run():
        log.write("run-started", format=1)
        return await apply_ballast(SETTINGS, gpu, log, await gpu.read_listing(), 2000 * MB)

    asyncio.run(run())
    log.close()
    taken = [event["bytes"] for event in parse_events((tmp_path / NAME).read_bytes()) if event["event"] == "ballast"]
    assert taken == [88_200 * MB, 87_700 * MB]
    assert gpu.free_now() == 1800 * MB
    assert max(gpu.asked[2:]) >= 90_000 * MB - 225 * MB


def test_too_little_room_for_a_ballast_is_said(monkeypatch, tmp_path):
    gpu, log = Gpu(free=1000 * MB, context=0), EventLog(tmp_path / NAME)
    monkeypatch.setattr(coresidency, "take_ballast", gpu.take)

    async def run():
        return await apply_ballast(SETTINGS, gpu, log, await gpu.read_listing(), 2000 * MB)

    with pytest.raises(EvidenceError, match="less than the reservation"):
        asyncio.run(run())
    log.close()


def test_waiting_for_memory_has_an_end():
    asyncio.run(await_memory(Gpu(free=MB, context=0), 2 * MB, seconds=0.0))


def test_the_device_of_a_gpu_tells_its_number_name_and_memory(monkeypatch):
    asked = []
    memory = SimpleNamespace(total=100 * MB, free=60 * MB)
    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: asked.append(index) or index,
        nvmlDeviceGetName=lambda handle: b"NVIDIA Double",
        nvmlDeviceGetMemoryInfo=lambda handle: memory,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    text = 'schema_version = 1\n[device]\nsource = "nvml"\nindex = 1\n[[model]]\nname = "a"\ncommand = ["x", "{port}"]\nreservation_bytes = 1\n'
    device = open_device(parse_config(text), list)
    assert (asked, device.index, device.name) == ([1], 1, "NVIDIA Double")
    assert (device.total_bytes, device.read_free(), device.source) == (100 * MB, 60 * MB, "nvml")


def test_without_nvml_the_hint_names_the_other_source(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    text = 'schema_version = 1\n[device]\nsource = "nvml"\n[[model]]\nname = "a"\ncommand = ["x", "{port}"]\nreservation_bytes = 1\n'
    with pytest.raises(EvidenceError) as caught:
        open_device(parse_config(text), list)
    assert "process-rss-against-budget" in caught.value.hint
