"""One offer from its plan to its exchange: what is prepared, what is known while it is open, what is made of it."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Sequence
from functools import partial

from evidence.capture import lateness
from evidence.capture.answer import Answer
from evidence.capture.arrival import Receiver
from evidence.capture.endings import Endings
from evidence.capture.offers import Exchange, Plan, Recorder
from evidence.capture.request import Target, parse_url, write_request
from evidence.capture.wire import Address, Call, is_quiet


class Order:
    """A plan made ready: everything that can be computed before the clock starts. `addresses` come later."""

    __slots__ = ("addresses", "digest", "keep_alive", "plan", "request", "stream", "target")

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
    """An offer under way. `kept` is a connection to use again; after `finish` it is the one that may be."""

    __slots__ = (
        "_answer", "_intended_ns", "_order", "_receiver", "_recorder", "_reused", "_stepped", "call", "exchange", "kept"
    )  # fmt: skip

    def __init__(
        self,
        order: Order,
        intended_ns: int,
        recorder: Recorder,
        receiver: Receiver,
        endings: Endings,
        kept: socket.socket | None = None,
    ) -> None:
        """Record the offer and connect. What the recorder raises passes, and nothing has left."""
        try:
            recorder.offer(order.plan, intended_ns)
        except BaseException:
            if kept is not None:
                kept.close()
            raise
        self._order, self._intended_ns, self._recorder, self._receiver = order, intended_ns, recorder, receiver
        self._stepped = receiver.bridge.stepped
        self._answer = Answer(stream=order.stream)
        self.exchange: Exchange | None = None
        closing = order.stream and not order.keep_alive
        known = endings.closes(order.target)
        proving = closing and not endings.may_wait(order.target)
        self.call = Call(
            order.request, int(order.plan.timeout_seconds * 1e9), receiver, self._answer.feed,
            settles=self._answer.settles if order.stream else None,
            may_rest=partial(endings.closes, order.target) if closing and not (proving and known) else None,
            on_end=partial(endings.note, order.target) if proving else None,
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
        if self._order.keep_alive and call.reusable():
            self.kept = call.connection
        else:
            call.close()
        response = call.response
        body = bytes(response.body)
        answer.finish(body)
        response.let_go()
        started = call.started_ns or call.began_ns
        self.exchange = exchange = Exchange(
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
            wall_clock_stepped=self._receiver.bridge.stepped and not self._stepped,
            headers=tuple(response.headers),
            whole=call.transport == "complete" and answer.whole(response.status),
        )
        lateness.note_send(exchange.send_lag_ns)
        self._recorder.sample(exchange)
