"""Co-residency and eviction under pressure, one run.

Rounds: each model of the rounds is asked in turn, and after each response the target lists models, processes,
reservations and device memory. Pressure: the next model is loaded once and unloaded, a ballast takes device memory
until less is free than its reservation, then it is asked for again while the listing is watched. The pinned model is
asked first in each round, so that at the end it is the least recently used one: only its pin keeps it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass

from evidence.errors import EvidenceError
from evidence.lifecycle.ballast import Ballast, take_ballast
from evidence.lifecycle.events import EventLog
from evidence.lifecycle.target import Deadline, Listing, SupervisorTarget, Target


@dataclass(frozen=True)
class CoResidency:
    """The settings of a run. Durations are seconds; `pressure_share` is what stays free of the next reservation."""

    models: tuple[str, ...]
    pinned_model: str
    next_load_model: str
    rounds: int = 3
    max_generated_tokens: int = 32
    load_limit_s: float = 120.0
    harness_deadline_s: float = 600.0
    pressure_share: float = 0.9

    def check(self) -> None:
        """Raise EvidenceError when the settings contradict each other."""
        if len(self.models) < 2 or self.pinned_model not in self.models or self.next_load_model in self.models:
            raise EvidenceError(
                f"models {list(self.models)}, pinned {self.pinned_model!r}, next load {self.next_load_model!r}: "
                "expected at least two models, the pinned one among them and the next load not"
            )


async def run_co_residency(settings: CoResidency, target: Target, log: EventLog) -> None:
    """Carry the run out; every outcome is in the log. Raises EvidenceError (code 4) when it cannot go on."""
    settings.check()
    deadline = Deadline(settings.harness_deadline_s)
    log.write("run-started", protocol="co-residency", format=1, target=target.name, settings=asdict(settings))
    order = [settings.pinned_model, *(name for name in settings.models if name != settings.pinned_model)]
    for number in range(settings.rounds):
        for model in order:
            replies = await target.ask_until_served(model, "round", deadline.left(settings.load_limit_s), round=number)
            await target.list(f"round {number}")
            if not replies[-1].good:
                raise EvidenceError(
                    f"{model} gave no answer in round {number}: status {replies[-1].status}, {replies[-1].transport}",
                    code=4,
                )
    await press(settings, target, log, deadline)
    await target.read_account()
    log.write("run-ended", complete=True)


async def press(settings: CoResidency, target: Target, log: EventLog, deadline: Deadline) -> None:
    """Load and unload the next model, take the ballast, ask for the next model while watching."""
    name = settings.next_load_model
    await target.ask_until_served(name, "first-load", deadline.left(settings.load_limit_s))
    before = await target.list("next loaded")
    # the rounds' last model again, so that the order of use is that of the rounds
    await target.ask(next(model for model in reversed(settings.models) if model != settings.pinned_model), "touch")
    await target.steer("/admin/unload", model=name)
    after = await target.list("unloaded")
    target.note_process(before.find(name))
    reservation = before.find(name).reservation_bytes or after.find(name).reservation_bytes
    if reservation is None:
        raise EvidenceError(
            f"the target tells no reservation of {name}", "co-residency needs a target that does", code=4
        )
    stop = asyncio.Event()
    watching: asyncio.Task[None] | None = None
    ballast = await apply_ballast(settings, target, log, after, reservation)
    try:
        await target.list("ballast taken")
        watching = asyncio.create_task(target.watch(stop))
        replies = await target.ask_until_served(name, "pressure", deadline.left(settings.load_limit_s))
        served = await target.list("served")
        for model in set(after.resident()) - set(served.resident()):
            target.note_process(after.find(model))
        if not replies[-1].good:
            raise EvidenceError(
                f"{name} was not served under pressure: status {replies[-1].status}, {replies[-1].code}", code=4
            )
        await target.ask(settings.pinned_model, "pinned-after")
    finally:
        stop.set()
        if watching is not None:
            await asyncio.gather(watching, return_exceptions=True)
        await ballast.release()
    await target.list("ballast released")


async def apply_ballast(
    settings: CoResidency, target: Target, log: EventLog, seen: Listing, reservation: int
) -> Ballast:
    """Take device memory until less is free than the reservation."""
    if seen.free_bytes is None:
        raise EvidenceError(
            "the target tells no free memory of its device", "co-residency needs a target that does", code=4
        )
    aim = int(settings.pressure_share * reservation)
    wanted = seen.free_bytes - aim
    if wanted <= 0:
        raise EvidenceError(
            f"only {seen.free_bytes} bytes are free before the ballast, less than the reservation",
            "make the device's budget larger",
            code=4,
        )
    while True:
        budget = target if seen.source != "nvml" and isinstance(target, SupervisorTarget) else None
        ballast = await take_ballast(wanted, budget, seen.index or 0)
        log.write("ballast", bytes=wanted, method=ballast.method)
        free = (await target.read_listing()).free_bytes
        shortfall = aim - (free or 0)
        if shortfall <= aim // 8:
            return ballast
        # the ballast's process takes memory of its own (a CUDA context): take so much less, once the rest is back
        await ballast.release()
        await await_memory(target, seen.free_bytes - aim // 8)
        wanted -= shortfall
        if wanted <= 0:
            raise EvidenceError(f"a ballast leaves {free} bytes free, expected about {aim}", code=4)


async def await_memory(target: Target, least: int, seconds: float = 30.0) -> None:
    """Wait until `least` bytes are free, at most so long: a driver may free what a process held after its end."""
    until = time.monotonic() + seconds
    while ((await target.read_listing()).free_bytes or 0) < least and time.monotonic() < until:  # noqa: ASYNC110 - the driver tells nobody
        await asyncio.sleep(0.1)
