"""The shape of what a comparison leaves."""

from __future__ import annotations

from decimal import Decimal
from typing import Dict

from checking.plan import CONCURRENCY, MAIN_PER_ARM, NATIVE_WARM_PER_WORKER, ORDER, REPETITIONS, RR_WARM, WORKERS
from checking.rules.shapes import (
    ALIAS,
    ARM,
    BODY,
    GATEWAY,
    KIND,
    READY,
    REPETITION,
    ROLE_WORKER,
    RUN_ID,
    TIMES,
    launch_of,
)
from checking.shape import (
    BOOL,
    COUNT,
    HASH,
    ID,
    INSTANT,
    LINE,
    NATURAL,
    SECONDS,
    TEXT,
    VERSION,
    Keys,
    ListOf,
    Maybe,
    OneOf,
    Plain,
    Shape,
    matching,
)

DATE = matching(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date")
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


def arm_of(whole: bool) -> Shape:
    """An arm; one that was not completed may lack what comes late."""

    def may(shape: Shape) -> Shape:
        return shape if whole else Maybe(shape)

    times: Dict[str, Shape] = {name: may(SECONDS) for name in TIMES}
    return Keys(
        repetition=REPETITION,
        arm=ARM,
        sequence=Plain((int,), "1 to 6", lambda value: 1 <= value <= 2 * REPETITIONS),
        startedAt=INSTANT,
        wallSeconds=may(SECONDS),
        launches=ListOf(launch_of(may(READY)), WORKERS) if whole else ListOf(launch_of(may(READY)), most=WORKERS),
        timeline=may(Keys(**times)),
        client=may(CLIENT),
        logFindings=ListOf(LOG_FINDING),
    )


PARTS: Dict[str, Shape] = {
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
    "arms": ListOf(arm_of(True), 2 * REPETITIONS),
}
COMPARISON = Keys(**PARTS)
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
