"""What the measuring client is asked to send, what became of it, and who writes both down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from evidence.capture.wire import Transport


@dataclass(frozen=True)
class Plan:
    """One request to offer. `body` is sent as it is; `headers` are added to the client's own."""

    offer: str
    repetition: int | None
    arm: str | None
    phase: str
    route: str
    worker: str | None
    url: str
    body: bytes
    timeout_seconds: float
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Exchange:
    """What became of one offer. Nobody changes it (to freeze it would cost more than to make it). Instants are monotonic nanoseconds, the rest counts from `started_ns`.

    `started_ns` is the moment before the first byte left (before the connection attempt when there was no
    connection), `intended_ns` when its slot was free. `ttft_ns` is the arrival of the first event with text,
    `reasoning_ns` of the first with reasoning (None when that came after text), `total_ns` of the last byte or the
    failure. `event_ns` holds an arrival for each event with text; behind the first it is that of the read which took
    the event, and a read may gather (see `endings`). Response bytes are
    without transfer framing and otherwise as they came. `clock` is `kernel` when every read that brought bytes
    had a kernel stamp. `wall_clock_stepped` says that the wall clock was set while the exchange was open. `whole`
    is the client's first reading (2xx, complete, no error, the end said by the engine); it decides nothing, the
    classification is derived later from the stored bytes.
    """

    offer: str
    repetition: int | None
    arm: str | None
    phase: str
    route: str
    worker: str | None
    request_sha256: str
    request_bytes: int
    response_body: bytes
    status: int | None
    transport: Transport
    error: str | None
    started_ns: int
    intended_ns: int
    ttft_ns: int | None
    reasoning_ns: int | None
    total_ns: int
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    retry_after: str | None
    clock: Literal["kernel", "monotonic"]
    event_ns: tuple[int, ...]
    connect_ns: int | None = None
    reused: bool = False
    wall_clock_stepped: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    whole: bool = False

    @property
    def send_lag_ns(self) -> int:
        """How long after the intended moment the request left."""
        return self.started_ns - self.intended_ns


class Recorder(Protocol):
    """Where offers and samples go, as they happen."""

    def offer(self, plan: Plan, intended_ns: int) -> None:
        """Record that `plan` is about to be sent; no byte leaves before this returns."""

    def sample(self, exchange: Exchange) -> None:
        """Record how an offer ended, within a second of it."""
