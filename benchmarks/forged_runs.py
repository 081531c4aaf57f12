"""Run folders as capture leaves them, written by capture's own recorder under a clock that is told the time.

For benchmarks of scale and for tests of the builder: the journal, the samples and the bodies go through the same code
as in a capture, the answers are the synthetic engine's, only nobody waits. What is made here says `synthetic`.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from evidence.campaign import Campaign, read_campaign
from evidence.capture.journal import Journal, Seconds, encode, instant, open_run
from evidence.capture.load import Exchange, Plan
from evidence.capture.recorder import Recorder
from evidence.capture.synthetic_answers import DONE, compose_answer

EPOCH = datetime(2026, 1, 1, 8, 0, 0, tzinfo=timezone.utc)
ORDER = ((1, "A"), (1, "B"), (2, "B"), (2, "A"), (3, "A"), (3, "B"))
MS = 1_000_000


class Killed(Exception):
    """The run ends here as if its process had been killed."""


@dataclass(frozen=True)
class Shape:
    """How a forged comparison runs. Pairs are baseline and candidate; times in milliseconds."""

    ttft_ms: tuple[float, float] = (100.0, 80.0)
    used_bytes: tuple[int | None, int | None] = (1000, 600)
    tokens: tuple[int, int] = (24, 24)
    seed: int = 0
    killed_after: int | None = None  # journal events of the kind offer or sample
    aborted_after: int | None = None
    alter: Callable[[Exchange], Exchange] = lambda exchange: exchange
    upstream: Callable[[str, bytes], tuple[bytes, bool]] = lambda _, body: (body, True)


class Clock:
    """Monotonic nanoseconds that only move when told, and the wall clock beside them."""

    def __init__(self, began: datetime) -> None:
        self.now = 10**12
        self.began = began

    def __call__(self) -> int:
        return self.now

    def reach(self, at: int) -> None:
        self.now = max(self.now, at)


@dataclass
class _Forge:
    journal: Journal
    clock: Clock
    shape: Shape
    profile: str
    written: int = 0

    def step(self) -> None:
        """Count an offer or sample, and end the run where its shape says so."""
        self.written += 1
        if self.written == self.shape.killed_after:
            raise Killed
        if self.written == self.shape.aborted_after:
            self.journal.write("aborted", reason="OPERATOR", message="stopped by SIGINT")
            self.journal.write("run-ended", endedAt=_at(self.clock), complete=False)
            raise Killed

    def answer(self, body: bytes, offer: str, tokens: int) -> bytes:
        request = json.loads(body)
        answer = compose_answer(
            request, body, request_id=f"{self.journal.folder.name}/{offer}", model=self.profile, seed=self.shape.seed,
            length=tokens, tokens_per_piece=1, chat=True, fault="",
        )  # fmt: skip
        if request.get("stream") is not True:
            return answer.whole()
        events = [answer.role_event(), *answer.piece_events(), answer.finish_event(), answer.usage_event(), DONE]
        return b"".join(events)

    def batch(
        self, recorder: Recorder, plans: list[Plan], ledgers: _Ledgers, concurrency: int, ttft: int, tokens: int
    ) -> None:
        """Offer the plans with so many open at once, each journal line at its own time."""
        free = [self.clock.now] * concurrency
        moments: list[tuple[int, int, Callable[[], None]]] = []
        for place, plan in enumerate(plans):
            intended = heapq.heappop(free)
            started = intended + 200_000 + 1000 * place
            late = random.Random(f"{plan.offer}/{self.shape.seed}").randrange(1000, MS)
            total = ttft + tokens * MS + late
            heapq.heappush(free, started + total)
            worker = plan.worker or ("worker-1", "worker-2")[place % 2]
            exchange = self.exchange(plan, started, intended, ttft + late // 2, total, tokens)
            moments.append(
                (started - 100_000, 2 * place, lambda plan=plan, intended=intended: recorder.offer(plan, intended))
            )
            moments.append(
                (started + total + 50_000, 2 * place + 1, lambda exchange=exchange: recorder.sample(exchange))
            )
            ledgers.add(worker, plan, exchange, self.shape)
        for at, _, write in sorted(moments, key=lambda moment: moment[:2]):
            self.clock.reach(at)
            write()
            self.step()
        self.clock.now += MS

    def exchange(self, plan: Plan, started: int, intended: int, ttft: int, total: int, tokens: int) -> Exchange:
        body = self.answer(plan.body, plan.offer, tokens)
        streamed = json.loads(plan.body).get("stream") is True
        exchange = Exchange(
            offer=plan.offer, repetition=plan.repetition, arm=plan.arm, phase=plan.phase, route=plan.route,
            worker=plan.worker, request_sha256=hashlib.sha256(plan.body).hexdigest(), request_bytes=len(plan.body),
            response_body=body, status=200, transport="complete", error=None, started_ns=started, intended_ns=intended,
            ttft_ns=ttft if streamed else None, reasoning_ns=None, total_ns=total, finish_reason="stop",
            prompt_tokens=1, completion_tokens=tokens, retry_after=None, clock="kernel", event_ns=(), whole=True,
        )  # fmt: skip
        return self.shape.alter(exchange)


class _Ledgers:
    """The ledgers of one arm or attempt, and the proxies' bodies."""

    def __init__(self, folder: Path, arm: str, origin: int) -> None:
        self.folder, self.origin = folder / "witness" / arm, origin
        self.bodies = folder / "witness/bodies"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows: dict[str, list[dict[str, Any]]] = {"worker-1": [], "worker-2": []}

    def add(self, worker: str, plan: Plan, exchange: Exchange, shape: Shape) -> None:
        rows = self.rows[worker]
        response, complete = shape.upstream(plan.offer, exchange.response_body)
        streamed = json.loads(plan.body).get("stream") is True
        rows.append({
            "sequence": len(rows) + 1, "requestId": plan.offer, "method": "POST", "path": "/v1/chat/completions",
            "traffic": True, "requestSha256": self.keep(plan.body), "requestBytes": len(plan.body),
            "responseSha256": self.keep(response), "responseBytes": len(response), "status": 200, "complete": complete,
            "reason": None if complete else "client-closed",
            "startedSeconds": Seconds(exchange.started_ns - self.origin + 50_000),
            "endedSeconds": Seconds(exchange.started_ns + exchange.total_ns - self.origin - 50_000),
            "requestHeaders": {"content-type": "application/json", "x-request-id": plan.offer},
            "responseHeaders": {"content-type": "text/event-stream" if streamed else "application/json"},
        })  # fmt: skip

    def keep(self, body: bytes) -> str:
        name = hashlib.sha256(body).hexdigest()
        path = self.bodies / name
        if not path.exists():
            path.write_bytes(body)
        return name

    def write(self, until: int | None = None) -> None:
        """Write the receipts that ended before `until`, in the order of their ends, as the proxy does."""
        for worker, rows in self.rows.items():
            ended = [row for row in rows if until is None or row["endedSeconds"].nanoseconds <= until - self.origin]
            ended.sort(key=lambda row: row["endedSeconds"].nanoseconds)
            (self.folder / f"{worker}.jsonl").write_text("".join(encode(row) + "\n" for row in ended), encoding="utf-8")
            begun = [row for row in rows if until is None or row["startedSeconds"].nanoseconds <= until - self.origin]
            lines = [{key: row[key] for key in ("sequence", "requestId", "path")} for row in begun]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.folder / f"{worker}.jsonl.open").write_text(text, encoding="utf-8")


def _at(clock: Clock) -> str:
    return instant(clock.began + timedelta(microseconds=(clock.now - 10**12) // 1000))


def _open(runs: Path, campaign: Campaign, name: str, kind: str, number: int) -> tuple[Journal, Clock]:
    clock = Clock(EPOCH + timedelta(minutes=number))
    journal = open_run(runs, campaign, name, kind, clock.began)
    journal.clock, journal.started_ns = clock, clock.now
    return journal, clock


def _start(journal: Journal, clock: Clock, campaign: Campaign, case_id: str, setting: list[str]) -> None:
    """Journal the start of both engines, their proofs, the proxies and the gateway."""
    case = campaign.cases[case_id]
    engine = campaign.engines[case.engine]
    count = 1 if case.topology == "single" else 2
    arguments = [
        "synthetic-engine",
        "--host",
        "{host}",
        "--port",
        "{port}",
        *engine.arguments,
        *case.arguments,
        *setting,
    ]
    for place in range(1, count + 1):
        clock.now += 50 * MS
        digest = hashlib.sha256("\0".join([*arguments, str(place)]).encode()).hexdigest()
        journal.write(
            "engine-started", worker=f"worker-{place}", arguments=arguments, argumentsSha256=digest, environment={}
        )
    ask = json.dumps({"messages": [{"role": "user", "content": "ready?"}], "max_tokens": 1}).encode()
    answer = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"amber"},"finish_reason":"length"}]}'
    for place in range(1, count + 1):
        clock.now += 50 * MS
        journal.write(
            "engine-ready",
            worker=f"worker-{place}",
            requestSha256=journal.body(ask),
            responseSha256=journal.body(answer),
        )
        journal.write("proxy-ready", worker=f"worker-{place}", sha256="0" * 64)
    journal.write(
        "identity", engine=engine.id, version=engine.version, source="reported",
        identity=[{"name": "reported-version", "value": engine.version, "sha256": None}],
    )  # fmt: skip
    if case.surface != "native":
        journal.write("gateway-ready", kind="built-in", name="round-robin", sha256="1" * 64, reason=None)


def forge_comparison(runs: Path, campaign: Campaign, name: str, number: int = 0, shape: Shape | None = None) -> Path:
    """One comparison, complete unless its shape ends it early; `number` is the minute at which it began."""
    journal, clock = _open(runs, campaign, name, "comparison", number)
    forge = _Forge(journal, clock, shape or Shape(), campaign.cases[campaign.comparisons[name].case].profile)
    with suppress(Killed):
        for sequence, (repetition, arm) in enumerate(ORDER, 1):
            _forge_arm(forge, campaign, name, sequence, repetition, arm)
        journal.write("run-ended", endedAt=_at(clock), complete=True)
    journal.unsynced.clear()  # nothing here has to survive a power cut
    journal.close()
    return journal.folder


def _forge_arm(forge: _Forge, campaign: Campaign, name: str, sequence: int, repetition: int, arm: str) -> None:
    journal, clock, comparison = forge.journal, forge.clock, campaign.comparisons[name]
    place = "AB".index(arm)
    recorder = Recorder(journal, repetition, arm)
    recorder.write("arm-started", sequence=sequence, startedAt=_at(clock))
    arm_id = f"r{repetition}-{arm.lower()}"
    value = comparison.candidate if place else comparison.baseline
    _start(journal, clock, campaign, comparison.case, [comparison.argument, value])
    ledgers = _Ledgers(journal.folder, arm_id, clock.now - MS)
    timeline = {
        "engineStartedSeconds": recorder.since(recorder.started_ns + 100 * MS),
        "readySeconds": recorder.since(),
    }
    ttft, tokens = int(forge.shape.ttft_ms[place] * MS), forge.shape.tokens[place]
    try:
        clock.now += MS
        plans = [_plan(recorder, arm_id, "native-warm", n, f"worker-{n}", comparison.native_body) for n in (1, 2)]
        forge.batch(recorder, plans, ledgers, 1, ttft, tokens)
        timeline["nativeWarmEndedSeconds"] = recorder.since()
        used = forge.shape.used_bytes[place]
        devices = [
            {"device": f"device-{n}", "worker": f"worker-{n}", "usedBytes": used, "totalBytes": 2000, "reason": None if used is not None else "not read"}
            for n in (1, 2)
        ]  # fmt: skip
        recorder.write(
            "snapshot", takenSeconds=recorder.since(), source="synthetic", method="a forged figure", devices=devices
        )
        clock.now += MS
        timeline["snapshotSeconds"] = recorder.since()
        clock.now += MS
        plans = [_plan(recorder, arm_id, "rr-warm", n, None, comparison.body) for n in range(1, 17)]
        forge.batch(recorder, plans, ledgers, 8, ttft, tokens)
        timeline["rrWarmEndedSeconds"] = recorder.since()
        plans = [_plan(recorder, arm_id, "main", n, None, comparison.body) for n in range(1, 25)]
        first = clock.now
        forge.batch(recorder, plans, ledgers, 8, ttft, tokens)
        timeline["firstMainSeconds"] = recorder.since(first + 200_000)
        last = max(
            row["endedSeconds"].nanoseconds + ledgers.origin + 50_000 for rows in ledgers.rows.values() for row in rows
        )
        timeline["lastMainSeconds"] = recorder.since(last)
    except Killed:
        ledgers.write(clock.now)
        raise
    ledgers.write()
    lag = Seconds(200_000)
    sent = Seconds(200_000 + 1000 * (len(plans) - 1))  # what batch adds to each request of the main batch
    recorder.write(
        "client", late=False, limitSeconds=Seconds(50 * MS), loopLagP99Seconds=lag, loopLagMaxSeconds=lag,
        sendLagP99Seconds=sent, sendLagMaxSeconds=sent, processorShare=Seconds(10 * MS), wallClockStepped=False, clock="kernel",
    )  # fmt: skip
    recorder.write("timeline", **timeline)
    clock.now += 10 * MS
    recorder.write("arm-ended", wallSeconds=timeline["lastMainSeconds"])


def _plan(recorder: Recorder, arm: str, phase: str, number: int, worker: str | None, body: bytes) -> Plan:
    route = "native" if worker else "rr"
    return Plan(f"{arm}-{phase}-{number:03d}", recorder.repetition, recorder.arm, phase, route, worker, "", body, 60.0)


def forge_attempt(
    runs: Path,
    campaign: Campaign,
    name: str,
    number: int = 0,
    *,
    reason: str = "OK",
    outcome: str = "SUCCESS",
    requests: int | None = None,
    shape: Shape | None = None,
) -> Path:
    """One functional attempt. A set-up failure is one whose `reason` is not OK and whose `requests` is 0."""
    journal, clock = _open(runs, campaign, name, "attempt", number)
    case = campaign.cases[name]
    forge = _Forge(journal, clock, shape or Shape(), case.profile)
    count = case.requests if requests is None else requests
    recorder = Recorder(journal, None, None)
    try:
        if count:
            _start(journal, clock, campaign, name, [])
            ledgers = _Ledgers(journal.folder, "attempt", clock.now - MS)
            if case.topology == "single":
                del ledgers.rows["worker-2"]
            direct = case.surface == "native"
            plans = [
                Plan(f"attempt-{n:03d}", None, None, "functional", case.surface,
                     f"worker-{1 if case.topology == 'single' else 2 - n % 2}" if direct else None, "", case.body, 60.0)
                for n in range(1, count + 1)
            ]  # fmt: skip
            clock.now += MS
            body = b'{"object":"list","data":[{"id":"model"}]}'
            for worker in ledgers.rows:
                recorder.journal.write(
                    "control", id=f"models-{worker}", kind="models", worker=worker, path="/v1/models", status=200,
                    sha256=journal.body(body), bytes=len(body), kept=True, withheldReason=None,
                )  # fmt: skip
            forge.batch(recorder, plans, ledgers, 8, int(forge.shape.ttft_ms[0] * MS), forge.shape.tokens[0])
            ledgers.write()
        journal.write("outcome", outcome=outcome, reason=reason, message=None if reason == "OK" else f"it was {reason}")
        journal.write("run-ended", endedAt=_at(clock), complete=True)
    except Killed:
        pass
    journal.unsynced.clear()  # nothing here has to survive a power cut
    journal.close()
    return journal.folder


def write_campaign(
    folder: Path,
    *,
    profiles: Mapping[str, str],
    comparisons: int = 1,
    engines: int = 1,
    tokens: int = 64,
    extra: str = "",
    status: str = "FINAL",
    recipes: bool = True,
) -> Campaign:
    """A campaign on synthetic engines: profile -> state, and so many comparisons dealt over the accessible profiles."""
    folder.mkdir(parents=True, exist_ok=True)
    text = list(_campaign_text(folder, profiles, comparisons, engines, tokens, status, recipes))
    (folder / "campaign.toml").write_text("\n".join([*text, extra]) + "\n", encoding="utf-8")
    return read_campaign(folder)


def _campaign_text(
    folder: Path, profiles: Mapping[str, str], comparisons: int, engines: int, tokens: int, status: str, recipes: bool
) -> Iterator[str]:
    yield "schema_version = 1\n[campaign]\nname = 'forged'\ntitle = 'Forged runs'"
    yield f"status = '{status}'\nsurfaces = ['native', 'rr']"
    (folder / "source-definitions").mkdir(exist_ok=True)
    (folder / "requests").mkdir(exist_ok=True)
    main = {"model": "m", "messages": [{"role": "user", "content": "Name three rivers."}], "temperature": 0,
            "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}}  # fmt: skip
    (folder / "requests/main.json").write_text(json.dumps(main), encoding="utf-8")
    for place, (name, state) in enumerate(profiles.items(), 1):
        (folder / f"source-definitions/{name}.toml").write_text(f"id = '{name}'\n", encoding="utf-8")
        yield f"[[profile]]\nid = '{name}'\nrepository = 'example/{name}'\nrevision = '{place:040d}'\nstate = '{state}'"
        yield f"license = 'Apache-2.0'\ndefinition = 'source-definitions/{name}.toml'\ntemplate = {{source = 'none'}}"
    for number in range(1, engines + 1):
        yield f"[[engine]]\nid = 'synthetic-{number}'\nadapter = 'synthetic'\nversion = '1.{number}'\nsnapshot = 'synthetic'"
    for name in profiles:
        for number in range(1, engines + 1):
            for surface in ("native", "rr"):
                yield f"[[case]]\nid = '{name}-{surface}-{number}'\nprofile = '{name}'\nengine = 'synthetic-{number}'"
                yield f"topology = 'two-worker'\nsurface = '{surface}'\nrequests = 8\nmax_tokens = {max(tokens, 64)}"
    open_ones = [name for name, state in profiles.items() if state == "accessible"]
    for number in range(comparisons):
        profile, engine = open_ones[number % len(open_ones)], number % engines + 1
        kind, argument, pair = (("memory", "--context-tokens", ("4096", "1024")), ("sequence-cap", "--sequence-cap", ("2", "4")))[number % 2]  # fmt: skip
        yield f"[[comparison]]\nid = 'compare-{number + 1}'\ncase = '{profile}-rr-{engine}'\nkind = '{kind}'"
        yield f"argument = '{argument}'\nbaseline = '{pair[0]}'\ncandidate = '{pair[1]}'\nbody = 'requests/main.json'"
    if recipes:
        for number in range(min(comparisons, len(open_ones))):
            profile, engine = open_ones[number % len(open_ones)], number % engines + 1
            yield f"[[recipe]]\nid = 'recipe-{number + 1}'\ncase = '{profile}-rr-{engine}'\nmodes = ['rr']"
            yield f"comparison = 'compare-{number + 1}'\nscope = 'The forged request on two forged workers.'"
