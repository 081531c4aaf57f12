"""Adapters that a request selects, one run: for engines whose adapters a caller can neither list out nor take away.

The base model is asked first, cold and twice warm (the control). Then every turn asks for the next alias of the order
until it answers, notes who is resident by a second source, and asks the base again. At last an adapter that was never
declared is asked for, a few times, and the base once more.

`LlamaSelector`: llama.cpp is given its adapters at start, a request names the scale of each, and the server lists all
of them always; nothing is loaded or evicted. `SieSelector`: SIE loads an adapter on the first request for it (503
LORA_LOADING with Retry-After), keeps so many a model and evicts the least recently used one; it lists none, so who is
resident comes from its own log, which needs a SIE that this harness started.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evidence.capture.answer import parse
from evidence.capture.load import Exchange, fetch
from evidence.errors import EvidenceError
from evidence.lifecycle.events import EventLog
from evidence.lifecycle.reply import JSON, Reply, ask, keep_chances
from evidence.lifecycle.target import Deadline
from evidence.supervisor.fleet import read_started

HEADERS = {**JSON, "accept": "application/json"}


@dataclass(frozen=True)
class Selection:
    """The settings of a run. `paths` are what the engine knows the adapters by (never recorded); durations are seconds.

    For llama.cpp the order of `paths` is the order of the --lora arguments.
    """

    model: str
    paths: dict[str, str]
    selection_order: tuple[str, ...]
    fixture_seeds: dict[str, int]
    resident_adapter_capacity: int
    undeclared: str = "undeclared"
    undeclared_tries: int = 3
    texts: tuple[str, ...] = ("What is the capital of France?", "A cat sleeps on the warm stone wall.")
    request_seed: int = 17
    top_tokens: int = 10
    max_generated_tokens: int = 8
    load_limit_s: float = 60.0
    request_timeout_s: float = 120.0
    harness_deadline_s: float = 600.0

    def check(self) -> None:
        """Raise EvidenceError when the settings contradict each other."""
        if len(self.paths) < 3 or set(self.fixture_seeds) != set(self.paths):
            raise EvidenceError(
                f"aliases {', '.join(self.paths)}: expected three at least, each with a path and a seed"
            )
        if any(self.selection_order.count(alias) < 2 for alias in self.paths) or not set(self.selection_order) <= set(
            self.paths
        ):
            raise EvidenceError(
                f"order {', '.join(self.selection_order)}: expected each declared alias twice or more, and no other"
            )
        if self.undeclared in self.paths.values() or not 2 <= self.undeclared_tries <= 20:
            raise EvidenceError(
                f"undeclared {self.undeclared!r}: expected another than the declared, tried 2 to 20 times"
            )


@dataclass
class Selector:
    """One engine. `pid` and `log_path` are those of the process that the harness started, where it did."""

    url: str
    log: EventLog
    settings: Selection
    pid: int | None = None
    log_path: Path | None = None
    kind: str = field(default="", init=False)
    residency: str = field(default="", init=False)

    def request(self, alias: str | None) -> tuple[str, dict[str, Any]]:
        """(path, body) of a request to the base (None), a declared alias, or the undeclared one ("")."""
        raise NotImplementedError

    def read_answer(self, exchange: Exchange, reply: Reply) -> dict[str, Any]:
        """What is kept of a body: `answered` and the measured values."""
        raise NotImplementedError

    async def read_resident(self) -> list[str]:
        """The declared aliases that are resident now, sorted."""
        raise NotImplementedError

    async def ask(self, alias: str | None, phase: str) -> tuple[int | None, float | None]:
        """One request, recorded; its status and Retry-After."""
        path, value = self.request(alias)
        told = {"lane": "selection", "alias": alias if alias != "" else "undeclared", "phase": phase}
        limit = self.settings.request_timeout_s
        reply = await ask(self.log, self.url + path, value, limit, told, self._keep, HEADERS)
        return reply.status, reply.retry_after

    def _keep(self, exchange: Exchange, reply: Reply) -> dict[str, Any]:
        return {"retry_after": reply.retry_after, "code": reply.code, **self.read_answer(exchange, reply)}

    async def ask_until_served(self, alias: str | None, phase: str) -> None:
        """Ask again while told 503 with Retry-After. Raises EvidenceError (code 4) when no answer comes."""
        until = time.monotonic() + self.settings.load_limit_s
        while True:
            status, wait = await self.ask(alias, phase)
            if status == 200:
                return
            if status != 503 or wait is None or time.monotonic() + wait > until:
                raise EvidenceError(f"{alias or 'the base'} gave no answer in {phase}: status {status}", code=4)
            await asyncio.sleep(wait)

    async def note_resident(self, phase: str) -> None:
        """Record who is resident, and whether the engine's process is the one it was."""
        ticks = read_started(self.pid) if self.pid is not None else None
        aliases = await self.read_resident()
        self.log.write("resident", phase=phase, aliases=aliases, pid=self.pid, started_ticks=ticks)


class LlamaSelector(Selector):
    """llama.cpp. Keys computed with another adapter must not be used again, so requests say `cache_prompt: false`."""

    kind, residency = "generation", "fixed"

    def request(self, alias: str | None) -> tuple[str, dict[str, Any]]:
        scales = [{"id": number, "scale": float(name == alias)} for number, name in enumerate(self.settings.paths)]
        if alias == "":
            scales.append({"id": len(scales), "scale": 1.0})
        return "/v1/chat/completions", {
            "model": self.settings.model,
            "messages": [{"role": "user", "content": self.settings.texts[0]}],
            "max_tokens": self.settings.max_generated_tokens,
            "temperature": 0,
            "seed": self.settings.request_seed,
            "logprobs": True,
            "top_logprobs": self.settings.top_tokens,
            "cache_prompt": False,
            "lora": scales,
        }

    def read_answer(self, exchange: Exchange, reply: Reply) -> dict[str, Any]:
        return keep_chances(exchange, reply)

    async def read_resident(self) -> list[str]:
        exchange = await fetch(self.url + "/lora-adapters", timeout_seconds=10.0)
        names = list(self.settings.paths)
        try:
            return sorted(names[one["id"]] for one in parse(exchange.response_body))
        except (ValueError, KeyError, TypeError, IndexError):
            raise EvidenceError(
                f"GET /lora-adapters: found status {exchange.status}, expected the {len(names)} declared adapters",
                "give them to the server in the order of limits.paths",
                code=4,
            ) from None


class SieSelector(Selector):
    """SIE, embeddings by its own route: `options.lora_id` is a folder in the form of PEFT."""

    kind, residency = "embedding", "server"

    def request(self, alias: str | None) -> tuple[str, dict[str, Any]]:
        value: dict[str, Any] = {"items": [{"text": text} for text in self.settings.texts]}
        if alias is not None:
            path = self.settings.paths.get(alias, self.settings.undeclared)
            value["params"] = {"options": {"lora_id": path}}
        return f"/v1/encode/{self.settings.model}", value

    def read_answer(self, exchange: Exchange, reply: Reply) -> dict[str, Any]:
        vectors = read_vectors(exchange.response_body) if exchange.status == 200 else None
        return {"answered": vectors is not None, "vectors": vectors}

    async def read_resident(self) -> list[str]:
        assert self.log_path is not None
        names = {path: alias for alias, path in self.settings.paths.items()}
        found: set[str] = set()
        for what, path in read_sie_log(self.log_path.read_text(encoding="utf-8", errors="replace")):
            if path in names:
                (found.add if what == "loaded" else found.discard)(names[path])
        return sorted(found)


def read_sie_log(text: str) -> list[tuple[str, str]]:
    """(`loaded` or `evicted`, adapter) as SIE's registry logs them, in order."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := re.search(r"core\.registry: LoRA '([^']+)' loaded for model ", line):
            found.append(("loaded", match[1]))
        elif match := re.search(r"LoRA LRU eviction for model '[^']+': evicting '([^']+)'", line):
            found.append(("evicted", match[1]))
    return found


def read_vectors(data: bytes) -> list[list[float]] | None:
    """The dense vectors of an answer, one a text, to nine decimals; None when it has none."""
    try:
        rows = [[round(float(one), 9) for one in item["dense"]["values"]] for item in parse(data)["items"]]
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return rows if rows and all(rows) else None


SELECTORS: dict[str, type[Selector]] = {"llama.cpp": LlamaSelector, "sie": SieSelector}


async def run_selection(settings: Selection, engine: Selector, log: EventLog) -> None:
    """Carry the run out; every outcome is in the log. Raises EvidenceError (code 4) when it cannot go on."""
    settings.check()
    deadline = Deadline(settings.harness_deadline_s)
    kept = {key: value for key, value in asdict(settings).items() if key not in ("paths", "undeclared", "texts")}
    kept["declared_aliases"] = list(settings.paths)
    texts = settings.texts if engine.kind == "embedding" else settings.texts[:1]
    kept["text_sha256"] = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    log.write(
        "run-started",
        protocol="selection",
        format=1,
        target=type(engine).__name__,
        kind=engine.kind,
        residency=engine.residency,
        settings=kept,
    )
    await engine.note_resident("initial")
    for phase in ("cold-base", "warm-base-1", "warm-base-2"):
        await engine.ask_until_served(None, phase)
    for turn, alias in enumerate(settings.selection_order):
        deadline.left()
        await engine.ask_until_served(alias, f"turn_{turn}")
        await engine.note_resident(f"turn_{turn}")
        await engine.ask_until_served(None, f"reset_{turn}")
    for _ in range(settings.undeclared_tries):
        status, wait = await engine.ask("", "undeclared")
        log.write("undeclared", status=status)
        await asyncio.sleep(min(wait or 0.0, 5.0))
    await engine.note_resident("after-undeclared")
    await engine.ask_until_served(None, "warm-base-last")
    log.write("run-ended", complete=True)
