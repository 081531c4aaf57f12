"""The typed writers: one named tuple for each shape under `schemas/`.

A field `some_name` is written as the key `someName`. Hashes are 64 lower-case hex digits, bytes are
integers, durations are seconds with at most nine decimals, instants RFC 3339 in UTC. `to_bytes` gives the
canonical form of a package file: UTF-8, sorted keys, two spaces, one final newline. `tests/test_records.py`
holds every record to its schema: the same keys, the same optionality, the same enums. Named tuples, because every command
makes seventy kinds of them before it begins, in a quarter of the time of dataclasses, and a build makes fifty thousand rows.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

SCHEMA_VERSION = 1
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
CLASSIFICATIONS = (
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
GATES = ("token-volume", "memory-reduction", "latency-regression", "latency-improvement", "median-improvement")
KIND_GATES: Mapping[str, tuple[str, ...]] = {
    "memory": ("token-volume", "memory-reduction", "latency-regression"),
    "sequence-cap": ("token-volume", "latency-improvement", "median-improvement"),
}
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
SURFACES = ("native", "rr", "exact", "native-pd")
TOPOLOGIES = ("single", "two-worker", "prefill-decode")


def seconds(nanoseconds: int) -> float:
    """A duration in seconds whose shortest decimal text has at most nine decimals (exact below 2^53 ns)."""
    return nanoseconds / 1_000_000_000


class Body(NamedTuple):
    sha256: str
    bytes: int


class Worker(NamedTuple):
    alias: str
    device: str


class Gateway(NamedTuple):
    kind: str
    name: str
    sha256: str | None
    reason: str | None


class Ready(NamedTuple):
    request_sha256: str
    response_sha256: str


class Launch(NamedTuple):
    worker: str
    arguments: Sequence[str]
    arguments_sha256: str
    environment: Mapping[str, str]
    ready: Ready | None


class Timeline(NamedTuple):
    engine_started_seconds: float | None
    ready_seconds: float | None
    native_warm_ended_seconds: float | None
    snapshot_seconds: float | None
    rr_warm_ended_seconds: float | None
    first_main_seconds: float | None
    last_main_seconds: float | None


class Client(NamedTuple):
    """How late the client itself was in one arm; `late` disqualifies."""

    late: bool
    limit_seconds: float
    loop_lag_p99_seconds: float
    loop_lag_max_seconds: float
    send_lag_p99_seconds: float
    send_lag_max_seconds: float
    processor_share: float
    wall_clock_stepped: bool
    clock: str


class LogFinding(NamedTuple):
    worker: str
    pattern: str
    line: str
    at_seconds: float


class TokenIds(NamedTuple):
    repetition: int
    arm: str
    worker: str
    token_ids_sha256: str
    tokens: int


class DateControl(NamedTuple):
    time_zone: str
    comparison_date: str
    native_token_ids: Sequence[TokenIds]


class Setting(NamedTuple):
    argument: str
    baseline: str
    candidate: str


class Protocol(NamedTuple):
    temperature: float
    output_budget: int
    stream: bool
    concurrency: int = 8
    main_per_arm: int = 24
    repetitions: int = 3
    order: Sequence[str] = ("A", "B", "B", "A", "A", "B")
    native_warm_per_worker: int = 1
    rr_warm: int = 16


class Requests(NamedTuple):
    native: Body
    main: Body


class Arm(NamedTuple):
    repetition: int
    arm: str
    sequence: int
    started_at: str
    wall_seconds: float | None
    launches: Sequence[Launch]
    timeline: Timeline | None
    client: Client | None
    log_findings: Sequence[LogFinding]


class Comparison(NamedTuple):
    id: str
    case: str
    run: str
    campaign: str
    profile: str
    engine: str
    topology: str
    surface: str
    kind: str
    synthetic: bool
    setting: Setting
    protocol: Protocol
    requests: Requests
    workers: Sequence[Worker]
    gateway: Gateway
    date_control: DateControl | None
    arms: Sequence[Arm]
    schema_version: int = SCHEMA_VERSION


class IncompleteComparison(NamedTuple):
    id: str
    comparison: str
    case: str
    run: str
    campaign: str
    profile: str
    engine: str
    topology: str
    surface: str
    kind: str
    synthetic: bool
    setting: Setting
    protocol: Protocol
    requests: Requests
    workers: Sequence[Worker]
    gateway: Gateway | None
    date_control: DateControl | None
    arms: Sequence[Arm]
    reason: str
    message: str
    aborted_at: str | None
    aborted_seconds: float | None
    schema_version: int = SCHEMA_VERSION


class Sample(NamedTuple):
    offer: str
    repetition: int | None
    arm: str | None
    phase: str
    worker: str | None
    request_sha256: str
    request_bytes: int
    response_sha256: str
    response_bytes: int
    status: int | None
    transport: str
    started_seconds: float
    ttft_seconds: float | None
    reasoning_seconds: float | None
    total_seconds: float
    send_lag_seconds: float
    classification: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


class Samples(NamedTuple):
    comparison: str
    samples: Sequence[Sample]
    schema_version: int = SCHEMA_VERSION


class Receipt(NamedTuple):
    sequence: int
    request_id: str | None
    method: str
    path: str
    traffic: bool
    request_sha256: str
    request_bytes: int
    response_sha256: str
    response_bytes: int
    status: int | None
    complete: bool
    reason: str | None
    started_seconds: float
    ended_seconds: float
    request_headers: Mapping[str, str]
    response_headers: Mapping[str, str]


class Ledger(NamedTuple):
    worker: str
    arm: str
    receipts: Sequence[Receipt]
    schema_version: int = SCHEMA_VERSION


class DeviceMemory(NamedTuple):
    device: str
    worker: str
    used_bytes: int | None
    total_bytes: int | None
    reason: str | None


class Snapshot(NamedTuple):
    repetition: int
    arm: str
    taken_seconds: float
    source: str
    method: str
    devices: Sequence[DeviceMemory]


class Snapshots(NamedTuple):
    comparison: str
    snapshots: Sequence[Snapshot]
    schema_version: int = SCHEMA_VERSION


class Side(NamedTuple):
    p95_ttft_seconds: float | None
    p95_total_seconds: float | None
    completion_tokens: int | None
    wall_seconds: float
    devices: Mapping[str, int | None]


class Pair(NamedTuple):
    repetition: int
    baseline: Side
    candidate: Side


class GateRow(NamedTuple):
    repetition: int | None
    device: str | None
    baseline: float | int | None
    candidate: float | int | None
    relative: str | None
    holds: bool | None


class Gate(NamedTuple):
    gate: str
    holds: bool | None
    rows: Sequence[GateRow]


class Disqualification(NamedTuple):
    code: str
    detail: str


class Decision(NamedTuple):
    comparison: str
    kind: str
    performance_comparison_qualified: bool
    disqualifications: Sequence[Disqualification]
    pairs: Sequence[Pair]
    gates: Sequence[Gate]
    failed_gates: Sequence[str]
    decision: str
    requalification: str
    schema_version: int = SCHEMA_VERSION


class SettingsFiles(NamedTuple):
    comparison: str
    samples: str
    snapshots: str
    decision: str


class SettingsEntry(NamedTuple):
    id: str
    case: str
    profile: str
    engine: str
    kind: str
    synthetic: bool
    folder: str
    decision: str
    failed_gates: Sequence[str]
    performance_comparison_qualified: bool
    files: SettingsFiles
    main_samples: int = 144
    warm_samples: int = 108


class SettingsIndex(NamedTuple):
    comparisons: Sequence[SettingsEntry]
    schema_version: int = SCHEMA_VERSION


class OfferCounts(NamedTuple):
    offered: int
    completed: int
    timed_out: int
    failed: int
    never_started: int


class Upstream(NamedTuple):
    sha256: str
    bytes: int
    worker: str
    complete: bool


class OfferFate(NamedTuple):
    offer: str
    repetition: int
    arm: str
    phase: str
    worker: str | None
    request_sha256: str
    request_bytes: int
    fate: str
    sample: bool
    client: Body | None
    upstream: Upstream | None


class Offers(NamedTuple):
    comparison: str
    counts: OfferCounts
    offers: Sequence[OfferFate]
    planned: int = 252
    schema_version: int = SCHEMA_VERSION


class IncompleteFiles(NamedTuple):
    comparison: str
    samples: str
    offers: str


class IncompleteEntry(NamedTuple):
    id: str
    comparison: str
    run: str
    case: str
    profile: str
    engine: str
    kind: str
    synthetic: bool
    reason: str
    folder: str
    counts: OfferCounts
    files: IncompleteFiles


class IncompleteSettingsIndex(NamedTuple):
    comparisons: Sequence[IncompleteEntry]
    schema_version: int = SCHEMA_VERSION


class Exact(NamedTuple):
    request_sha256: str
    expected_token_ids: Sequence[int]
    observed_token_ids: Sequence[int] | None
    control: str | None
    token_ids_equal: bool | None
    engagement: str
    traffic_per_worker: Mapping[str, int]


class Scope(NamedTuple):
    accepted: bool
    modes: Sequence[str]
    statement: str


class Attempt(NamedTuple):
    id: str
    run: str
    case: str
    profile: str
    engine: str
    topology: str
    surface: str
    synthetic: bool
    started_at: str
    ended_at: str | None
    ended: bool
    outcome: str
    reason: str
    message: str | None
    launches: Sequence[Launch]
    gateway: Gateway | None
    workers: Sequence[Worker]
    requests: int
    counts: Mapping[str, int]
    exact: Exact | None
    scope: Scope
    schema_version: int = SCHEMA_VERSION


class Control(NamedTuple):
    id: str
    kind: str
    worker: str
    path: str
    status: int | None
    sha256: str
    bytes: int
    kept: bool
    withheld_reason: str | None


class Controls(NamedTuple):
    attempt: str
    controls: Sequence[Control]
    schema_version: int = SCHEMA_VERSION


class ConvergedFiles(NamedTuple):
    attempt: str
    samples: str
    controls: str


class ConvergedEntry(NamedTuple):
    id: str
    case: str
    profile: str
    engine: str
    topology: str
    surface: str
    synthetic: bool
    started_at: str
    ended_at: str | None
    ended: bool
    outcome: str
    reason: str
    accepted: bool
    folder: str
    files: ConvergedFiles


class ConvergedIndex(NamedTuple):
    attempts: Sequence[ConvergedEntry]
    schema_version: int = SCHEMA_VERSION


class Artifact(NamedTuple):
    path: str
    sha256: str
    bytes: int


class Template(NamedTuple):
    source: str
    sha256: str | None


class Definition(NamedTuple):
    path: str
    sha256: str


class Profile(NamedTuple):
    id: str
    repository: str
    revision: str | None
    revision_reason: str | None
    state: str
    date_sensitive: bool
    license: str
    artifacts: Sequence[Artifact]
    source_index_sha256: str | None
    template: Template
    definition: Definition


class HistoricalState(NamedTuple):
    profile: str
    engine: str
    state: str
    note: str


class ModelIdentities(NamedTuple):
    profiles: Sequence[Profile]
    historical_catalog: Sequence[HistoricalState]
    schema_version: int = SCHEMA_VERSION


class Model(NamedTuple):
    profile: Profile
    schema_version: int = SCHEMA_VERSION


class Candidate(NamedTuple):
    profile: str
    state: str
    arguments: Sequence[str]
    note: str


class Probe(NamedTuple):
    profile: str
    path: str
    sha256: str
    expected_token_ids: Sequence[int]
    token_ids_sha256: str


class Registry(NamedTuple):
    engine: str
    adapter: str
    version: str
    image: str | None
    image_digest: str | None
    candidates: Sequence[Candidate]
    probes: Sequence[Probe]
    schema_version: int = SCHEMA_VERSION


class RecipeSetting(NamedTuple):
    argument: str
    value: str


class Requalification(NamedTuple):
    required: bool
    attempt: str | None
    statement: str


class RecipeGateway(NamedTuple):
    kind: str
    name: str


class Recipe(NamedTuple):
    id: str
    case: str
    profile: str
    engine: str
    topology: str
    modes: Sequence[str]
    arguments: Sequence[str]
    environment: Mapping[str, str]
    comparison: str | None
    selected: str | None
    setting: RecipeSetting | None
    requalification: Requalification
    gateway: RecipeGateway | None
    scope: str
    settings_file: str


class Recipes(NamedTuple):
    recipes: Sequence[Recipe]
    schema_version: int = SCHEMA_VERSION


class RuleWorker(NamedTuple):
    alias: str
    url: str


class Rule(NamedTuple):
    recipe: str
    mode: str
    listen: str
    strategy: str
    workers: Sequence[RuleWorker]
    note: str
    schema_version: int = SCHEMA_VERSION


class MatrixRow(NamedTuple):
    case: str
    profile: str
    engine: str
    topology: str
    surface: str
    outcome: str
    reason: str
    synthetic: bool
    attempts: Sequence[str]
    decided_by: str | None
    blocker: str | None


class RuntimeMatrix(NamedTuple):
    campaign: str
    status: str
    surfaces: Sequence[str]
    rows: Sequence[MatrixRow]
    schema_version: int = SCHEMA_VERSION


class Distribution(NamedTuple):
    archive: str
    top_folder: str
    preparation: bool


class EngineIdentity(NamedTuple):
    name: str
    value: str
    sha256: str | None


class ManifestEngine(NamedTuple):
    id: str
    adapter: str
    version: str
    synthetic: bool
    registry: str | None
    identity: Sequence[EngineIdentity]
    source: str


class ManifestGateway(NamedTuple):
    kind: str
    name: str
    sha256: str | None
    source_commit: str | None
    reason: str | None


class Boundary(NamedTuple):
    id: str
    statement: str


class PrivacyException(NamedTuple):
    pattern: str
    kind: str
    reason: str


class ManifestCounts(NamedTuple):
    profiles: int
    cases: int
    attempts: int
    comparisons: int
    incomplete_comparisons: int
    main_samples: int
    warm_samples: int
    bodies: int
    lifecycle_records: int


class Builder(NamedTuple):
    name: str
    version: str


class Dates(NamedTuple):
    first_run_started_at: str | None
    last_run_ended_at: str | None


class Manifest(NamedTuple):
    campaign: str
    title: str
    status: str
    distribution: Distribution
    synthetic: str
    statement: str
    engines: Sequence[ManifestEngine]
    gateways: Sequence[ManifestGateway]
    boundaries: Sequence[Boundary]
    privacy_exceptions: Sequence[PrivacyException]
    counts: ManifestCounts
    builder: Builder
    proxy_sha256: str
    dates: Dates
    schema_version: int = SCHEMA_VERSION


class Role(NamedTuple):
    request_sha256: str
    response_sha256: str


class Roles(NamedTuple):
    prefill: Role
    decode: Role


class TransferCounters(NamedTuple):
    before: int
    after: int


class Negative(NamedTuple):
    id: str
    rejected: bool


class PrefillDecodeCase(NamedTuple):
    id: str
    case: str
    profile: str
    engine: str
    reviewed: bool
    outcome: str
    reason: str | None
    roles: Roles | None
    state_preserved: bool | None
    bootstrap_identity: str | None
    decode_transfer_counters: TransferCounters | None
    negatives: Sequence[Negative]
    recovery: bool | None
    cleanup: bool | None
    completed_checks: Sequence[str]


class PrefillDecodeIndex(NamedTuple):
    statement: str
    cases: Sequence[PrefillDecodeCase]
    schema_version: int = SCHEMA_VERSION


class LifecycleEntry(NamedTuple):
    id: str
    path: str
    sha256: str
    experiments: Sequence[str]


class LifecycleIndex(NamedTuple):
    records: Sequence[LifecycleEntry]
    schema_version: int = SCHEMA_VERSION


@functools.cache
def key(name: str) -> str:
    """The JSON key of a field: `ttft_seconds` -> `ttftSeconds`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


@functools.cache
def keys(kind: Any) -> tuple[str, ...]:
    """The JSON keys of a record's fields, in the order in which it takes them."""
    return tuple(map(key, kind._fields))


def to_bytes(record: Any) -> bytes:
    """The canonical bytes of a package file: sorted keys, two spaces, UTF-8, one final newline."""
    return orjson.dumps(record, default=_one_level, option=_CANONICAL)


_CANONICAL = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def _one_level(value: Any) -> Any:
    """What orjson cannot write by itself, one level of it; it comes back for what is inside."""
    if isinstance(value, tuple):  # a record: plain tuples are written already
        return dict(zip(keys(type(value)), value))  # noqa: B905  # the same fields on both sides
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in a package file")
