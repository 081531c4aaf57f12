"""The state of one synthetic engine: its places, its counters, its pretended memory, and which fault is due."""

import argparse
import asyncio
import os
import time
from collections import deque
from typing import Any, TextIO

VERSION = "1.0"
NAME = "synthetic"
FAULTS = {
    "none": "a normal answer",
    "status-500": "an HTTP error (any status-NNN)",
    "hang-before-head": "no response at all",
    "hang-mid-stream": "half of the answer, then nothing",
    "close-early": "half of the events, then a clean end of the body",
    "truncate": "half of the events, then the connection closes inside the body",
    "reset": "half of the events, then a TCP reset",
    "broken-stream": "an event that is no JSON (a body that is no JSON)",
    "error-event": "an error event in the middle of the stream",
    "no-usage": "no token counts",
    "no-done": "no [DONE]",
    "reasoning-only": "reasoning text without an answer",
    "capped": "finish reason length",
    "empty": "no text",
    "tool-call": "a tool call for an answer",
    "die": "the process ends in the middle of the answer",
    "log-allocation": "an allocation line in the log during the answer",
}


def is_fault(name: object) -> bool:
    return isinstance(name, str) and (name in FAULTS or (name.startswith("status-") and name[7:].isdigit()))


class Places:
    """At most `cap` at once; who waits is served in order of arrival."""

    def __init__(self, cap: int) -> None:
        self.cap, self.running = cap, 0
        self.queue: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        if self.running < self.cap:
            self.running += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self.queue:
                self.queue.remove(turn)
            elif turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        while self.queue:
            turn = self.queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1


class Engine:
    """Settings and counters of one process."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.places = Places(settings.sequence_cap)
        self.started = time.monotonic()
        self.begun = self.finished = self.tokens = 0
        self.emissions: TextIO | None = settings.emission_log.open("a") if settings.emission_log else None

    def is_loading(self) -> bool:
        return time.monotonic() - self.started < float(self.settings.start_delay)

    def measure_memory(self) -> dict[str, int]:
        """Bytes of the pretended device: used, total, and what the use is made of."""
        s = self.settings
        cache = s.sequence_cap * s.context_tokens * s.kv_bytes_per_token
        used = s.weights_bytes + cache
        if s.memory_fraction is not None:
            used = int(s.memory_bytes * s.memory_fraction)
        if s.memory_not_falling:
            used = s.memory_bytes * 9 // 10
        return {"usedBytes": used, "totalBytes": s.memory_bytes, "weightsBytes": s.weights_bytes, "kvBytes": cache}

    def choose_fault(self, request: dict[str, Any], headers: dict[str, str]) -> str:
        own = request.get("synthetic")
        asked = headers.get("x-synthetic-fault") or (own.get("fault") if isinstance(own, dict) else None)
        if is_fault(asked):
            return str(asked)
        s = self.settings
        return str(s.fault) if s.fault_from <= self.begun <= s.fault_until else "none"

    def read_metrics(self) -> bytes:
        lines = {
            "synthetic:requests_running": self.places.running,
            "synthetic:requests_waiting": len(self.places.queue),
            "synthetic:requests_finished_total": self.finished,
            "synthetic:generation_tokens_total": self.tokens,
            "synthetic:memory_used_bytes": self.measure_memory()["usedBytes"],
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items()).encode()

    def end_generation(self) -> None:
        self.finished += 1
        if self.settings.die_after is not None and self.finished >= self.settings.die_after:
            asyncio.get_running_loop().call_later(0.005, os._exit, 9)
