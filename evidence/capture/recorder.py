"""Writes offers, samples and controls of one arm or attempt into the journal as the client reports them."""

from __future__ import annotations

import hashlib
import os

from evidence.capture.journal import DiskFull, Journal, Seconds
from evidence.capture.load import Exchange, Plan


class Recorder:
    """The client's recorder for what begins at `started_ns` (monotonic). Times count from there."""

    def __init__(self, journal: Journal, repetition: int | None, arm: str | None) -> None:
        self.journal = journal
        self.repetition = repetition
        self.arm = arm
        self.started_ns = journal.clock()
        self.clocks: set[str] = set()
        self.stepped = False

    def since(self, at_ns: int | None = None) -> Seconds:
        """Seconds from the start of the arm to `at_ns`, or to now."""
        return Seconds((self.journal.clock() if at_ns is None else at_ns) - self.started_ns)

    def write(self, event: str, **fields: object) -> None:
        """An event of this arm: `repetition` and `arm` come with it."""
        self.journal.write(event, repetition=self.repetition, arm=self.arm, **fields)

    @property
    def clock(self) -> str:
        """Which clock dated what was read: `kernel`, `monotonic`, or `mixed`."""
        return "mixed" if len(self.clocks) > 1 else next(iter(self.clocks), "monotonic")

    def offer(self, plan: Plan, intended_ns: int) -> None:
        """Stores the body and writes the offer. On a full disk it refuses, so that nothing leaves unrecorded."""
        if self.journal.full:
            raise self.journal.refusal(OSError(28, os.strerror(28)))
        self.write(
            "offer", offer=plan.offer, phase=plan.phase, route=plan.route, worker=plan.worker,
            requestSha256=self.journal.body(plan.body), requestBytes=len(plan.body), intendedSeconds=self.since(intended_ns),
        )  # fmt: skip

    def sample(self, exchange: Exchange) -> None:
        """Stores what came and writes the sample; without its body when the disk has no room even for that."""
        self.clocks.add(exchange.clock)
        self.stepped = self.stepped or exchange.wall_clock_stepped
        error = exchange.error
        digest = hashlib.sha256(exchange.response_body).hexdigest()
        try:
            self.journal.body(exchange.response_body)
        except DiskFull as full:
            error = f"{error}; {full.message}" if error else full.message
        self.write(
            "sample", offer=exchange.offer, phase=exchange.phase, worker=exchange.worker,
            requestSha256=exchange.request_sha256, requestBytes=exchange.request_bytes, responseSha256=digest,
            responseBytes=len(exchange.response_body), status=exchange.status, transport=exchange.transport,
            startedSeconds=self.since(exchange.started_ns), ttftSeconds=optional(exchange.ttft_ns),
            reasoningSeconds=optional(exchange.reasoning_ns), totalSeconds=Seconds(exchange.total_ns),
            sendLagSeconds=Seconds(exchange.started_ns - exchange.intended_ns), finishReason=exchange.finish_reason,
            promptTokens=exchange.prompt_tokens, completionTokens=exchange.completion_tokens, error=error,
        )  # fmt: skip


def optional(nanoseconds: int | None) -> Seconds | None:
    return None if nanoseconds is None else Seconds(nanoseconds)
