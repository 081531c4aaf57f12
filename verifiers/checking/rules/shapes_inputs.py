"""The shape of matrix, identities, registries, recipes and rules, and of the two indices without a folder of their own."""

from __future__ import annotations

from checking.rules.shapes import ALIAS, ENVIRONMENT, GATEWAY_KIND, OUTCOME, PATH, RUN_ID, SURFACE, TOPOLOGY
from checking.shape import BOOL, COUNT, HASH, ID, LINE, REVISION, TEXT, VERSION, Keys, ListOf, Maybe, OneOf, matching

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
