"""Serving programs under a lifecycle experiment, as a harness sees them: answers, a listing, and ways to steer.

Every exchange and every listing becomes a raw event. `SupervisorTarget` is `evidence serve`. `REFUSED` says which
protocol cannot be carried out on which other target, and why, before anything is started.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from evidence.capture.answer import parse
from evidence.capture.load import Exchange, fetch
from evidence.errors import EvidenceError
from evidence.lifecycle.events import EventLog
from evidence.lifecycle.reply import JSON, Reply, ask, keep_text
from evidence.supervisor.fleet import read_started


class Deadline:
    """A bound on a whole run. `left()` raises EvidenceError (code 4) once it is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    def left(self, most: float = 1e9) -> float:
        rest = self._until - time.monotonic()
        if rest <= 0:
            raise EvidenceError(f"the deadline of {self.seconds} s is over", "see the last raw event", code=4)
        return min(rest, most)


@dataclass(frozen=True)
class Resident:
    """One model of a listing. `pid` and `started_ticks` are null where the target does not tell."""

    model: str
    state: str
    pid: int | None
    started_ticks: int | None
    reservation_bytes: int | None
    pinned: bool


@dataclass(frozen=True)
class Listing:
    """What a target said of its models and its device at one moment. `index` is the number of a GPU, by NVML."""

    models: tuple[Resident, ...]
    free_bytes: int | None
    total_bytes: int | None
    source: str | None
    name: str | None = None
    index: int | None = None

    def find(self, model: str) -> Resident:
        """The entry of a model; an absent one counts as unloaded."""
        found = [one for one in self.models if one.model == model]
        return found[0] if found else Resident(model, "unloaded", None, None, None, False)

    def resident(self) -> list[str]:
        return sorted(one.model for one in self.models if one.state == "loaded")

    def changed_from(self, other: Listing | None) -> bool:
        return other is None or other.models != self.models


def _keep(exchange: Exchange, reply: Reply) -> dict[str, Any]:
    """What is kept of a chat's answer."""
    return {
        **keep_text(exchange, reply),
        "served_model": reply.served_model,
        "retry_after": reply.retry_after,
        "code": reply.code,
        "permanent": reply.permanent,
    }


class Target:
    """What every target can do: answer chats by HTTP."""

    name = "http"

    def __init__(self, url: str, log: EventLog, *, max_tokens: int = 32, timeout: float = 60.0) -> None:
        self.url, self.log, self.max_tokens, self.timeout = url.rstrip("/"), log, max_tokens, timeout

    def chat_path(self) -> str:
        return "/v1/chat/completions"

    async def ask(self, model: str, lane: str, prompt: str = "Name one colour.", **more: Any) -> Reply:
        """One chat, recorded as `request` and `response`."""
        value = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self.max_tokens,
            "temperature": 0,
        }
        told = {"lane": lane, "model": model, **more}
        return await ask(self.log, self.url + self.chat_path(), value, self.timeout, told, _keep)

    async def ask_until_served(self, model: str, lane: str, limit: float, **more: Any) -> list[Reply]:
        """Ask again while told 503 with Retry-After, as a patient caller does, for at most `limit` seconds."""
        until, replies = time.monotonic() + limit, list[Reply]()
        while True:
            reply = await self.ask(model, lane, **more)
            replies.append(reply)
            wait = reply.retry_after
            if reply.status != 503 or wait is None or time.monotonic() + wait > until:
                return replies
            await asyncio.sleep(wait)

    async def read_json(self, path: str) -> dict[str, Any]:
        """A JSON object by GET. Raises EvidenceError."""
        exchange = await fetch(self.url + path, timeout_seconds=10.0)
        try:
            value = parse(exchange.response_body) if exchange.status == 200 else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise EvidenceError(
                f"GET {path}: found status {exchange.status}, {exchange.transport}, expected a JSON object", code=4
            )
        return value

    async def read_listing(self) -> Listing:
        raise NotImplementedError

    def note_listing(self, listing: Listing, label: str) -> None:
        """Record a listing, and whether each process that it names lives by the system's own account."""
        models = [
            {
                "model": one.model,
                "state": one.state,
                "pid": one.pid,
                "started_ticks": one.started_ticks,
                "alive": None if one.pid is None else read_started(one.pid) == one.started_ticks,
                "reservation_bytes": one.reservation_bytes,
                "pinned": one.pinned,
            }
            for one in listing.models
        ]
        self.log.write(
            "listing",
            label=label,
            free_bytes=listing.free_bytes,
            total_bytes=listing.total_bytes,
            source=listing.source,
            models=models,
            **({"device_name": listing.name} if listing.name else {}),
        )

    async def list(self, label: str) -> Listing:
        """Read and record a listing."""
        listing = await self.read_listing()
        self.note_listing(listing, label)
        return listing

    def note_process(self, one: Resident) -> None:
        """Record whether the process that a listing named still runs, by the system's own account."""
        if one.pid is not None:
            alive = read_started(one.pid) == one.started_ticks
            self.log.write("process", model=one.model, pid=one.pid, started_ticks=one.started_ticks, alive=alive)

    async def watch(self, stop: asyncio.Event, every: float = 0.02) -> None:
        """Record each listing that differs from the one before, until told to stop."""
        before: Listing | None = None
        while not stop.is_set():
            listing = await self.read_listing()
            if listing.changed_from(before):
                self.note_listing(listing, "watch")
                before = listing
            await asyncio.sleep(every)

    async def steer(self, path: str, **fields: Any) -> int | None:
        """POST to a route that steers, recorded; gives the status."""
        exchange = await fetch(self.url + path, "POST", json.dumps(fields).encode(), 60.0, JSON)
        self.log.write("steer", path=path, fields=fields, status=exchange.status)
        return exchange.status

    async def read_account(self) -> None:
        """Record the target's own account of its events, where it keeps one."""


class SupervisorTarget(Target):
    """`evidence serve`."""

    name = "supervisor"

    async def read_listing(self) -> Listing:
        value = await self.read_json("/v1/models")
        device = value.get("device", {})
        models = tuple(
            Resident(one["id"], one["state"], one["pid"], one["started_ticks"], one["reservation_bytes"], one["pinned"])
            for one in value.get("data", [])
        )
        return Listing(
            models,
            device.get("free_bytes"),
            device.get("total_bytes"),
            device.get("source"),
            device.get("name"),
            device.get("index"),
        )

    async def read_account(self) -> None:
        for event in (await self.read_json("/admin/events")).get("events", []):
            fields = {key: value for key, value in event.items() if key not in ("t", "event")}
            self.log.write("account", what=event["event"], at=self.log.since_begun(event["t"]), **fields)


TARGETS = {"supervisor": SupervisorTarget}
_ONE = "one server is one model: there is no neighbour to stay beside, to evict or to crash"
REFUSED = {
    **{(protocol, target): _ONE for protocol in ("co-residency", "crash") for target in ("llama.cpp", "vllm")},
    ("co-residency", "sie"): (
        "SIE runs its models inside one server process and tells, of each, a state alone: no process, no reservation, no "
        "pin, no device memory, and no route that unloads, so neither rounds nor an eviction before a load can be shown"
    ),
    ("crash", "sie"): (
        "SIE runs the models that it can serve on a CPU inside its one server process: there is no engine process of a "
        "victim to kill, and killing the server kills the healthy neighbour"
    ),
}
