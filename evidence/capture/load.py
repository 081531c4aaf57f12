"""The measuring client: offers requests at a fixed concurrency and records what came, strictly.

An offer is recorded before its first byte leaves and a sample within a second of its end, exactly once, however it ends:
refused, reset, timed out, closed early, garbage, or cancelled. Each request has a connection of its own unless
reuse is asked for; connecting is done before the clock starts and timed apart. Nothing is retried. The work is done
in a thread (`batch`); here stand the functions to await.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic_ns

from evidence.capture import lateness
from evidence.capture.batch import Loop
from evidence.capture.connections import resolve
from evidence.capture.endings import Known, Manners
from evidence.capture.job import Job, Order, is_stream, prepare
from evidence.capture.offers import Exchange, Plan, Recorder
from evidence.capture.request import parse_url

__all__ = ["Exchange", "Plan", "Recorder", "fetch", "offer_batch"]


async def offer_batch(
    plans: Sequence[Plan],
    *,
    concurrency: int,
    recorder: Recorder,
    progress: Callable[[int, int], None] | None = None,
    reuse: bool = False,
    known: Known | None = None,
) -> list[Exchange]:
    """Send `plans` in order, at most `concurrency` open at once, and return their exchanges in that order.

    A slot takes the next plan when its last exchange ended; that end is the next one's intended start. With
    `reuse` a slot keeps its connection while the server does. `known` keeps from batch to batch what was seen of servers. When the recorder fails or the batch is
    cancelled, every open offer still gets its sample and the error passes on. `recorder` and `progress` are called
    in a thread of the batch, one call at a time. Raises EvidenceError, before anything is offered, on a URL or
    header that cannot be sent.
    """
    if concurrency < 1:
        raise ValueError("concurrency must be at least 1")
    orders = prepare(plans, keep_alive=reuse)
    with lateness.told_by_reads():
        return await _carry_out(orders, concurrency, recorder, progress, {} if known is None else known)


async def fetch(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    timeout_seconds: float = 10.0,
    headers: Mapping[str, str] | None = None,
    *,
    dated: bool = True,
) -> Exchange:
    """Make one request that is no offer (a control, a readiness probe) and return what came of it.

    Without `dated` its times are the process's own. It never raises for what the server does; `transport` and `status` say it. Raises EvidenceError on a URL or
    header that cannot be sent.
    """
    plan = Plan("", None, None, "control", "native", None, url, body or b"", timeout_seconds, headers or {})
    order = Order(plan, parse_url(url), method, body, is_stream(body or b""), False)
    return (await _carry_out([order], 1, _NoRecorder(), None, {}, dated=dated))[0]


class _NoRecorder:
    def offer(self, plan: Plan, intended_ns: int) -> None:
        """A control is not an offer."""

    def sample(self, exchange: Exchange) -> None:
        """A control is not a sample."""


class _Slots:
    """Deals the orders out to slots, and keeps what became of them."""

    def __init__(
        self,
        orders: Sequence[Order],
        slots: int,
        recorder: Recorder,
        progress: Callable[[int, int], None] | None,
        dated: bool,
    ) -> None:
        self.orders, self.recorder, self.progress = orders, recorder, progress
        self.loop = Loop(slots, self.take, dated=dated)
        self.found: list[Exchange | None] = [None] * len(orders)
        self.last: list[Job | None] = [None] * slots
        self.taken = 0
        self.begun_ns = monotonic_ns()
        self.finished = 0

    def take(self, slot: int) -> Job | None:
        """The next job of a slot, whose last one has ended."""
        before, self.last[slot] = self.last[slot], None
        intended, kept = self.begun_ns, None
        if before is not None:
            intended, kept = before.call.over_ns, before.kept
        if self.taken == len(self.orders):
            if kept is not None:
                kept.close()
            return None
        number = self.taken
        self.taken += 1
        keep = partial(self._keep, number)
        job = self.last[slot] = Job(self.orders[number], intended, self.recorder, self.loop.bridge, keep, kept)
        return job

    def _keep(self, number: int, exchange: Exchange) -> None:
        """Keep what became of an order."""
        self.found[number] = exchange
        self.finished += 1
        if self.progress is not None:
            self.progress(self.finished, len(self.orders))

    def close(self) -> list[Exchange]:
        """Let go of connections that were kept for a next request; all exchanges, in the order of the plans."""
        for one in self.last:
            if one is not None and one.kept is not None:
                one.kept.close()
        return [exchange for exchange in self.found if exchange is not None]


async def _carry_out(
    orders: list[Order],
    concurrency: int,
    recorder: Recorder,
    progress: Callable[[int, int], None] | None,
    known: Known,
    *,
    dated: bool = True,
) -> list[Exchange]:
    """Run a batch in its thread, and see it end even when this is cancelled."""
    addresses = {target: await resolve(target) for target in {order.target for order in orders}}
    for order in orders:
        order.addresses, order.manners = addresses[order.target], known.setdefault(order.target, Manners())
    slots = _Slots(orders, min(concurrency, len(orders)), recorder, progress, dated)
    loop = asyncio.get_running_loop()
    over: asyncio.Future[BaseException | None] = loop.create_future()

    def work() -> None:
        problem: BaseException | None = None
        try:
            slots.loop.run()
        except BaseException as error:
            problem = error
        finally:
            loop.call_soon_threadsafe(over.set_result, problem)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="batch", daemon=True)
    thread.start()
    try:
        problem = await asyncio.shield(over)
    except asyncio.CancelledError:
        slots.loop.stop()
        # The samples of what was open are worth the few milliseconds, whoever cancels again.
        while not over.done():
            try:
                await asyncio.shield(over)
            except asyncio.CancelledError:
                continue
        raise
    finally:
        thread.join()
        exchanges = slots.close()
    if problem is not None:
        raise problem
    return exchanges
