"""The models of a supervisor and what becomes of them: load, eviction, crash, cooldown, reload.

States: unloaded -> loading -> loaded -> unloading -> unloaded; a crash or a failed load leads to cooldown, which ends
by itself. One admission at a time: a load needs its reservation free on the device and all reservations together
within the configured share of it; until both hold, the least recently used model that is loaded, not pinned and not
answering a request is evicted, its process awaited, and the device asked again. A load that cannot be admitted is
refused and leaves everything as it was, but for what was evicted for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.capture.load import fetch
from evidence.capture.processes import Process, choose_port, start_process
from evidence.errors import EvidenceError
from evidence.supervisor.config import Config, ModelSpec
from evidence.supervisor.device import Device, open_device

RELEASE_WAIT = 10.0  # seconds that a device gets to give back the memory of a process that has ended


class Refusal(Exception):
    """What a caller is told instead of an answer."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after: int | None = None, permanent: bool = False
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after, self.permanent = retry_after, permanent

    def body(self) -> bytes:
        error = {"code": self.code, "message": self.message, "permanent": self.permanent, "type": "supervisor_error"}
        return json.dumps({"error": error}).encode()


@dataclass
class Member:
    """One model and its process."""

    spec: ModelSpec
    state: str = "unloaded"
    process: Process | None = None
    port: int = 0
    started_ticks: int | None = None
    last_used: float = 0.0
    open_requests: int = 0
    loads: int = 0
    failed_at: float = -1e9
    refused_at: float = -1e9
    task: asyncio.Task[None] | None = None
    watch: asyncio.Task[None] | None = field(default=None, repr=False)


def read_started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: with it a process id names one process alone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


class Fleet:
    """All models of one supervisor."""

    def __init__(self, config: Config, logs: Path) -> None:
        self.config, self.logs = config, logs
        self.members = {spec.name: Member(spec) for spec in config.models}
        self.device: Device = open_device(config, self._leaders)
        self.events: list[dict[str, Any]] = []
        self._admission = asyncio.Lock()
        self.closing = False

    def _leaders(self) -> list[int]:
        return [m.process.pid for m in self.members.values() if m.process is not None and not m.process.ended.done()]

    def note(self, event: str, member: Member, **more: Any) -> None:
        """Append to the supervisor's own account, with the free bytes at that moment."""
        pid = member.process.pid if member.process else None
        row = {
            "t": time.monotonic(),
            "event": event,
            "model": member.spec.name,
            "pid": pid,
            "device_free_bytes": self.device.read_free(),
        }
        self.events.append({**row, **more})

    def find(self, name: Any) -> Member:
        """The member of a name. Raises Refusal 404."""
        member = self.members.get(name) if isinstance(name, str) else None
        if member is None:
            raise Refusal(404, "MODEL_NOT_FOUND", f"model {name!r} is not declared", permanent=True)
        return member

    def admit(self, name: Any) -> Member:
        """The loaded member that answers a request now; else its load begins or goes on, and the caller is told so."""
        member, now, wait = self.find(name), time.monotonic(), self.config.retry_after_seconds
        if member.state == "loaded":
            member.last_used = now
            return member
        if member.state == "cooldown" and now < member.failed_at + self.config.cooldown_seconds:
            raise Refusal(502, "MODEL_LOAD_FAILED", f"the engine of {name} failed, and is not tried again yet")
        if member.state in ("unloaded", "cooldown"):
            if now < member.refused_at + wait:
                raise Refusal(
                    503, "INSUFFICIENT_MEMORY", f"no memory for {name}: all else is pinned or busy", retry_after=wait
                )
            self.begin_load(member)
        raise Refusal(503, "MODEL_LOADING", f"{name} is {member.state}", retry_after=wait)

    def begin_load(self, member: Member) -> None:
        """Start to load a model that is not loaded."""
        member.state = "loading"
        member.task = asyncio.create_task(self._load(member))

    async def _load(self, member: Member) -> None:
        async with self._admission:
            try:
                admitted = await self._make_room(member)
            except Exception as error:
                self._fail(member, f"admission: {error}")
                return
            if not admitted:
                member.state, member.refused_at = "unloaded", time.monotonic()
                self.note("load_refused", member)
                return
            self.note("load_started", member)
            try:
                await self._start(member)
            except (
                EvidenceError,
                OSError,
                ValueError,
            ) as error:  # a log that cannot be written, say: tried again later
                await self._discard(member)
                self._fail(member, error.message if isinstance(error, EvidenceError) else str(error))
                return
            member.state, member.last_used = "loaded", time.monotonic()
            member.loads += 1
            self.note("loaded", member)

    def _fail(self, member: Member, reason: str) -> None:
        member.state, member.failed_at = "cooldown", time.monotonic()
        self.note("load_failed", member, reason=reason.splitlines()[0][:200] if reason else "")

    def _fits(self, member: Member) -> bool:
        held = sum(m.spec.reservation_bytes for m in self.members.values() if m.state in ("loaded", "unloading"))
        within = held + member.spec.reservation_bytes <= self.config.memory_fraction * self.device.total_bytes
        return within and self.device.read_free() >= member.spec.reservation_bytes

    async def _make_room(self, member: Member) -> bool:
        while not self._fits(member):
            idle = [
                m for m in self.members.values() if m.state == "loaded" and not m.spec.pinned and not m.open_requests
            ]
            if not idle:
                return False
            await self.unload(min(idle, key=lambda m: m.last_used), "evicted")
        return True

    async def _start(self, member: Member) -> None:
        spec, host = member.spec, self.config.host
        member.port = choose_port(host)
        places = {"{port}": str(member.port), "{host}": host, "{model}": spec.name, "{python}": sys.executable}
        words = []
        for word in spec.command:
            for name, value in places.items():
                word = word.replace(name, value)
            words.append(word)
        log = self.logs / f"{spec.name.replace('/', '_')}-{member.loads + 1}.log"
        member.process = await start_process(spec.name, words, log_path=log, environment=spec.environment)
        member.started_ticks = read_started(member.process.pid)
        member.watch = asyncio.create_task(self._watch(member, member.process))
        await self._await_token(member, member.process)

    async def _await_token(self, member: Member, process: Process) -> None:
        """Wait until the engine is healthy and has given a real answer. Raises EvidenceError."""
        base, spec = f"http://{self.config.host}:{member.port}", member.spec
        body = json.dumps(
            {"model": spec.name, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        ).encode()
        until = time.monotonic() + spec.ready_timeout_seconds
        while time.monotonic() < until:
            if process.ended.done():
                raise EvidenceError(f"{spec.name} {process.ended.result().describe()} before it was ready", code=4)
            if (await fetch(base + spec.ready_path, timeout_seconds=2.0)).status == 200:
                left = max(1.0, until - time.monotonic())
                given = await fetch(
                    base + "/v1/chat/completions", "POST", body, left, {"content-type": "application/json"}
                )
                if given.status == 200 and b"choices" in given.response_body:
                    return
                if given.status is not None and 400 <= given.status < 500:
                    raise EvidenceError(f"{spec.name} answered {given.status} to the first request", code=4)
            await asyncio.sleep(0.05)
        raise EvidenceError(f"{spec.name} was not ready within {spec.ready_timeout_seconds} s", code=4)

    async def _watch(self, member: Member, process: Process) -> None:
        await process.died.wait()
        if member.process is process and not self.closing and member.state in ("loaded", "loading"):
            was, member.state, member.failed_at = member.state, "cooldown", time.monotonic()
            self.note("crashed", member, while_state=was, signal=(await process.ended).signal)
            member.process = None

    async def _discard(self, member: Member) -> None:
        process, member.process = member.process, None
        if member.watch is not None:
            member.watch.cancel()
        if process is not None:
            await process.stop(grace=5.0)

    async def unload(self, member: Member, event: str = "unloaded") -> None:
        """End a loaded model's process and wait until the device has its memory back, or its wait is over."""
        before, pid = self.device.read_free(), member.process.pid if member.process else None
        member.state = "unloading"
        await self._discard(member)
        until = time.monotonic() + RELEASE_WAIT
        while self.device.read_free() <= before and time.monotonic() < until:  # noqa: ASYNC110 - the driver tells nobody
            await asyncio.sleep(0.02)
        member.state = "unloaded"
        self.note(event, member, ended_pid=pid, freed_bytes=self.device.read_free() - before)

    def describe(self) -> dict[str, Any]:
        """The listing: every declared model with its state, process, reservation and pin, and the device."""
        now = time.monotonic()
        models = [
            {
                "id": name,
                "object": "model",
                "state": m.state,
                "loaded": m.state == "loaded",
                "pinned": m.spec.pinned,
                "pid": m.process.pid if m.process and m.state in ("loading", "loaded") else None,
                "started_ticks": m.started_ticks if m.process and m.state in ("loading", "loaded") else None,
                "loads": m.loads,
                "reservation_bytes": m.spec.reservation_bytes,
                "idle_seconds": round(now - m.last_used, 6) if m.last_used else None,
            }
            for name, m in self.members.items()
        ]
        free = self.device.read_free()
        device = {
            "name": self.device.name,
            "source": self.device.source,
            "index": self.device.index,
            "total_bytes": self.device.total_bytes,
            "free_bytes": free,
        }
        return {"object": "list", "data": models, "device": device, "now": now}

    async def preload(self) -> None:
        """Load what the configuration wants loaded, in order. Raises EvidenceError when one cannot be."""
        for member in self.members.values():
            if member.spec.preload:
                self.begin_load(member)
                assert member.task is not None
                await member.task
                if member.state != "loaded":
                    reason = self.events[-1].get("reason", "no memory") if self.events else ""
                    raise EvidenceError(f"{member.spec.name} could not be loaded: {reason}", f"see {self.logs}", code=4)

    async def close(self) -> None:
        """End every process."""
        self.closing = True
        for member in self.members.values():
            if member.task is not None and not member.task.done():
                member.task.cancel()
        await asyncio.gather(*(self._discard(member) for member in self.members.values()))


def kill_process(pid: int, started_ticks: int) -> bool:
    """SIGKILL to a process if it is still the one that started then; whether it was."""
    if read_started(pid) != started_ticks:
        return False
    os.kill(pid, signal.SIGKILL)
    return True
