"""One run: what is done in which order, and how it ends.

A comparison is three paired repetitions in the order A/B, B/A, A/B. Engines are started anew for each arm, so that
both arms pay the same start and none inherits the other's caches. Per arm: one native JSON warm-up a worker through
the worker's proxy, the snapshot, 16 round-robin warm-ups of which each worker must have received 8, then 24 main
requests at concurrency 8; after them every exchange must have its receipt.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence.campaign import Campaign, Case, Comparison, Lifecycle, read_campaign, request_path
from evidence.capture.adapters import hide_private
from evidence.capture.attempt import run_attempt
from evidence.capture.endings import Known
from evidence.capture.findings import watch_logs
from evidence.capture.gpu import take_snapshot
from evidence.capture.journal import NO_SPACE, DiskFull, Journal, Seconds, instant, open_run
from evidence.capture.lateness import LagMonitor
from evidence.capture.launch import SetupFailure
from evidence.capture.ledger import await_receipts, count_receipts, expect_counts
from evidence.capture.load import Exchange, Plan, offer_batch
from evidence.capture.needs import refuse_campaign
from evidence.capture.recorder import Recorder
from evidence.capture.tokens import ask_tokens, hash_tokens
from evidence.capture.topology import Topology
from evidence.capture.watch import Aborted, Watch
from evidence.errors import EvidenceError
from evidence.lifecycle.run import run_section
from evidence.progress import Progress

ORDER = ((1, "A"), (1, "B"), (2, "B"), (2, "A"), (3, "A"), (3, "B"))
CONCURRENCY = 8
RR_WARM = 16
MAIN = 24
WORKERS = 2
PER_ARM = WORKERS + RR_WARM + MAIN


@dataclass(frozen=True)
class CaptureResult:
    """The run folder, whether it is complete, and why not (code and message); for an attempt its outcome and what bears it."""

    run: Path
    complete: bool
    reason: str | None
    outcome: str | None
    message: str | None = None


def capture(campaign_path: Path, name: str, runs: Path, *, quiet: bool = False) -> CaptureResult:
    """Carries out the comparison, case or lifecycle protocol `name` and leaves a run folder in `runs` that says how it went.

    Raises EvidenceError before anything is started when the campaign or the name is wrong. Everything later is
    recorded: an abort gives a result that is not complete, with its reason code.
    """
    campaign = read_campaign(campaign_path)
    kind = campaign.kind(name)
    if kind not in ("comparison", "attempt"):
        return capture_lifecycle(campaign, campaign.lifecycle[name], runs)
    if kind == "attempt":
        refuse_case(campaign, campaign.cases[name])
    refuse_campaign(campaign, name)
    fixed = campaign.comparisons.get(name)
    bodies = () if fixed is None else (fixed.native_body, fixed.body)
    journal = open_run(runs, campaign, name, kind, bodies=bodies)
    try:
        return asyncio.run(carry_out(campaign, name, kind, journal, quiet))
    finally:
        journal.close()


def capture_lifecycle(campaign: Campaign, entry: Lifecycle, runs: Path) -> CaptureResult:
    """Carries out a lifecycle protocol, which keeps a run folder of its own form; a record is made of it afterwards."""
    if entry.record is not None:
        raise EvidenceError(
            f"{campaign.path}: lifecycle {entry.id!r} names the ready record {entry.record.name}, expected one to run",
            "take `record` out to capture it again",
        )
    outcome = run_section(entry.id, entry.protocol, entry.settings, campaign.folder, runs)
    reason = "OPERATOR" if outcome.stopped else outcome.faults[0][0] if outcome.faults else None
    return CaptureResult(outcome.run, outcome.complete, reason, None)


def refuse_case(campaign: Campaign, case: Case) -> None:
    """Refuses a case that there is nothing to attempt of."""
    if campaign.profiles[case.profile].state == "deferred":
        raise EvidenceError(
            f"{campaign.path}: the profile {case.profile!r} of case {case.id!r} is deferred, expected one that may run",
            "its outcome is USER_DEFERRED without an attempt; change the state to run it",
        )
    if case.surface == "native-pd":
        raise EvidenceError(
            f"{campaign.path}: case {case.id!r} is on surface native-pd, expected native, rr or exact",
            "native prefill/decode is reviewed by hand: describe it in [[prefill_decode]]",
        )
    if case.surface == "exact" and case.probe is None:
        raise EvidenceError(
            f"{campaign.path}: case {case.id!r} is on surface exact without a probe, expected `probe = FILE`",
            'a probe file holds {"request": {..}, "expectedTokenIds": [..]}',
        )


async def carry_out(campaign: Campaign, name: str, kind: str, journal: Journal, quiet: bool) -> CaptureResult:
    """The run itself; whatever ends it early is written down before this returns."""
    watch = Watch()
    reason, message, outcome = None, None, None
    comparison = campaign.comparisons.get(name)
    total = len(ORDER) * PER_ARM if comparison is not None else campaign.cases[name].requests
    with watch.listening(), Progress(total, quiet=quiet, title=name) as progress:
        try:
            if comparison is not None:
                await Session(campaign, comparison, journal, watch, progress).run()
            else:
                ended = await run_attempt(campaign, campaign.cases[name], journal, watch, progress)
                outcome, message = ended.outcome, ended.message and f"{ended.reason}, {ended.message}"
        except (Aborted, DiskFull, OSError) as end:
            reason, told = why_ended(end)
            message = hide_private(told)
            with contextlib.suppress(DiskFull):
                journal.write("aborted", reason=reason, message=message)
        except BaseException as error:
            with contextlib.suppress(DiskFull):
                journal.write("aborted", reason="RUNNER_DIED", message=hide_private(f"{type(error).__name__}: {error}"))
            raise
        with contextlib.suppress(DiskFull):
            journal.write("run-ended", endedAt=instant(journal.now()), complete=reason is None)
    return CaptureResult(journal.folder, reason is None, reason, outcome, message)


def why_ended(end: Aborted | DiskFull | OSError) -> tuple[str, str]:
    """The reason code and the message; what the system refuses is a full disk, or it ends the runner."""
    if isinstance(end, Aborted):
        return end.reason, end.message
    if isinstance(end, DiskFull):
        return "DISK_FULL", end.message
    return "DISK_FULL" if end.errno in NO_SPACE else "RUNNER_DIED", str(end)


class Session:
    """The order of events of one comparison."""

    def __init__(
        self, campaign: Campaign, comparison: Comparison, journal: Journal, watch: Watch, progress: Progress
    ) -> None:
        self.campaign, self.comparison, self.journal = campaign, comparison, journal
        self.watch, self.progress = watch, progress
        self.case: Case = campaign.cases[comparison.case]
        self.spec = campaign.engines[self.case.engine]

    async def run(self) -> None:
        """All six arms, one after the other."""
        for sequence, (repetition, arm) in enumerate(ORDER, 1):
            await self.run_arm(sequence, repetition, arm)

    async def run_arm(self, sequence: int, repetition: int, arm: str) -> None:
        """One arm from the start of its engines to their end. Its timeline is written however it ends."""
        setting = self.comparison.argument, self.comparison.baseline if arm == "A" else self.comparison.candidate
        name = f"r{repetition}-{arm.lower()}"
        topology = Topology(
            self.journal, self.watch, self.campaign, self.case, name, self.comparison.devices, setting
        )  # fmt: skip
        run = Arm(self, topology, Recorder(self.journal, repetition, arm), name, sequence == 1)
        run.recorder.write("arm-started", sequence=sequence, startedAt=instant(self.journal.now()))
        try:
            await self.watch.guard(run.serve())
        except SetupFailure as failure:
            reason = "ENGINE_DIED" if failure.reason == "ENGINE_DIED" else "ENGINE_NOT_READY"
            raise Aborted(reason, failure.message) from None
        finally:
            with contextlib.suppress(DiskFull):
                run.recorder.write("timeline", **run.timeline)
            await topology.stop()
        topology.refuse_ends()
        run.audit()
        run.recorder.write("arm-ended", wallSeconds=run.timeline["lastMainSeconds"])
        self.journal.sync()


class Arm:
    """The phases of one arm."""

    def __init__(self, session: Session, topology: Topology, recorder: Recorder, name: str, first: bool) -> None:
        self.first = first
        self.session, self.topology, self.recorder, self.name = session, topology, recorder, name
        self.comparison, self.progress = session.comparison, session.progress
        self.timeline: dict[str, Seconds | None] = dict.fromkeys(
            ("engineStartedSeconds", "readySeconds", "nativeWarmEndedSeconds", "snapshotSeconds", "rrWarmEndedSeconds",
             "firstMainSeconds", "lastMainSeconds")
        )  # fmt: skip
        self.exchanges: list[Exchange] = []
        self.known: Known = {}

    def mark(self, moment: str) -> None:
        self.timeline[moment] = self.recorder.since()

    async def serve(self) -> None:
        """Engines, proxies, gateway, warm-ups, snapshot, main batch."""
        topology = self.topology
        self.progress.phase(f"{self.name} start")
        await topology.start_engines()
        self.mark("engineStartedSeconds")
        await topology.start_proxies()
        await topology.await_ready()
        self.mark("readySeconds")
        if self.first:
            await topology.identify()
        await topology.await_proxies()
        await topology.start_gateway()
        await self.observe_input()
        await self.offer("native-warm", self.native_plans(), WORKERS)
        self.mark("nativeWarmEndedSeconds")
        await self.take_snapshot()
        await topology.check()
        self.mark("snapshotSeconds")
        await self.offer("rr-warm", self.rr_plans("rr-warm", RR_WARM), CONCURRENCY)
        self.mark("rrWarmEndedSeconds")
        counts = await await_receipts(topology.ledgers, WORKERS + RR_WARM)
        expect_counts(counts, dict.fromkeys(topology.ledgers, 1 + RR_WARM // WORKERS), f"{self.name} after warm-up")
        self.recorder.journal.sync()  # here and after the arm: inside a batch it would show as client lag
        await self.measure()

    def native_plans(self) -> list[Plan]:
        body = self.comparison.native_body
        return [
            self.plan("native-warm", place, "native", worker.alias, worker.proxy_url, body)
            for place, worker in enumerate(self.topology.workers, 1)
        ]

    def rr_plans(self, phase: str, count: int) -> list[Plan]:
        assert self.topology.gateway is not None
        url = self.topology.gateway.url
        return [self.plan(phase, place, "rr", None, url, self.comparison.body) for place in range(1, count + 1)]

    def plan(self, phase: str, place: int, route: str, worker: str | None, url: str, body: bytes) -> Plan:
        return Plan(
            f"{self.name}-{phase}-{place:03d}", self.recorder.repetition, self.recorder.arm, phase, route, worker,
            url + request_path(body), body, self.comparison.request_timeout_seconds, {},
        )  # fmt: skip

    async def offer(self, phase: str, plans: Sequence[Plan], concurrency: int) -> list[Exchange]:
        """One batch; a request that timed out ends the run once the whole batch is recorded."""
        self.progress.phase(f"{self.name} {phase}")
        exchanges = await offer_batch(
            plans,
            concurrency=concurrency,
            recorder=self.recorder,
            progress=lambda done, total: self.progress.advance(),
            known=self.known,
        )
        self.exchanges += exchanges
        await self.topology.check(exchanges)
        late = [exchange.offer for exchange in exchanges if exchange.transport == "timeout"]
        if late:
            limit = self.comparison.request_timeout_seconds
            raise Aborted(
                "TIME_OUT", f"{len(late)} of {len(exchanges)} requests had no end within {limit:g} s, first {late[0]}"
            )
        return exchanges

    async def measure(self) -> None:
        """The main batch with the client's own lag beside it and the engines' logs watched."""
        plans = self.rr_plans("main", MAIN)
        logs = {worker.alias: self.topology.log(worker.alias) for worker in self.topology.workers}
        self.mark("firstMainSeconds")
        async with watch_logs(self.topology.adapter.name, logs, self.comparison.allow_log_findings, self.recorder):
            monitor = LagMonitor(self.comparison.client_late_limit_seconds)
            try:
                async with monitor:
                    exchanges = await self.offer("main", plans, CONCURRENCY)
            finally:
                with contextlib.suppress(DiskFull):
                    recorder = self.recorder
                    stepped = recorder.stepped or recorder.journal.stepped
                    recorder.write("client", **monitor.record(), wallClockStepped=stepped, clock=recorder.clock)
        self.timeline["firstMainSeconds"] = self.recorder.since(min(exchange.started_ns for exchange in exchanges))
        self.timeline["lastMainSeconds"] = self.recorder.since(max(one.started_ns + one.total_ns for one in exchanges))

    async def take_snapshot(self) -> None:
        """What each device holds now; after the native warm-ups and before the round-robin ones."""
        snapshot = await take_snapshot(self.session.spec.snapshot, self.topology.engines)
        self.recorder.write("snapshot", takenSeconds=self.recorder.since(), **snapshot)

    async def observe_input(self) -> None:
        """For a date-sensitive comparison, the tokens that each worker makes of the rendered main request."""
        if self.comparison.comparison_date is None:
            return
        for worker in self.topology.workers:
            assert worker.engine is not None
            tokens = await ask_tokens(self.topology.adapter.name, worker.engine.url, self.comparison.body)
            if tokens.ids is not None:
                self.recorder.write(
                    "token-ids", worker=worker.alias, tokenIdsSha256=hash_tokens(tokens.ids), tokens=len(tokens.ids)
                )

    def audit(self) -> None:
        """Every answer has one receipt, and round robin gave both workers the same. What broke may have left none."""
        answered = sum(exchange.transport == "complete" for exchange in self.exchanges)
        counts = count_receipts(self.topology.ledgers)
        if answered == len(self.exchanges):
            each = 1 + (RR_WARM + MAIN) // WORKERS
            expect_counts(counts, dict.fromkeys(self.topology.ledgers, each), f"{self.name} after the main batch")
        elif not answered <= sum(counts.values()) <= len(self.exchanges):
            raise Aborted(
                "AUDIT_FAILED",
                f"{self.name}: found {sum(counts.values())} receipts, expected {answered} to {len(self.exchanges)}: "
                f"{len(self.exchanges)} exchanges, of which {answered} were answered",
            )
