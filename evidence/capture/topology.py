"""What one arm or attempt stands on: client -> gateway -> recording proxy before each worker -> engine process."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence import shipped
from evidence.campaign import Campaign, Case, EngineSpec, Profile
from evidence.capture.adapters import Adapter, find_adapter
from evidence.capture.engines import Engine, attach_engine, start_engine
from evidence.capture.gateway import ExactRule, Gateway, start_gateway
from evidence.capture.identity import identify
from evidence.capture.journal import Journal
from evidence.capture.launch import SetupFailure
from evidence.capture.processes import Exit, Process, choose_port, start_process
from evidence.capture.watch import Aborted, Watch
from evidence.errors import EvidenceError

PROXY_SECONDS = 20.0


@dataclass
class Worker:
    """One worker: its alias and device, and what runs for it."""

    alias: str
    device_alias: str
    device: str
    ledger: Path
    engine: Engine | None = None
    proxy: Process | None = None
    proxy_url: str = ""


class Topology:
    """Starts and stops the processes of `arm` and journals each start and end."""

    def __init__(
        self, journal: Journal, watch: Watch, campaign: Campaign, case: Case, arm: str, devices: Sequence[str],
        setting: tuple[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.journal, self.watch, self.campaign, self.case, self.arm, self.setting = (
            journal,
            watch,
            campaign,
            case,
            arm,
            setting,
        )
        self.gateway: Gateway | None = None
        self.engine_deaths: list[asyncio.Task[None]] = []
        self.passing_deaths: list[asyncio.Task[None]] = []
        witness = journal.folder / "witness" / arm
        witness.mkdir(parents=True)
        self.workers = [
            Worker(f"worker-{place}", f"device-{place}", device, witness / f"worker-{place}.jsonl")
            for place, device in enumerate(devices, 1)
        ]

    @property
    def ledgers(self) -> dict[str, Path]:
        """The ledger of each worker, by alias."""
        return {worker.alias: worker.ledger for worker in self.workers}

    @property
    def engines(self) -> list[Engine]:
        """The engines that were started."""
        return [worker.engine for worker in self.workers if worker.engine is not None]

    @property
    def adapter(self) -> Adapter:
        """What is known of this kind of engine."""
        return find_adapter(self.campaign.engines[self.case.engine].adapter)

    async def start_engines(self) -> None:
        """Starts every engine and journals the launch of each. Raises SetupFailure when one cannot be started."""
        spec, profile = self.campaign.engines[self.case.engine], self.campaign.profiles[self.case.profile]
        for place, worker in enumerate(self.workers):
            try:
                worker.engine = await self.start_engine(spec, profile, worker, place)
            except SetupFailure:
                raise
            except EvidenceError as error:
                raise Aborted("ENGINE_NOT_READY", f"{worker.alias}: {error.message}") from None
            self.journal.write(
                "engine-started", worker=worker.alias, arguments=list(worker.engine.arguments),
                argumentsSha256=worker.engine.arguments_sha256, environment=dict(worker.engine.environment),
            )  # fmt: skip
            self.expect(worker.engine.died.wait(), "ENGINE_DIED", f"{worker.alias}: the engine ended by itself")

    async def start_engine(self, spec: EngineSpec, profile: Profile, worker: Worker, place: int) -> Engine:
        """One engine: started here, or the one that runs already at the campaign's URL for this place."""
        if spec.urls:
            return attach_engine(spec, worker=worker.alias, device=worker.device, index=place)
        return await start_engine(
            spec, worker=worker.alias, device=worker.device, port=choose_port(), setting=self.setting,
            log_path=self.log(worker.alias), arguments=self.case.arguments,
            model=self.campaign.model_of(profile, spec), served_name=profile.id, gated=profile.state == "gated",
        )  # fmt: skip

    async def await_ready(self) -> None:
        """Waits for a real token of every engine and journals the proof. Raises SetupFailure when none comes."""
        proofs = await asyncio.gather(*(engine.ready() for engine in self.engines), return_exceptions=True)
        for worker, proof in zip(self.workers, proofs, strict=True):
            if isinstance(proof, BaseException):
                raise proof
            self.journal.write(
                "engine-ready", worker=worker.alias, requestSha256=self.journal.body(proof.request),
                responseSha256=self.journal.body(proof.response),
            )  # fmt: skip

    async def identify(self) -> None:
        """Journals what the engine says that it is, beside what the campaign declares. Both workers run the same one."""
        engine, spec = self.engines[0], self.campaign.engines[self.case.engine]
        self.journal.write("identity", **(await identify(engine, spec.identity)).entry(spec.id))

    async def start_proxies(self) -> None:
        """Starts the witness before each worker; it needs no engine that answers yet."""
        program = shipped.verifiers() / "receipt-proxy.py"
        for worker in self.workers:
            assert worker.engine is not None
            command = [
                sys.executable, "-I", "-S", "-B", str(program), "--upstream", worker.engine.url, "--worker", worker.alias,
                "--ledger", str(worker.ledger), "--bodies", str(self.journal.folder / "witness" / "bodies"),
                "--drain-seconds", "5",
            ]  # fmt: skip
            name = f"the proxy of {worker.alias}"
            worker.proxy = await start_process(name, command, log_path=self.log(f"{worker.alias}-proxy"))

    async def await_proxies(self) -> None:
        """Waits until every witness listens, and journals which program it is."""
        digest = hashlib.sha256((shipped.verifiers() / "receipt-proxy.py").read_bytes()).hexdigest()
        for worker in self.workers:
            assert worker.proxy is not None
            worker.proxy_url = f"http://{await announced(worker.proxy)}"
            self.expect(worker.proxy.died.wait(), "PROXY_DIED", f"{worker.proxy.name} ended by itself")
            self.journal.write("proxy-ready", worker=worker.alias, sha256=digest)

    async def start_gateway(self, *, exact: bool = False) -> None:
        """Starts the campaign's gateway, or the built-in one, over the proxies."""
        urls = [worker.proxy_url for worker in self.workers]
        spec = self.campaign.gateway
        config = spec.config.path if spec is not None and spec.config is not None else None
        rule = None
        if exact and self.case.probe is not None:
            rule = ExactRule(self.adapter.name, self.case.probe.expected_token_ids)
        try:
            self.gateway = await start_gateway(spec, urls, self.log("gateway"), config=config, exact=rule)
        except EvidenceError as error:
            raise Aborted("GATEWAY_DIED", error.message) from None
        self.journal.write("gateway-ready", **self.gateway.identity())
        if self.gateway.process is not None:
            self.expect(self.gateway.process.died.wait(), "GATEWAY_DIED", "the gateway ended by itself")

    def expect(self, event: Awaitable[object], reason: str, message: str) -> None:
        """From now on `event` ends the run with `reason`, until `stop` is called."""
        deaths = self.engine_deaths if reason == "ENGINE_DIED" else self.passing_deaths
        deaths.append(self.watch.on(event, reason, lambda: message))

    def log(self, name: str) -> Path:
        """Where the output of a process goes."""
        return self.journal.folder / "logs" / f"{self.arm}-{name}.log"

    async def stop(self) -> None:
        """Ends everything from the client's side inwards, so that every exchange that is open gets its receipt."""
        for task in self.engine_deaths:
            task.cancel()
        await self.stop_passing()
        await asyncio.gather(*(self.stop_engine(worker) for worker in self.workers))

    async def stop_passing(self) -> None:
        """Ends gateway and proxies; afterwards every exchange has its receipt."""
        for task in self.passing_deaths:
            task.cancel()
        if self.gateway is not None:
            await self.gateway.stop()
        await asyncio.gather(*(worker.proxy.stop() for worker in self.workers if worker.proxy is not None))

    async def stop_engine(self, worker: Worker) -> None:
        """Ends one engine and journals how it ended."""
        engine, worker.engine = worker.engine, None
        ended = None if engine is None else await engine.stop()
        if ended is not None:
            self.journal.write("engine-stopped", worker=worker.alias, **fate(ended))


def fate(ended: Exit) -> dict[str, object]:
    """How a process ended, as the journal says it."""
    how: dict[str, object] = {"exitCode": ended.exit_code} if ended.signal is None else {"signal": ended.signal}
    return how | {"expected": ended.expected}


async def announced(proxy: Process) -> str:
    """Where a proxy listens; the run ends when it does not say so."""
    try:
        return await proxy.announcement(PROXY_SECONDS)
    except EvidenceError as error:
        raise Aborted("PROXY_DIED", error.message) from None
