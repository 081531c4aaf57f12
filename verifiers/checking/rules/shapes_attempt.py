"""The shape of what a functional attempt leaves, and of the index of attempts."""

from __future__ import annotations

from checking.rules.shapes import (
    ALIAS,
    CLASS,
    GATEWAY,
    LAUNCH,
    OUTCOME,
    PATH,
    ROLE_WORKER,
    RUN_ID,
    SURFACE,
    TOPOLOGY,
)
from checking.shape import (
    BOOL,
    COUNT,
    HASH,
    ID,
    INSTANT,
    LINE,
    TEXT,
    VERSION,
    Keys,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    Plain,
    matching,
)

WORKER = matching(r"worker-[1-9][0-9]?", "an alias such as worker-1")
REASON = matching(r"[A-Z][A-Z_]*", "a reason code in capitals")
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
