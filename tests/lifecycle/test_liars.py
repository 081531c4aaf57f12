"""Every lie of a target is unmasked by the harness's audit, with its code; an honest target bears a record."""

import json
import os

import pytest

from evidence.lifecycle.audit import audit
from evidence.lifecycle.coresidency import CoResidency, run_co_residency
from evidence.lifecycle.crash import Crash, run_crash
from evidence.lifecycle.lora import Adapters, VllmEngine, run_lora
from evidence.lifecycle.target import SupervisorTarget
from tests.lifecycle.doubles import Supervisor, Vllm, carry_out

CO = CoResidency(
    models=("p", "a"), pinned_model="p", next_load_model="b", rounds=2, load_limit_s=3, harness_deadline_s=10
)
CRASH = Crash("p", "a", cooldown_s=0.15, retry_after_s=0, pause_between_healthy_requests_s=0.01, requested_before_samples=3, during_phase_sample_limit=200, requested_after_samples=3, provisioning_limit_s=2, recovery_timeout_s=2, detection_limit_s=0.5, harness_deadline_s=8)  # fmt: skip
ALIASES = ("pin", "a", "b", "c", "d")
LORA = Adapters("base", {name: f"/{name}" for name in ALIASES}, ("pin",), ("a", "b", "c", "d"), ("c", "d", "a", "b", "c", "d", "pin"), 3, {name: number for number, name in enumerate(ALIASES)}, request_timeout_s=2, harness_deadline_s=10)  # fmt: skip


def record(protocol, lie, folder):
    """Raw events of one run against a double with this lie (none with an empty one)."""

    async def run(log):
        if protocol == "lora":
            async with Vllm(lie) as double:
                await run_lora(LORA, VllmEngine(double.url, log, LORA, os.getpid()), log)
            return
        async with Supervisor(lie, cooldown=0.1) as double:
            target = SupervisorTarget(double.url, log, timeout=0.5)
            await (run_co_residency(CO, target, log) if protocol == "co-residency" else run_crash(CRASH, target, log))

    return carry_out(run, folder)


LIES = [
    ("co-residency", "unload keeps serving", "STILL_RUNNING"),
    ("co-residency", "memory freed late", "MEMORY_NOT_FREED"),
    ("co-residency", "memory 0", "MEMORY_NOT_READ"),
    ("co-residency", "list forgets the pin", "PIN_FORGOTTEN"),
    ("co-residency", "pin evicted", "PIN_LOST"),
    ("co-residency", "no eviction", "NOT_EVICTED"),
    ("co-residency", "evicted only after the load", "EVICTED_LATE"),
    ("co-residency", "evicted model keeps its process", "STILL_RUNNING"),
    ("co-residency", "response from the wrong model", "WRONG_MODEL"),
    ("co-residency", "503 without Retry-After", "RETRY_AFTER_MISSING"),
    ("crash", "health 200 while chat hangs", "ANSWER_MISSING"),
    ("crash", "hang after SIGKILL", "NOT_DETECTED"),
    ("crash", "process id reused", "PROCESS_ID_REUSED"),
    ("crash", "recovery by a second reload", "SECOND_RELOAD"),
    ("crash", "502 without Retry-After while it loads", "LOADING_NOT_TOLD"),
    ("crash", "502 with Retry-After", "COOLDOWN_RETRY_AFTER"),
    ("crash", "cooldown called permanent", "COOLDOWN_PERMANENT"),
    ("crash", "cooldown told as loading", "COOLDOWN_NOT_TOLD"),
    ("crash", "healthy engine restarted silently", "PROCESS_CHANGED"),
    ("crash", "empty answer", "ANSWER_EMPTY"),
    ("lora", "adapter silently answered by the base", "ADAPTER_NOT_APPLIED"),
    ("lora", "unload keeps serving the adapter", "EVICTED_STILL_SERVED"),
    ("lora", "unload forgets nothing", "STILL_LISTED"),
    ("lora", "residency above capacity", "CAPACITY_EXCEEDED"),
    ("lora", "list forgets the pinned adapter", "PIN_LOST"),
    ("lora", "undeclared adapter served", "UNDECLARED_SERVED"),
    ("lora", "base not restored", "BASE_NOT_RESTORED"),
    ("lora", "no probabilities", "PROBABILITIES_MISSING"),
    ("lora", "load fails", "LOAD_FAILED"),
]


@pytest.mark.parametrize("protocol", ["co-residency", "crash", "lora"])
def test_honest_target_has_no_fault(protocol, tmp_path):
    assert audit(record(protocol, "", tmp_path)) == []


@pytest.mark.parametrize(("protocol", "lie", "code"), LIES, ids=[lie for _, lie, _ in LIES])
def test_lie_is_unmasked(protocol, lie, code, tmp_path):
    found = audit(record(protocol, lie, tmp_path))
    assert code in {one for one, _ in found}, json.dumps(found, indent=1)
