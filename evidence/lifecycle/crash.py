"""A crash of one engine beside a healthy one, one run.

The healthy pinned model is asked before, during and after; the owned engine process of the victim gets SIGKILL.
Detection is the first listing in which the victim is no longer loaded. Then a caller asks for the victim at once
(502 of the cooldown), waits the cooldown, and asks again, each time for at most `provisioning_limit_s`, until it
answers. The sampling during the crash goes on until one request that began after the recovery has ended.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass

from evidence.errors import EvidenceError
from evidence.lifecycle.events import EventLog
from evidence.lifecycle.target import Deadline, Target
from evidence.supervisor.fleet import kill_process


@dataclass(frozen=True)
class Crash:
    """The settings of a run. Durations are seconds. `cooldown_s` is what the target was configured with."""

    healthy_model: str
    victim_model: str
    cooldown_s: float
    retry_after_s: int
    pause_between_healthy_requests_s: float = 2.0
    requested_before_samples: int = 25
    during_phase_sample_limit: int = 50
    requested_after_samples: int = 25
    provisioning_limit_s: float = 30.0
    recovery_timeout_s: float = 300.0
    detection_limit_s: float = 30.0
    max_generated_tokens: int = 16
    harness_deadline_s: float = 1300.0

    def check(self) -> None:
        """Raise EvidenceError when the settings contradict each other."""
        if self.healthy_model == self.victim_model:
            raise EvidenceError(f"victim {self.victim_model!r}: expected another model than the healthy one")
        if self.recovery_timeout_s > self.harness_deadline_s:
            raise EvidenceError(
                f"recovery time-out {self.recovery_timeout_s} s: expected at most the deadline {self.harness_deadline_s} s"
            )


async def sample(settings: Crash, target: Target, phase: str, count: int, deadline: Deadline) -> None:
    """`count` requests to the healthy model, a pause after each but the last."""
    for number in range(count):
        deadline.left()
        await target.ask(settings.healthy_model, "healthy", phase=phase)
        if number < count - 1:
            await asyncio.sleep(settings.pause_between_healthy_requests_s)


async def sample_during(settings: Crash, target: Target, recovered: asyncio.Event) -> None:
    """Sample until one request that began after the recovery has ended, or the limit is reached."""
    for _ in range(settings.during_phase_sample_limit):
        last = recovered.is_set()
        await target.ask(settings.healthy_model, "healthy", phase="during")
        if last:
            return
        await asyncio.sleep(settings.pause_between_healthy_requests_s)


async def detect(settings: Crash, target: Target, log: EventLog) -> None:
    """Wait until the target no longer lists the victim as loaded. Raises EvidenceError (code 4) when it goes on to."""
    until = time.monotonic() + settings.detection_limit_s
    while time.monotonic() < until:
        listing = await target.read_listing()
        if listing.find(settings.victim_model).state != "loaded":
            log.write("crash_detected", how="listing")
            target.note_listing(listing, "detected")
            return
        await asyncio.sleep(0.05)
    raise EvidenceError(
        f"{settings.victim_model} was still listed as loaded {settings.detection_limit_s} s after SIGKILL", code=4
    )


async def recover(settings: Crash, target: Target, log: EventLog, recovered: asyncio.Event, deadline: Deadline) -> None:
    """Fresh requests for the victim until it answers."""
    until = time.monotonic() + settings.recovery_timeout_s
    while True:
        started = log.now()
        limit = deadline.left(min(settings.provisioning_limit_s, max(0.1, until - time.monotonic())))
        replies = await target.ask_until_served(settings.victim_model, "recovery", limit)
        log.write("recovery_request", started=round(started, 9), statuses=[reply.status for reply in replies])
        if replies[-1].good:
            log.write("recovered")
            recovered.set()
            return
        if time.monotonic() >= until:
            raise EvidenceError(
                f"{settings.victim_model} did not answer within {settings.recovery_timeout_s} s after the crash", code=4
            )
        if replies[-1].status == 502:
            await asyncio.sleep(settings.cooldown_s)
        elif replies[-1].status != 503:
            await asyncio.sleep(0.2)


async def run_crash(settings: Crash, target: Target, log: EventLog) -> None:
    """Carry the run out; every outcome is in the log. Raises EvidenceError (code 4) when it cannot go on."""
    settings.check()
    deadline = Deadline(settings.harness_deadline_s)
    log.write("run-started", protocol="crash", format=1, target=target.name, settings=asdict(settings))
    for model in (settings.victim_model, settings.healthy_model):
        replies = await target.ask_until_served(model, "load", deadline.left(settings.recovery_timeout_s))
        if not replies[-1].good:
            raise EvidenceError(f"{model} gave no answer before the crash: status {replies[-1].status}", code=4)
    listing = await target.list("before")
    victim = listing.find(settings.victim_model)
    if victim.pid is None or victim.started_ticks is None:
        raise EvidenceError(
            f"the target tells no process of {settings.victim_model}", "crash needs a target that does", code=4
        )
    await sample(settings, target, "before", settings.requested_before_samples, deadline)
    recovered, stop = asyncio.Event(), asyncio.Event()
    watching = asyncio.create_task(target.watch(stop, 0.05))
    sampling: asyncio.Task[None] | None = None
    try:
        log.write("crash", pid=victim.pid, started_ticks=victim.started_ticks, signal=9)
        if not kill_process(victim.pid, victim.started_ticks):
            raise EvidenceError(f"process {victim.pid} is no longer the victim's", "nothing was killed", code=4)
        sampling = asyncio.create_task(sample_during(settings, target, recovered))
        await detect(settings, target, log)
        await recover(settings, target, log, recovered, deadline)
        await sampling
    finally:
        stop.set()
        if sampling is not None:
            sampling.cancel()
        await asyncio.gather(watching, *([sampling] if sampling else []), return_exceptions=True)
    await sample(settings, target, "after", settings.requested_after_samples, deadline)
    await target.list("after")
    await target.read_account()
    log.write("run-ended", complete=True)
