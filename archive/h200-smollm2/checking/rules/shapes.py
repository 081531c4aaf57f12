"""The shape of every document of a package, as tables; tests hold them to `schemas/`."""

from __future__ import annotations

from decimal import Decimal
from typing import Dict

from checking.arithmetic import (
    CONCURRENCY,
    MAIN_PER_ARM,
    MAIN_TOTAL,
    NATIVE_WARM_PER_WORKER,
    ORDER,
    PLANNED,
    REPETITIONS,
    RR_WARM,
    WARM_TOTAL,
    WORKERS,
)
from checking.shape import (
    BOOL,
    COUNT,
    HASH,
    ID,
    INSTANT,
    LINE,
    NATURAL,
    NUMBER,
    RELATION,
    REVISION,
    SECONDS,
    STATUS,
    TEXT,
    VERSION,
    Keys,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    Plain,
    Shape,
    matching,
)

CLASSES = (
    "NORMAL",
    "CAPPED",
    "REASONING_ONLY",
    "EMPTY",
    "TOOL_CALL",
    "HTTP_ERROR",
    "MALFORMED",
    "UPSTREAM_PARTIAL",
    "CLIENT_TIMEOUT",
    "TRANSPORT_ERROR",
)
OUTCOMES = (
    "BLOCKED_ACCESS",
    "MISSING_IMAGE",
    "MISSING_STORAGE",
    "NATIVE_FAILURE",
    "EXACT_REJECTED",
    "EXACT_PARTIAL_ONE_PREFILL",
    "SUCCESS",
    "USER_DEFERRED",
    "NOT_ATTEMPTED",
)
ABORT_REASONS = (
    "OPERATOR",
    "RUNNER_DIED",
    "ENGINE_DIED",
    "ENGINE_NOT_READY",
    "GATEWAY_DIED",
    "PROXY_DIED",
    "DISK_FULL",
    "TIME_OUT",
    "AUDIT_FAILED",
)
GATES = ("token-volume", "memory-reduction", "latency-regression", "latency-improvement", "median-improvement")
DISQUALIFICATIONS = (
    "SAMPLE_NOT_NORMAL",
    "RECEIPT_MISMATCH",
    "CLIENT_LATE",
    "TOKENS_UNKNOWN",
    "MEMORY_UNKNOWN",
    "LOG_FINDING",
    "DATE_INPUT_DIFFERS",
    "TTFT_UNKNOWN",
    "WALL_CLOCK",
)

RUN_ID = matching(r"[a-z0-9][a-z0-9.-]{0,99}", "a run id")
ALIAS = matching(r"(?:worker|device)-[1-9][0-9]?", "an alias such as worker-1")
WORKER = matching(r"worker-[1-9][0-9]?", "an alias such as worker-1")
DEVICE = matching(r"device-[1-9][0-9]?", "an alias such as device-1")
ARM_ID = matching(r"(?:r[1-3]-[ab]|attempt)", "an arm such as r1-a, or attempt")
OFFER_ID = matching(
    r"(?:r[1-3]-[ab]-(?:native-warm|rr-warm|main)-[0-9]{3}|attempt-[0-9]{3})", "an offer id such as r1-a-main-001"
)
PATH = matching(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_+][A-Za-z0-9._+-]*)*", "a relative path")
REASON = matching(r"[A-Z][A-Z_]*", "a reason code in capitals")
DATE = matching(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date")
REPETITION = Plain((int,), "1 to 3", lambda value: 1 <= value <= REPETITIONS)
ARM = OneOf("A", "B")
KIND = OneOf("memory", "sequence-cap")
SURFACE = OneOf("native", "rr", "exact", "native-pd")
TOPOLOGY = OneOf("single", "two-worker", "prefill-decode")
GATEWAY_KIND = OneOf("built-in", "command", "url")
CLASS = OneOf(*CLASSES)
OUTCOME = OneOf(*OUTCOMES)
TRANSPORT = OneOf("complete", "timeout", "closed-early", "failed")
ENVIRONMENT = MapOf(matching(r"[A-Za-z_][A-Za-z0-9_]*", "a variable name"), TEXT)

BODY = Keys(sha256=HASH, bytes=COUNT)
READY = Keys(requestSha256=HASH, responseSha256=HASH)
ROLE_WORKER = Keys(alias=ALIAS, device=ALIAS)
GATEWAY = Keys(kind=GATEWAY_KIND, name=LINE, sha256=Maybe(HASH), reason=Maybe(LINE))
SETTING = Keys(argument=LINE, baseline=TEXT, candidate=TEXT)
PROTOCOL = Keys(
    concurrency=OneOf(CONCURRENCY),
    mainPerArm=OneOf(MAIN_PER_ARM),
    repetitions=OneOf(REPETITIONS),
    order=Plain((list,), "A, B, B, A, A, B", lambda value: value == list(ORDER)),
    nativeWarmPerWorker=OneOf(NATIVE_WARM_PER_WORKER),
    rrWarm=OneOf(RR_WARM),
    temperature=Plain((int, Decimal), "a temperature, 0 to 2", lambda value: 0 <= value <= 2),
    outputBudget=NATURAL,
    stream=BOOL,
)
REQUESTS = Keys(native=BODY, main=BODY)
DATE_CONTROL = Keys(
    timeZone=OneOf("UTC"),
    comparisonDate=DATE,
    nativeTokenIds=ListOf(Keys(repetition=REPETITION, arm=ARM, worker=ALIAS, tokenIdsSha256=HASH, tokens=COUNT)),
)
LOG_FINDING = Keys(worker=ALIAS, pattern=LINE, line=TEXT, atSeconds=SECONDS)
CLIENT = Keys(
    late=BOOL,
    limitSeconds=SECONDS,
    loopLagP99Seconds=SECONDS,
    loopLagMaxSeconds=SECONDS,
    sendLagP99Seconds=SECONDS,
    sendLagMaxSeconds=SECONDS,
    processorShare=SECONDS,
    wallClockStepped=BOOL,
    clock=OneOf("kernel", "monotonic", "mixed"),
)
TIMES = (
    "engineStartedSeconds",
    "readySeconds",
    "nativeWarmEndedSeconds",
    "snapshotSeconds",
    "rrWarmEndedSeconds",
    "firstMainSeconds",
    "lastMainSeconds",
)


def _launch(ready: Shape) -> Shape:
    return Keys(worker=ALIAS, arguments=ListOf(TEXT), argumentsSha256=HASH, environment=ENVIRONMENT, ready=ready)


def _arm(whole: bool) -> Shape:
    def may(shape: Shape) -> Shape:
        return shape if whole else Maybe(shape)

    times: Dict[str, Shape] = {name: may(SECONDS) for name in TIMES}
    return Keys(
        repetition=REPETITION,
        arm=ARM,
        sequence=Plain((int,), "1 to 6", lambda value: 1 <= value <= 2 * REPETITIONS),
        startedAt=INSTANT,
        wallSeconds=may(SECONDS),
        launches=ListOf(_launch(may(READY)), WORKERS) if whole else ListOf(_launch(may(READY)), most=WORKERS),
        timeline=may(Keys(**times)),
        client=may(CLIENT),
        logFindings=ListOf(LOG_FINDING),
    )


LAUNCH = _launch(Maybe(READY))
_COMPARISON: Dict[str, Shape] = {
    "schemaVersion": VERSION,
    "id": ID,
    "case": ID,
    "run": RUN_ID,
    "campaign": ID,
    "profile": ID,
    "engine": ID,
    "topology": OneOf("two-worker"),
    "surface": OneOf("rr"),
    "kind": KIND,
    "synthetic": BOOL,
    "setting": SETTING,
    "protocol": PROTOCOL,
    "requests": REQUESTS,
    "workers": ListOf(ROLE_WORKER, WORKERS),
    "gateway": GATEWAY,
    "dateControl": Maybe(DATE_CONTROL),
    "arms": ListOf(_arm(True), 2 * REPETITIONS),
}
COMPARISON = Keys(**_COMPARISON)
_PARTIAL = dict(_COMPARISON)
_PARTIAL.update(
    id=RUN_ID,
    comparison=ID,
    gateway=Maybe(GATEWAY),
    arms=ListOf(_arm(False), most=2 * REPETITIONS),
    reason=OneOf(*ABORT_REASONS),
    message=TEXT,
    abortedAt=Maybe(INSTANT),
    abortedSeconds=Maybe(SECONDS),
)
INCOMPLETE_COMPARISON = Keys(**_PARTIAL)
SAMPLE = Keys(
    offer=OFFER_ID,
    repetition=Maybe(REPETITION),
    arm=Maybe(ARM),
    phase=OneOf("native-warm", "rr-warm", "main", "functional"),
    worker=Maybe(ALIAS),
    requestSha256=HASH,
    requestBytes=COUNT,
    responseSha256=HASH,
    responseBytes=COUNT,
    status=Maybe(STATUS),
    transport=TRANSPORT,
    startedSeconds=SECONDS,
    ttftSeconds=Maybe(SECONDS),
    reasoningSeconds=Maybe(SECONDS),
    totalSeconds=SECONDS,
    sendLagSeconds=SECONDS,
    classification=CLASS,
    finishReason=Maybe(TEXT),
    promptTokens=Maybe(COUNT),
    completionTokens=Maybe(COUNT),
)
SAMPLES = Keys(schemaVersion=VERSION, comparison=RUN_ID, samples=ListOf(SAMPLE))
_REQUEST_HEADERS = ("content-type", "content-length", "transfer-encoding", "accept", "x-request-id")
_RESPONSE_HEADERS = (
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "x-request-id",
    "retry-after",
)
RECEIPT = Keys(
    sequence=NATURAL,
    requestId=Maybe(Plain((str,), "at most 200 characters", lambda value: len(value) <= 200)),
    method=Plain((str,), "at most 20 characters", lambda value: len(value) <= 20),
    path=Plain((str,), "at most 2048 characters", lambda value: len(value) <= 2048),
    traffic=BOOL,
    requestSha256=HASH,
    requestBytes=COUNT,
    responseSha256=HASH,
    responseBytes=COUNT,
    status=Maybe(STATUS),
    complete=BOOL,
    reason=OneOf(
        "client-closed", "upstream-closed", "upstream-unreachable", "upstream-malformed", "timeout", "refused", None
    ),
    startedSeconds=SECONDS,
    endedSeconds=SECONDS,
    requestHeaders=MapOf(OneOf(*_REQUEST_HEADERS), TEXT),
    responseHeaders=MapOf(OneOf(*_RESPONSE_HEADERS), TEXT),
)
LEDGER = Keys(schemaVersion=VERSION, worker=ALIAS, arm=ARM_ID, receipts=ListOf(RECEIPT))
_DEVICE_ROW = Keys(device=ALIAS, worker=ALIAS, usedBytes=Maybe(COUNT), totalBytes=Maybe(COUNT), reason=Maybe(LINE))
SNAPSHOT = Keys(
    repetition=REPETITION,
    arm=ARM,
    takenSeconds=SECONDS,
    source=OneOf("nvml", "process-rss", "synthetic"),
    method=LINE,
    devices=ListOf(_DEVICE_ROW, least=1),
)
SNAPSHOTS = Keys(
    schemaVersion=VERSION,
    comparison=RUN_ID,
    snapshots=ListOf(SNAPSHOT, most=2 * REPETITIONS),
)
_SIDE = Keys(
    p95TtftSeconds=Maybe(SECONDS),
    p95TotalSeconds=Maybe(SECONDS),
    completionTokens=Maybe(COUNT),
    wallSeconds=SECONDS,
    devices=MapOf(DEVICE, Maybe(COUNT)),
)
_ROW = Keys(
    repetition=Maybe(REPETITION),
    device=Maybe(ALIAS),
    baseline=Maybe(NUMBER),
    candidate=Maybe(NUMBER),
    relative=Maybe(RELATION),
    holds=Maybe(BOOL),
)
DECISION = Keys(
    schemaVersion=VERSION,
    comparison=ID,
    kind=KIND,
    performanceComparisonQualified=BOOL,
    disqualifications=ListOf(Keys(code=OneOf(*DISQUALIFICATIONS), detail=LINE)),
    pairs=ListOf(Keys(repetition=REPETITION, baseline=_SIDE, candidate=_SIDE), REPETITIONS),
    gates=ListOf(Keys(gate=OneOf(*GATES), holds=Maybe(BOOL), rows=ListOf(_ROW)), 3),
    failedGates=ListOf(OneOf(*GATES), unique=True),
    decision=OneOf("baseline", "candidate"),
    requalification=OneOf("required", "not-required"),
)
SETTINGS_INDEX = Keys(
    schemaVersion=VERSION,
    comparisons=ListOf(
        Keys(
            id=ID,
            case=ID,
            profile=ID,
            engine=ID,
            kind=KIND,
            synthetic=BOOL,
            folder=PATH,
            decision=OneOf("baseline", "candidate"),
            failedGates=ListOf(OneOf(*GATES)),
            performanceComparisonQualified=BOOL,
            mainSamples=OneOf(MAIN_TOTAL),
            warmSamples=OneOf(WARM_TOTAL),
            files=Keys(comparison=HASH, samples=HASH, snapshots=HASH, decision=HASH),
        )
    ),
)
_COUNTS = Keys(offered=COUNT, completed=COUNT, timedOut=COUNT, failed=COUNT, neverStarted=COUNT)
OFFERS = Keys(
    schemaVersion=VERSION,
    comparison=RUN_ID,
    planned=OneOf(PLANNED),
    counts=_COUNTS,
    offers=ListOf(
        Keys(
            offer=OFFER_ID,
            repetition=REPETITION,
            arm=ARM,
            phase=OneOf("native-warm", "rr-warm", "main"),
            worker=Maybe(ALIAS),
            requestSha256=HASH,
            requestBytes=COUNT,
            fate=OneOf("completed", "timed-out", "failed", "never-started"),
            sample=BOOL,
            client=Maybe(BODY),
            upstream=Maybe(Keys(sha256=HASH, bytes=COUNT, worker=ALIAS, complete=BOOL)),
        )
    ),
)
INCOMPLETE_INDEX = Keys(
    schemaVersion=VERSION,
    comparisons=ListOf(
        Keys(
            id=RUN_ID,
            comparison=ID,
            run=RUN_ID,
            case=ID,
            profile=ID,
            engine=ID,
            kind=KIND,
            synthetic=BOOL,
            reason=OneOf(*ABORT_REASONS),
            folder=PATH,
            counts=_COUNTS,
            files=Keys(comparison=HASH, samples=HASH, offers=HASH),
        )
    ),
)
ATTEMPT = Keys(
    schemaVersion=VERSION,
    id=RUN_ID,
    run=RUN_ID,
    case=ID,
    profile=ID,
    engine=ID,
    topology=TOPOLOGY,
    surface=SURFACE,
    synthetic=BOOL,
    startedAt=INSTANT,
    endedAt=Maybe(INSTANT),
    ended=BOOL,
    outcome=OUTCOME,
    reason=REASON,
    message=Maybe(TEXT),
    launches=ListOf(LAUNCH),
    gateway=Maybe(GATEWAY),
    workers=ListOf(ROLE_WORKER),
    requests=COUNT,
    counts=MapOf(CLASS, COUNT),
    exact=Maybe(
        Keys(
            requestSha256=HASH,
            expectedTokenIds=ListOf(COUNT),
            observedTokenIds=Maybe(ListOf(COUNT)),
            control=Maybe(LINE),
            tokenIdsEqual=Maybe(BOOL),
            engagement=OneOf("ADMITTED", "REJECTED", "PARTIAL_ONE_PREFILL"),
            trafficPerWorker=MapOf(WORKER, COUNT),
        )
    ),
    scope=Keys(accepted=BOOL, modes=ListOf(SURFACE, unique=True), statement=LINE),
)
CONTROLS = Keys(
    schemaVersion=VERSION,
    attempt=RUN_ID,
    controls=ListOf(
        Keys(
            id=LINE,
            kind=OneOf("models", "health", "version", "metrics", "tokenize"),
            worker=ALIAS,
            path=LINE,
            status=Maybe(Plain((int,), "an integer")),
            sha256=HASH,
            bytes=COUNT,
            kept=BOOL,
            withheldReason=Maybe(LINE),
        )
    ),
)
CONVERGED_INDEX = Keys(
    schemaVersion=VERSION,
    attempts=ListOf(
        Keys(
            id=RUN_ID,
            case=ID,
            profile=ID,
            engine=ID,
            topology=TOPOLOGY,
            surface=SURFACE,
            synthetic=BOOL,
            startedAt=INSTANT,
            endedAt=Maybe(INSTANT),
            ended=BOOL,
            outcome=OUTCOME,
            reason=LINE,
            accepted=BOOL,
            folder=PATH,
            files=Keys(attempt=HASH, samples=HASH, controls=HASH),
        )
    ),
)
PROFILE = Keys(
    id=ID,
    repository=LINE,
    revision=Maybe(REVISION),
    revisionReason=Maybe(LINE),
    state=OneOf("accessible", "gated", "deferred"),
    dateSensitive=BOOL,
    license=LINE,
    artifacts=ListOf(Keys(path=LINE, sha256=HASH, bytes=COUNT)),
    sourceIndexSha256=Maybe(HASH),
    template=Keys(source=LINE, sha256=Maybe(HASH)),
    definition=Keys(path=PATH, sha256=HASH),
)
MODEL_IDENTITIES = Keys(
    schemaVersion=VERSION,
    profiles=ListOf(PROFILE, least=1),
    historicalCatalog=ListOf(Keys(profile=LINE, engine=LINE, state=LINE, note=TEXT)),
)
MODEL = Keys(schemaVersion=VERSION, profile=PROFILE)
REGISTRY = Keys(
    schemaVersion=VERSION,
    engine=ID,
    adapter=LINE,
    version=LINE,
    image=Maybe(LINE),
    imageDigest=Maybe(matching(r"sha256:[0-9a-f]{64}", "sha256: and 64 lower-case hex digits")),
    candidates=ListOf(Keys(profile=ID, state=OneOf("CANDIDATE", "EXCLUDED"), arguments=ListOf(TEXT), note=TEXT)),
    probes=ListOf(Keys(profile=ID, path=PATH, sha256=HASH, expectedTokenIds=ListOf(COUNT), tokenIdsSha256=HASH)),
)
RECIPES = Keys(
    schemaVersion=VERSION,
    recipes=ListOf(
        Keys(
            id=ID,
            case=ID,
            profile=ID,
            engine=ID,
            topology=TOPOLOGY,
            modes=ListOf(SURFACE, least=1, unique=True),
            arguments=ListOf(TEXT),
            environment=ENVIRONMENT,
            comparison=Maybe(ID),
            selected=OneOf("baseline", "candidate", None),
            setting=Maybe(Keys(argument=LINE, value=TEXT)),
            requalification=Keys(required=BOOL, attempt=Maybe(RUN_ID), statement=LINE),
            gateway=Maybe(Keys(kind=GATEWAY_KIND, name=LINE)),
            scope=LINE,
            settingsFile=PATH,
        )
    ),
)
RULE = Keys(
    schemaVersion=VERSION,
    recipe=ID,
    mode=SURFACE,
    listen=LINE,
    strategy=OneOf("round-robin", "exact-prefix", "direct"),
    workers=ListOf(Keys(alias=ALIAS, url=LINE), least=1),
    note=TEXT,
)
MATRIX = Keys(
    schemaVersion=VERSION,
    campaign=ID,
    status=OneOf("FINAL", "IN_PROGRESS_NOT_FINAL"),
    surfaces=ListOf(SURFACE, least=1, unique=True),
    rows=ListOf(
        Keys(
            case=ID,
            profile=ID,
            engine=ID,
            topology=TOPOLOGY,
            surface=SURFACE,
            outcome=OUTCOME,
            reason=LINE,
            synthetic=BOOL,
            attempts=ListOf(RUN_ID, unique=True),
            decidedBy=Maybe(RUN_ID),
            blocker=Maybe(LINE),
        ),
        least=1,
    ),
)
MANIFEST = Keys(
    schemaVersion=VERSION,
    campaign=ID,
    title=LINE,
    status=OneOf("FINAL", "IN_PROGRESS_NOT_FINAL"),
    distribution=Keys(archive=LINE, topFolder=ID, preparation=BOOL),
    synthetic=OneOf("none", "some", "all"),
    statement=LINE,
    engines=ListOf(
        Keys(
            id=ID,
            adapter=OneOf(
                "vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers-serve", "sie", "synthetic", "command"
            ),
            version=LINE,
            synthetic=BOOL,
            registry=Maybe(PATH),
            identity=ListOf(Keys(name=LINE, value=LINE, sha256=Maybe(HASH))),
            source=OneOf("reported", "declared"),
        )
    ),
    gateways=ListOf(
        Keys(kind=GATEWAY_KIND, name=LINE, sha256=Maybe(HASH), sourceCommit=Maybe(REVISION), reason=Maybe(LINE))
    ),
    boundaries=ListOf(Keys(id=LINE, statement=LINE), least=1),
    privacyExceptions=ListOf(Keys(pattern=LINE, kind=LINE, reason=LINE)),
    counts=Keys(
        profiles=COUNT,
        cases=COUNT,
        attempts=COUNT,
        comparisons=COUNT,
        incompleteComparisons=COUNT,
        mainSamples=COUNT,
        warmSamples=COUNT,
        bodies=COUNT,
        lifecycleRecords=COUNT,
    ),
    builder=Keys(name=LINE, version=LINE),
    proxySha256=HASH,
    dates=Keys(firstRunStartedAt=Maybe(INSTANT), lastRunEndedAt=Maybe(INSTANT)),
)
_PD_ROLE = Keys(requestSha256=HASH, responseSha256=HASH)
PD_INDEX = Keys(
    schemaVersion=VERSION,
    statement=LINE,
    cases=ListOf(
        Keys(
            id=ID,
            case=ID,
            profile=ID,
            engine=ID,
            reviewed=BOOL,
            outcome=OneOf("QUALIFIED", "FAILED"),
            reason=Maybe(LINE),
            roles=Maybe(Keys(prefill=_PD_ROLE, decode=_PD_ROLE)),
            statePreserved=Maybe(BOOL),
            bootstrapIdentity=Maybe(HASH),
            decodeTransferCounters=Maybe(Keys(before=COUNT, after=COUNT)),
            negatives=ListOf(Keys(id=LINE, rejected=BOOL)),
            recovery=Maybe(BOOL),
            cleanup=Maybe(BOOL),
            completedChecks=ListOf(LINE, unique=True),
        )
    ),
)
LIFECYCLE_INDEX = Keys(
    schemaVersion=VERSION,
    records=ListOf(Keys(id=ID, path=PATH, sha256=HASH, experiments=ListOf(LINE, least=1))),
)
