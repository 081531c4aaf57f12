"""Adapters that come and go while their engine runs, one run of one generation engine.

First the base model alone: a cold answer, then two warm ones (the control). Then adapters a and b, then the churn: each
alias of the order is requested, loaded first where it is not resident; above the capacity the least recently used
dynamic one is evicted, the pinned ones never. After each request the residents are listed, an evicted alias is
requested once to see it refused, and at last the base model is asked again. Every answer keeps its text's hash and the
probabilities of the first token.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from evidence.capture.answer import parse
from evidence.capture.load import fetch
from evidence.errors import EvidenceError
from evidence.lifecycle.events import EventLog
from evidence.lifecycle.reply import JSON, ask, keep_chances
from evidence.lifecycle.target import Deadline
from evidence.supervisor.fleet import read_started


@dataclass(frozen=True)
class Adapters:
    """The settings of a run. `paths` are what the engine is told (never recorded); durations are seconds."""

    model: str
    paths: dict[str, str]
    pinned_aliases: tuple[str, ...]
    dynamic_aliases: tuple[str, ...]
    churn_request_order: tuple[str, ...]
    ready_adapter_capacity: int
    fixture_seeds: dict[str, int]
    undeclared_alias: str = "undeclared"
    request_seed: int = 17
    top_tokens: int = 10
    max_generated_tokens: int = 16
    prompt: str = "What is the capital of France?"
    request_timeout_s: float = 120.0
    harness_deadline_s: float = 900.0

    def check(self) -> None:
        """Raise EvidenceError when the settings contradict each other."""
        declared = [*self.pinned_aliases, *self.dynamic_aliases]
        if (
            len(set(declared)) < len(declared)
            or set(self.paths) != set(declared)
            or set(self.fixture_seeds) != set(declared)
        ):
            raise EvidenceError(f"aliases {declared}: expected each once, with a path and a seed")
        if not set(self.churn_request_order) <= set(declared) or self.undeclared_alias in declared:
            raise EvidenceError(f"churn {list(self.churn_request_order)}: expected declared aliases alone")
        if not len(self.pinned_aliases) + 2 <= self.ready_adapter_capacity < len(declared):
            raise EvidenceError(
                f"capacity {self.ready_adapter_capacity}: expected room for the pinned ones and two, not for all {len(declared)}"
            )


@dataclass
class AdapterEngine:
    """One engine that takes adapters at run time. `pid` is its process where the harness started it."""

    url: str
    log: EventLog
    settings: Adapters
    pid: int | None = None
    name: str = field(default="adapters", init=False)

    async def post(self, path: str, value: Any) -> tuple[int | None, bytes]:
        exchange = await fetch(
            self.url + path, "POST", json.dumps(value).encode(), self.settings.request_timeout_s, JSON
        )
        return exchange.status, exchange.response_body

    async def load(self, alias: str) -> int | None:
        """Make an alias ready; the status."""
        raise NotImplementedError

    async def unload(self, alias: str) -> int | None:
        """Take an alias away; the status."""
        raise NotImplementedError

    async def read_ready(self) -> list[str]:
        """The aliases that the engine itself lists as ready, sorted."""
        raise NotImplementedError

    def body(self, alias: str | None) -> dict[str, Any]:
        """A greedy chat to the base (None) or an adapter."""
        return {
            "model": alias or self.settings.model,
            "messages": [{"role": "user", "content": self.settings.prompt}],
            "max_tokens": self.settings.max_generated_tokens,
            "temperature": 0,
            "seed": self.settings.request_seed,
            "logprobs": True,
            "top_logprobs": self.settings.top_tokens,
        }

    async def ask(self, alias: str | None, phase: str) -> int | None:
        """One chat, recorded with the probabilities of its first token; the status."""
        url, told = self.url + "/v1/chat/completions", {"lane": "adapter", "alias": alias, "phase": phase}
        reply = await ask(self.log, url, self.body(alias), self.settings.request_timeout_s, told, keep_chances)
        return reply.status

    async def list(self, phase: str) -> list[str]:
        """Read and record the aliases that are ready, and whether the engine's process is the one it was."""
        ready = await self.read_ready()
        ticks = read_started(self.pid) if self.pid is not None else None
        self.log.write("ready", phase=phase, aliases=ready, pid=self.pid, started_ticks=ticks)
        return ready


class VllmEngine(AdapterEngine):
    """vLLM: adapters are loaded and unloaded by name and are models of their own; the caller keeps the capacity."""

    async def load(self, alias: str) -> int | None:
        return (
            await self.post("/v1/load_lora_adapter", {"lora_name": alias, "lora_path": self.settings.paths[alias]})
        )[0]

    async def unload(self, alias: str) -> int | None:
        return (await self.post("/v1/unload_lora_adapter", {"lora_name": alias}))[0]

    async def read_ready(self) -> list[str]:
        exchange = await fetch(self.url + "/v1/models", timeout_seconds=10.0)
        try:
            listed = parse(exchange.response_body)["data"]
            return sorted(str(one["id"]) for one in listed if one.get("parent") or one["id"] in self.settings.paths)
        except (ValueError, KeyError, TypeError):
            raise EvidenceError(
                f"GET /v1/models: found status {exchange.status}, expected a list of models", code=4
            ) from None


ENGINES = {"vllm": VllmEngine}


async def run_lora(settings: Adapters, engine: AdapterEngine, log: EventLog) -> None:
    """Carry the run out; every outcome is in the log. Raises EvidenceError (code 4) when it cannot go on."""
    settings.check()
    deadline = Deadline(settings.harness_deadline_s)
    kept = {key: value for key, value in asdict(settings).items() if key not in ("paths", "prompt")}
    kept["prompt_sha256"] = hashlib.sha256(settings.prompt.encode()).hexdigest()
    log.write("run-started", protocol="lora", format=1, target=type(engine).__name__, settings=kept)
    for alias in settings.pinned_aliases:
        log.write("load", alias=alias, status=await engine.load(alias))
    await engine.list("initial")
    for phase in ("cold-base", "warm-base-1", "warm-base-2"):
        await engine.ask(None, phase)
    used: list[str] = []  # dynamic aliases, least recently used first
    for alias in settings.dynamic_aliases[:2]:
        await bring(settings, engine, log, used, alias)
    await engine.list("a_b_ready")
    for alias in settings.dynamic_aliases[:2]:
        await engine.ask(alias, f"effect-{alias}")
    await engine.ask(None, "reset-after-a-b")
    log.write("undeclared", status=await engine.ask(settings.undeclared_alias, "undeclared"))
    await engine.list("before_churn")
    for turn, alias in enumerate(settings.churn_request_order):
        deadline.left()
        await bring(settings, engine, log, used, alias)
        await engine.ask(alias, f"churn_{turn}")
        await engine.list(f"churn_{turn}")
    for phase in ("reset-after-churn", "warm-base-last"):
        await engine.ask(None, phase)
    log.write("run-ended", complete=True)


async def bring(settings: Adapters, engine: AdapterEngine, log: EventLog, used: list[str], alias: str) -> None:
    """Make an alias resident as a caller with a fixed capacity does, and note it as the most recently used."""
    if alias in settings.pinned_aliases:
        return
    if alias in used:
        used.remove(alias)
    else:
        if len(settings.pinned_aliases) + len(used) >= settings.ready_adapter_capacity:
            gone = used.pop(0)
            log.write("unload", alias=gone, status=await engine.unload(gone))
            log.write("refused", alias=gone, status=await engine.ask(gone, "evicted"))
        log.write("load", alias=alias, status=await engine.load(alias))
    used.append(alias)
