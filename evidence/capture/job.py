"""One offer from its plan to its exchange: what is prepared, what is known while it is open, what is made of it."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable, Sequence

from evidence.capture import lateness
from evidence.capture.answer import Answer
from evidence.capture.arrival import WallBridge
from evidence.capture.connections import Address, is_quiet
from evidence.capture.endings import Manners
from evidence.capture.offers import Exchange, Plan, Recorder
from evidence.capture.request import Target, parse_url, write_request
from evidence.capture.wire import Call


class Order:
    """A plan made ready: everything that can be computed before the clock starts. `addresses` and `manners` come later."""

    __slots__ = ("addresses", "digest", "keep_alive", "manners", "plan", "request", "stream", "target")

    def __init__(
        self, plan: Plan, target: Target, method: str, body: bytes | None, stream: bool, keep_alive: bool
    ) -> None:
        headers = {"X-Request-Id": plan.offer} if plan.offer else {}
        if stream:
            headers["Accept"] = "text/event-stream"
        self.plan, self.target, self.stream, self.keep_alive = plan, target, stream, keep_alive
        self.digest = hashlib.sha256(body or b"").hexdigest()
        self.request = write_request(target, method, body, headers | dict(plan.headers), keep_alive=keep_alive)
        self.addresses: Sequence[Address] | OSError = ()
        self.manners = Manners()


def prepare(plans: Sequence[Plan], *, keep_alive: bool) -> list[Order]:
    """Make plans ready. Raises EvidenceError on a URL or header that cannot be sent."""
    streams = {body: is_stream(body) for body in {plan.body for plan in plans}}
    targets = {url: parse_url(url) for url in {plan.url for plan in plans}}
    return [Order(plan, targets[plan.url], "POST", plan.body, streams[plan.body], keep_alive) for plan in plans]


def is_stream(body: bytes) -> bool:
    """Whether a request asks for a stream."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("stream") is True


class Job:
    """An offer under way. `kept` is a connection to use again; after `finish` it is the one that may be.

    `finish` tells `keep` of its exchange.
    """

    __slots__ = (
        "_answer", "_bridge", "_intended_ns", "_keep", "_order", "_recorder", "_reused", "_stepped", "call", "kept"
    )  # fmt: skip

    def __init__(
        self,
        order: Order,
        intended_ns: int,
        recorder: Recorder,
        bridge: WallBridge,
        keep: Callable[[Exchange], None],
        kept: socket.socket | None = None,
    ) -> None:
        """Record the offer and connect. What the recorder raises passes, and nothing has left."""
        try:
            recorder.offer(order.plan, intended_ns)
        except BaseException:
            if kept is not None:
                kept.close()
            raise
        self._order, self._intended_ns, self._recorder, self._bridge = order, intended_ns, recorder, bridge
        self._keep = keep
        self._stepped = bridge.stepped
        self._answer = Answer(stream=order.stream)
        manners = order.manners
        closing = order.stream and not order.keep_alive
        proving = closing and not manners.may_wait()
        self.call = Call(
            order.request, int(order.plan.timeout_seconds * 1e9), bridge, self._answer.feed,
            settles=self._answer.settles if order.stream else None,
            rests=manners if closing and not (proving and manners.closes) else None,
            proves=manners if proving else None,
        )  # fmt: skip
        if kept is not None and not is_quiet(kept):
            kept.close()
            kept = None
        self._reused = kept is not None
        self.kept: socket.socket | None = None
        if kept is not None:
            self.call.adopt(kept)
        else:
            self.call.connect(order.addresses)

    def finish(self) -> None:
        """Make the exchange of what is known, and record it."""
        call, answer, plan = self.call, self._answer, self._order.plan
        call.conclude()
        if self._order.keep_alive and call.reusable():
            self.kept = call.connection
        else:
            call.close()
        response = call.response
        body = bytes(response.body)
        answer.finish(body)
        response.let_go()
        started = call.started_ns or call.began_ns
        exchange = Exchange(
            offer=plan.offer,
            repetition=plan.repetition,
            arm=plan.arm,
            phase=plan.phase,
            route=plan.route,
            worker=plan.worker,
            request_sha256=self._order.digest,
            request_bytes=len(plan.body),
            response_body=body,
            status=response.status,
            transport=call.transport or "failed",
            error=call.error,
            started_ns=started,
            intended_ns=self._intended_ns,
            ttft_ns=answer.text_ns[0] - started if answer.text_ns else None,
            reasoning_ns=answer.reasoning_at - started if answer.reasoning_at is not None else None,
            total_ns=call.ended_ns - started,
            finish_reason=answer.finish_reason,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            retry_after=response.header("retry-after"),
            clock="kernel" if call.started_ns and call.kernel else "monotonic",
            event_ns=tuple(at - started for at in answer.text_ns),
            connect_ns=call.connected_ns - call.began_ns if call.connected_ns and not self._reused else None,
            reused=self._reused,
            wall_clock_stepped=self._bridge.stepped and not self._stepped,
            headers=tuple(response.headers),
            whole=call.transport == "complete" and answer.whole(response.status),
        )
        lateness.note_send(exchange.send_lag_ns)
        self._recorder.sample(exchange)
        self._keep(exchange)
