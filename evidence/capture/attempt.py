"""One try at a case: set-up, controls, requests on its surface, and how it came out.

A set-up that fails is an attempt too, with its outcome and no traffic. docs/format.md, section 5, orders the
outcomes; `decide` is that order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from evidence.build.classify import classify, read_request
from evidence.campaign import Campaign, Case, request_path
from evidence.capture.adapters import hide_private
from evidence.capture.engines import Engine
from evidence.capture.exchange import Answer, ExchangeFailed, exchange
from evidence.capture.journal import Journal
from evidence.capture.launch import SetupFailure
from evidence.capture.ledger import await_receipts, read_receipts
from evidence.capture.load import Exchange, Plan, offer_batch
from evidence.capture.recorder import Recorder
from evidence.capture.tokens import Tokens, ask_tokens
from evidence.capture.topology import Topology
from evidence.capture.watch import Aborted, Watch
from evidence.progress import Progress

CONCURRENCY = 8
CONTROL_SECONDS = 10.0
SETUP = {
    "ACCESS_DENIED": "BLOCKED_ACCESS",
    "PROGRAM_NOT_FOUND": "MISSING_IMAGE",
    "MODEL_NOT_FOUND": "MISSING_STORAGE",
    "DISK_TOO_SMALL": "MISSING_STORAGE",
    "NOT_READY": "NATIVE_FAILURE",
    "ENGINE_DIED": "NATIVE_FAILURE",
}


@dataclass(frozen=True)
class Outcome:
    """One of the nine outcomes, the code of its reason, and a message for a person."""

    outcome: str
    reason: str
    message: str | None = None


async def run_attempt(campaign: Campaign, case: Case, journal: Journal, watch: Watch, progress: Progress) -> Outcome:
    """Carries the attempt out and journals its outcome, which is returned. Raises Aborted when there is none."""
    topology = Topology(journal, watch, campaign, case, "attempt", case.devices)
    attempt = Attempt(case, topology, Recorder(journal, None, None), progress)
    try:
        try:
            found = await watch.guard(attempt.serve())
        finally:
            await topology.stop()
        topology.refuse_ends()
    except SetupFailure as failure:
        found = Outcome(SETUP[failure.reason], failure.reason, failure.message)
    except Aborted as end:
        if end.reason != "ENGINE_DIED":
            raise
        found = Outcome("NATIVE_FAILURE", end.reason, end.message)
    message = None if found.message is None else hide_private(found.message)
    journal.write("outcome", outcome=found.outcome, reason=found.reason, message=message)
    return Outcome(found.outcome, found.reason, message)


class Attempt:
    """The phases of one attempt."""

    def __init__(self, case: Case, topology: Topology, recorder: Recorder, progress: Progress) -> None:
        self.case, self.topology, self.recorder, self.progress = case, topology, recorder, progress

    async def serve(self) -> Outcome:
        """Everything from the start of the engines to the verdict on what they answered."""
        case, topology = self.case, self.topology
        self.progress.phase(f"{case.id} start")
        await topology.start_engines()
        await topology.start_proxies()
        await topology.await_ready()
        await topology.identify()
        await topology.await_proxies()
        tokens: dict[str, Tokens] = {}
        if case.surface != "native":
            await topology.start_gateway(exact=case.surface == "exact")
        await self.take_controls([kind for kind in case.controls if kind != "metrics"])
        if case.surface == "exact" and case.probe is not None:
            tokens = await self.observe_tokens()
        self.progress.phase(f"{case.id} {case.surface}")
        exchanges = await offer_batch(
            self.plans(), concurrency=CONCURRENCY, recorder=self.recorder,
            progress=lambda done, total: self.progress.advance(),
        )  # fmt: skip
        await topology.check(exchanges)
        await self.take_controls([kind for kind in case.controls if kind == "metrics"])
        if all(one.transport == "complete" and one.status == 200 for one in exchanges):
            await await_receipts(topology.ledgers, len(exchanges))
        await topology.stop_passing()
        self.recorder.journal.sync()
        served = {
            worker: [str(receipt["requestId"]) for receipt in read_receipts(path)]
            for worker, path in topology.ledgers.items()
        }
        found = decide(case, topology.adapter.owes_done, exchanges, served, tokens)
        if case.surface == "exact":
            self.record_exact(served, tokens)
        return found

    def plans(self) -> list[Plan]:
        """The offers in order: native ones to the workers in turn, the others to the gateway."""
        case, workers, gateway = self.case, self.topology.workers, self.topology.gateway
        path = request_path(case.body)
        plans = []
        for place in range(case.requests):
            worker = workers[place % len(workers)]
            direct = case.surface == "native" or gateway is None
            url = worker.proxy_url if direct or gateway is None else gateway.url
            plans.append(
                Plan(
                    f"attempt-{place + 1:03d}", None, None, "functional", case.surface, worker.alias if direct else None,
                    url + path, case.body, case.request_timeout_seconds, {},
                )
            )  # fmt: skip
        return plans

    async def take_controls(self, kinds: Sequence[str]) -> None:
        """Asks each engine itself, past its proxy, so that a withheld answer is nowhere among the bodies."""
        for kind in kinds:
            for worker in self.topology.workers:
                assert worker.engine is not None
                path = control_path(worker.engine, kind)
                try:
                    answer: Answer | None = await exchange(worker.engine.url + path, seconds=CONTROL_SECONDS)
                except ExchangeFailed:
                    answer = None
                self.record_control(f"{kind}-{worker.alias}", kind, worker.alias, path, answer)

    def record_control(self, control: str, kind: str, worker: str, path: str, answer: Answer | None) -> None:
        body, reason = answer.body if answer else b"", self.case.withhold.get(kind)
        digest = hashlib.sha256(body).hexdigest() if reason is not None else self.recorder.journal.body(body)
        self.recorder.journal.write(
            "control", id=control, kind=kind, worker=worker, path=path, status=answer.status if answer else None,
            sha256=digest, bytes=len(body), kept=reason is None, withheldReason=reason,
        )  # fmt: skip

    async def observe_tokens(self) -> dict[str, Tokens]:
        """What each worker's tokenize route makes of the probe, where the engine has one."""
        tokens = {}
        if "tokenize" in self.topology.adapter.lacks:
            return {}
        for worker in self.topology.workers:
            assert worker.engine is not None
            tokens[worker.alias] = await ask_tokens(self.topology.adapter.name, worker.engine.url, self.case.body)
            self.record_control(
                f"tokenize-{worker.alias}", "tokenize", worker.alias, "/tokenize", tokens[worker.alias].answer
            )
        return tokens

    def record_exact(self, served: dict[str, list[str]], tokens: dict[str, Tokens]) -> None:
        """What exact admission came to: tokens expected and observed, and which workers had traffic."""
        probe = self.case.probe
        expected = list(probe.expected_token_ids) if probe is not None else []
        known = {worker: one for worker, one in tokens.items() if one.ids is not None}
        differing = [worker for worker, one in known.items() if one.ids != tuple(expected)]
        worker = differing[0] if differing else next(iter(known), None)
        observed = known[worker].ids if worker is not None else None
        traffic = {name: len(ids) for name, ids in served.items()}
        engaged = sum(count > 0 for count in traffic.values())
        self.recorder.journal.write(
            "exact", requestSha256=hashlib.sha256(self.case.body).hexdigest(), expectedTokenIds=expected,
            observedTokenIds=None if observed is None else list(observed),
            control=f"tokenize-{worker}" if worker is not None else None,
            tokenIdsEqual=None if observed is None else not differing,
            engagement="REJECTED" if engaged == 0 else "ADMITTED" if engaged == len(traffic) else "PARTIAL_ONE_PREFILL",
            trafficPerWorker=traffic,
        )  # fmt: skip


def control_path(engine: Engine, kind: str) -> str:
    """The route of a control on this engine."""
    if kind == "version" and engine.adapter.version_route is not None:
        return engine.adapter.version_route[0]
    return {"models": "/v1/models", "health": "/health", "version": "/version", "metrics": "/metrics"}[kind]


def refused(case: Case, exchanges: Sequence[Exchange], served: dict[str, list[str]]) -> bool:
    """Whether the exact gateway turned the requests away: no worker has a receipt of any."""
    return case.surface == "exact" and bool(exchanges) and not any(served.values())


def decide(
    case: Case, owes_done: bool, exchanges: Sequence[Exchange], served: dict[str, list[str]], tokens: dict[str, Tokens]
) -> Outcome:
    """The outcome of an attempt whose engines were ready; the first rule that applies decides."""
    shape = read_request(case.body)
    away = refused(case, exchanges, served)
    readings = [
        classify(one.transport, one.status, shape, one.response_body, owes_done=owes_done).classification
        for one in exchanges
    ]
    bad = [reading for reading in readings if reading not in ("NORMAL", "CAPPED")]
    if bad and not away:
        return Outcome("NATIVE_FAILURE", "BAD_ANSWER", f"{len(bad)} of {len(exchanges)} answers, the first {bad[0]}")
    counts = {worker: len(ids) for worker, ids in served.items()}
    told = ", ".join(f"{worker} {count}" for worker, count in counts.items())
    if case.surface == "exact":
        expected = case.probe.expected_token_ids if case.probe is not None else ()
        differing = [worker for worker, one in tokens.items() if one.ids is not None and one.ids != expected]
        if differing:
            return Outcome(
                "EXACT_REJECTED", "TOKENS_DIFFER", f"{differing[0]} sees other tokens than the probe expects"
            )
        if away:
            return Outcome("EXACT_REJECTED", "NOT_ADMITTED", f"the gateway refused all {len(exchanges)} requests")
        if sum(count > 0 for count in counts.values()) < len(counts):
            return Outcome("EXACT_PARTIAL_ONE_PREFILL", "ONE_PREFILL", f"receipts: {told}")
    if case.surface == "rr" and len(set(counts.values())) != 1:
        return Outcome("NATIVE_FAILURE", "ROUTING_UNEQUAL", f"receipts: {told}")
    if "NORMAL" not in readings:
        return Outcome("NATIVE_FAILURE", "BAD_ANSWER", "every answer was capped, expected at least one normal one")
    return Outcome("SUCCESS", "OK")
