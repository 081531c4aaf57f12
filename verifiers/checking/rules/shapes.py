"""The shape of every document of a package, as tables that tests hold to `schemas/`: what several kinds of run share.

What is of one kind stands in a module of its own, which a verifier reads when it judges that kind.
"""

from __future__ import annotations

from checking.plan import REPETITIONS
from checking.shape import (
    BOOL,
    COUNT,
    HASH,
    LINE,
    NATURAL,
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
    at_most,
    matching,
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
RUN_ID = matching(r"[a-z0-9][a-z0-9.-]{0,99}", "a run id")
ALIAS = matching(r"(?:worker|device)-[1-9][0-9]?", "an alias such as worker-1")
ARM_ID = matching(r"(?:r[1-3]-[ab]|attempt)", "an arm such as r1-a, or attempt")
OFFER_ID = matching(
    r"(?:r[1-3]-[ab]-(?:native-warm|rr-warm|main)-[0-9]{3}|attempt-[0-9]{3})", "an offer id such as r1-a-main-001"
)
PATH = matching(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_+][A-Za-z0-9._+-]*)*", "a relative path")
REPETITION = Plain((int,), "1 to 3", lambda value: 1 <= value <= REPETITIONS, text="[1-%d]" % REPETITIONS)
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
TIMES = (
    "engineStartedSeconds",
    "readySeconds",
    "nativeWarmEndedSeconds",
    "snapshotSeconds",
    "rrWarmEndedSeconds",
    "firstMainSeconds",
    "lastMainSeconds",
)


def launch_of(ready: Shape) -> Shape:
    """A launch, told as ready by `ready`."""
    return Keys(worker=ALIAS, arguments=ListOf(TEXT), argumentsSha256=HASH, environment=ENVIRONMENT, ready=ready)


LAUNCH = launch_of(Maybe(READY))
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
    requestId=Maybe(at_most(200)),
    method=at_most(20),
    path=at_most(2048),
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
