"""What one arm or attempt stands on: client -> gateway -> recording proxy before each worker -> engine process."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Iterable, Sequence
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
from evidence.capture.load import Exchange
from evidence.capture.processes import Exit, Process, choose_port, start_process
from evidence.capture.pulse import Part, refuse_gone
from evidence.capture.watch import Aborted, Watch
from evidence.errors import EvidenceError

PROXY_SECONDS = 20.0


@dataclass
class Worker:
    """One worker: its alias and device, and what runs for it."""

    alias: str
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
        self.ends: dict[str, Aborted] = {}
        witness = journal.folder / "witness" / arm
        witness.mkdir(parents=True)
        self.workers = [
            Worker(f"worker-{place}", device, witness / f"worker-{place}.jsonl")
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
            self.expect(engine_part(worker), self.engine_deaths)

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
            self.expect(proxy_part(worker), self.passing_deaths)
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
        self.expect(gateway_part(self.gateway), self.passing_deaths)

    def expect(self, part: Part, deaths: list[asyncio.Task[None]]) -> None:
        """From now on the end of `part` ends the run, until `stop` is called."""
        if part.process is not None:
            deaths.append(self.watch.on(part.process.died.wait(), part.end))

    @property
    def parts(self) -> list[Part]:
        """What the run stands on now, from the engines outwards: the first that is gone is why the others fail."""
        parts = [engine_part(worker) for worker in self.workers if worker.engine is not None]
        parts += [proxy_part(worker) for worker in self.workers if worker.proxy_url]
        return parts if self.gateway is None else [*parts, gateway_part(self.gateway)]

    async def check(self, exchanges: Iterable[Exchange] = ()) -> None:
        """Raises Aborted when an engine, a proxy or the gateway is gone.

        News of an end take their way, and a fast failure overtakes them. Where one of `exchanges` broke, each part
        must also take a connection: a process gives up its sockets before it has ended, and of one that the runner
        did not start there is no other sign. A moment of waiting covers what lies between the two.
        """
        broken = any(one.transport != "complete" or one.status is None or one.status >= 500 for one in exchanges)
        await refuse_gone(self.parts, connecting=broken)
        if broken:
            await self.watch.await_news()
            await refuse_gone(self.parts, connecting=True)

    def refuse_ends(self) -> None:
        """After `stop`: raises Aborted when a part had ended before it was asked to, or could not record."""
        for reason in ("DISK_FULL", "ENGINE_DIED", "PROXY_DIED", "GATEWAY_DIED"):
            for end in self.ends.values():
                if end.reason == reason:
                    raise end

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
            self.note_end(gateway_part(self.gateway), await self.gateway.stop())
        proxies = [(proxy_part(worker), worker.proxy) for worker in self.workers if worker.proxy is not None]
        for (part, _), ended in zip(proxies, await asyncio.gather(*(one.stop() for _, one in proxies)), strict=True):
            self.note_end(part, ended)

    def note_end(self, part: Part, ended: Exit | None) -> None:
        """Keeps an end that is none of ours."""
        if ended is not None and (not ended.expected or part.failed_to_record):
            self.ends[part.name] = part.end()

    async def stop_engine(self, worker: Worker) -> None:
        """Ends one engine and journals how it ended."""
        if worker.engine is None:
            return
        part, engine, worker.engine = engine_part(worker), worker.engine, None
        ended = await engine.stop()
        self.note_end(part, ended)
        if ended is not None:
            self.journal.write("engine-stopped", worker=worker.alias, **fate(ended))


def engine_part(worker: Worker) -> Part:
    """The engine of a worker, as a part that must not end."""
    assert worker.engine is not None
    return Part("ENGINE_DIED", f"{worker.alias}: the engine", worker.engine.url, worker.engine.process)


def proxy_part(worker: Worker) -> Part:
    """The witness before a worker, as a part that must not end."""
    return Part("PROXY_DIED", f"the proxy of {worker.alias}", worker.proxy_url, worker.proxy)


def gateway_part(gateway: Gateway) -> Part:
    """The gateway, as a part that must not end."""
    return Part("GATEWAY_DIED", "the gateway", gateway.url, gateway.process)


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
