"""The shape of what a comparison leaves that was not completed, and of the index of these."""

from __future__ import annotations

from checking.plan import PLANNED, REPETITIONS
from checking.rules.shapes import ABORT_REASONS, ALIAS, ARM, BODY, GATEWAY, KIND, OFFER_ID, PATH, REPETITION, RUN_ID
from checking.rules.shapes_comparison import PARTS, arm_of
from checking.shape import BOOL, COUNT, HASH, ID, INSTANT, SECONDS, TEXT, VERSION, Keys, ListOf, Maybe, OneOf

_PARTS = dict(PARTS)
_PARTS.update(
    id=RUN_ID,
    comparison=ID,
    gateway=Maybe(GATEWAY),
    arms=ListOf(arm_of(False), most=2 * REPETITIONS),
    reason=OneOf(*ABORT_REASONS),
    message=TEXT,
    abortedAt=Maybe(INSTANT),
    abortedSeconds=Maybe(SECONDS),
)
INCOMPLETE_COMPARISON = Keys(**_PARTS)
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
