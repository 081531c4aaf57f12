"""The measuring client: offers requests at a fixed concurrency and records what came, strictly.

An offer is recorded before its first byte leaves and a sample when it ends, exactly once, however it ends:
refused, reset, timed out, closed early, garbage, or cancelled. Each request has a connection of its own unless
reuse is asked for; connecting is done before the clock starts and timed apart. Nothing is retried.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Literal, Protocol

from evidence.capture import lateness
from evidence.capture.answer import Answer
from evidence.capture.arrival import WallBridge
from evidence.capture.framing import Response
from evidence.capture.request import Target, parse_url, write_request
from evidence.capture.sockets import Watch
from evidence.capture.wire import Call, Transport, close, connect, describe, is_quiet, resolve


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


@dataclass(frozen=True)
class Exchange:
    """What became of one offer. Instants are monotonic nanoseconds, the rest counts from `started_ns`.

    `started_ns` is the moment before the first byte left (before the connection attempt when there was no
    connection), `intended_ns` when its slot was free. `ttft_ns` and `event_ns` are arrivals of events with text,
    `reasoning_ns` of the first with reasoning, `total_ns` of the last byte or the failure. Response bytes are
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
        """Record how an offer ended."""


async def offer_batch(
    plans: Sequence[Plan],
    *,
    concurrency: int,
    recorder: Recorder,
    progress: Callable[[int, int], None] | None = None,
    reuse: bool = False,
) -> list[Exchange]:
    """Send `plans` in order, at most `concurrency` open at once, and return their exchanges in that order.

    A slot takes the next plan when its last exchange ended; that end is the next one's intended start. With
    `reuse` a slot keeps its connection while the server does. When the recorder fails or the batch is
    cancelled, every open offer still gets its sample and the error passes on. Raises EvidenceError, before
    anything is offered, on a URL or header that cannot be sent.
    """
    if concurrency < 1:
        raise ValueError("concurrency must be at least 1")
    orders = _prepare(plans, keep_alive=reuse)
    done: list[Exchange | None] = [None] * len(orders)
    waiting = iter(enumerate(orders))
    finished = 0
    with Watch() as watch, _no_collection():
        begun = monotonic_ns()

        async def serve_slot() -> None:
            nonlocal finished
            intended, kept = begun, None
            try:
                for index, order in waiting:
                    exchange, kept = await _exchange(order, intended, recorder, watch, kept)
                    done[index] = exchange
                    intended = exchange.started_ns + exchange.total_ns
                    finished += 1
                    if progress is not None:
                        progress(finished, len(orders))
            finally:
                if kept is not None:
                    close(kept)

        await _finish_all([asyncio.ensure_future(serve_slot()) for _ in range(min(concurrency, len(orders)))])
    return [exchange for exchange in done if exchange is not None]


async def fetch(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    timeout_seconds: float = 10.0,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """Make one request that is no offer (a control, a readiness probe) and return what came of it.

    It never raises for what the server does; `transport` and `status` say it. Raises EvidenceError on a URL or
    header that cannot be sent.
    """
    plan = Plan("", None, None, "control", "native", None, url, body or b"", timeout_seconds, headers or {})
    order = _Order(plan, parse_url(url), method, body, _is_stream(body or b""), False)
    with Watch() as watch:
        exchange, _kept = await _exchange(order, monotonic_ns(), _NoRecorder(), watch, None)
    return exchange


class _NoRecorder:
    def offer(self, plan: Plan, intended_ns: int) -> None:
        """A control is not an offer."""

    def sample(self, exchange: Exchange) -> None:
        """A control is not a sample."""


class _Order:
    """A plan made ready: everything that can be computed before the clock starts."""

    __slots__ = ("digest", "keep_alive", "plan", "request", "stream", "target")

    def __init__(
        self, plan: Plan, target: Target, method: str, body: bytes | None, stream: bool, keep_alive: bool
    ) -> None:
        headers = {"X-Request-Id": plan.offer} if plan.offer else {}
        if stream:
            headers["Accept"] = "text/event-stream"
        self.plan, self.target, self.stream, self.keep_alive = plan, target, stream, keep_alive
        self.digest = hashlib.sha256(body or b"").hexdigest()
        self.request = write_request(target, method, body, headers | dict(plan.headers), keep_alive=keep_alive)


def _prepare(plans: Sequence[Plan], *, keep_alive: bool) -> list[_Order]:
    streams = {body: _is_stream(body) for body in {plan.body for plan in plans}}
    targets = {url: parse_url(url) for url in {plan.url for plan in plans}}
    return [_Order(plan, targets[plan.url], "POST", plan.body, streams[plan.body], keep_alive) for plan in plans]


def _is_stream(body: bytes) -> bool:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("stream") is True


async def _exchange(
    order: _Order,
    intended: int,
    recorder: Recorder,
    watch: Watch,
    kept: socket.socket | None,
) -> tuple[Exchange, socket.socket | None]:
    """Carry out one order; the second value is the connection, where it can carry another."""
    plan = order.plan
    recorder.offer(plan, intended)
    state = _State(order, intended, watch.receiver.bridge)
    connection = kept
    if connection is not None and not is_quiet(connection):
        close(connection)
        connection = None
    state.reused = connection is not None
    try:
        if connection is None:
            connection = await connect(await resolve(order.target), plan.timeout_seconds)
            state.connect_ns = monotonic_ns() - state.began_ns
        call = Call(
            connection, order.request, int(plan.timeout_seconds * 1e9), watch, state.response, state.answer.feed
        )
        # Between the steps of many exchanges, arrivals are read: what lies unread is dated by what follows it.
        watch.serve_between()
        call.start()
        state.call = call
        await call.wait()
        watch.serve_between()
    except OSError as error:
        state.problem = f"connecting: {describe(error)}"
    except asyncio.CancelledError:
        state.problem = "cancelled before its end"
        raise
    finally:
        # Also on the way out of a cancellation: what was offered is sampled, whatever happens.
        kept = connection if order.keep_alive and state.call is not None and state.call.reusable() else None
        if connection is not None and kept is None:
            close(connection)
        exchange = state.close()
        lateness.note_send(exchange.send_lag_ns)
        recorder.sample(exchange)
    return exchange, kept


class _State:
    """What is known of an exchange while it is open."""

    def __init__(self, order: _Order, intended: int, bridge: WallBridge) -> None:
        self.order, self.intended, self.bridge, self.stepped_before = order, intended, bridge, bridge.stepped
        self.began_ns = monotonic_ns()
        self.answer = Answer(stream=order.stream)
        self.response = Response()
        self.call: Call | None = None
        self.connect_ns: int | None = None
        self.problem: str | None = None
        self.reused = False

    def close(self) -> Exchange:
        """Make the exchange of what is known."""
        now, plan, call, answer = self.bridge.now(), self.order.plan, self.call, self.answer
        body = bytes(self.response.body)
        answer.finish(body)
        self.response.let_go()
        started = call.started_ns if call else self.began_ns
        return Exchange(
            offer=plan.offer,
            repetition=plan.repetition,
            arm=plan.arm,
            phase=plan.phase,
            route=plan.route,
            worker=plan.worker,
            request_sha256=self.order.digest,
            request_bytes=len(plan.body),
            response_body=body,
            status=self.response.status,
            transport=(call.transport if call else None) or "failed",
            error=(call.error if call else None) or self.problem,
            started_ns=started,
            intended_ns=self.intended,
            ttft_ns=answer.text_ns[0] - started if answer.text_ns else None,
            reasoning_ns=answer.reasoning_at - started if answer.reasoning_at is not None else None,
            total_ns=(call.ended_ns if call and call.ended_ns else now) - started,
            finish_reason=answer.finish_reason,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            retry_after=self.response.header("retry-after"),
            clock="kernel" if call and call.kernel else "monotonic",
            event_ns=tuple(at - started for at in answer.text_ns),
            connect_ns=self.connect_ns,
            reused=self.reused,
            wall_clock_stepped=self.bridge.stepped and not self.stepped_before,
            headers=tuple(self.response.headers),
            whole=call is not None and call.transport == "complete" and answer.whole(self.response.status),
        )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let the cyclic collector wait: its pauses of many milliseconds would leave arrivals unread."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


async def _finish_all(tasks: list[asyncio.Task[None]]) -> None:
    """Await all; when one fails, or the wait is cancelled, cancel the rest, see them end, and pass it on."""
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
