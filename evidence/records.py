"""The typed writers: one frozen dataclass for each shape under `schemas/`.

A field `some_name` is written as the key `someName`. Hashes are 64 lower-case hex digits, bytes are
integers, durations are seconds with at most nine decimals, instants RFC 3339 in UTC. `to_bytes` gives the
canonical form of a package file: UTF-8, sorted keys, two spaces, one final newline. `tests/test_records.py`
holds every dataclass to its schema: the same keys, the same optionality, the same enums.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Body:
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Worker:
    alias: str
    device: str


@dataclass(frozen=True)
class Gateway:
    kind: str
    name: str
    sha256: str | None
    reason: str | None


@dataclass(frozen=True)
class Ready:
    request_sha256: str
    response_sha256: str


@dataclass(frozen=True)
class Launch:
    worker: str
    arguments: Sequence[str]
    arguments_sha256: str
    environment: Mapping[str, str]
    ready: Ready | None


@dataclass(frozen=True)
class Timeline:
    engine_started_seconds: float | None
    ready_seconds: float | None
    native_warm_ended_seconds: float | None
    snapshot_seconds: float | None
    rr_warm_ended_seconds: float | None
    first_main_seconds: float | None
    last_main_seconds: float | None


@dataclass(frozen=True)
class Client:
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


@dataclass(frozen=True)
class LogFinding:
    worker: str
    pattern: str
    line: str
    at_seconds: float


@dataclass(frozen=True)
class TokenIds:
    repetition: int
    arm: str
    worker: str
    token_ids_sha256: str
    tokens: int


@dataclass(frozen=True)
class DateControl:
    time_zone: str
    comparison_date: str
    native_token_ids: Sequence[TokenIds]


@dataclass(frozen=True)
class Setting:
    argument: str
    baseline: str
    candidate: str


@dataclass(frozen=True)
class Protocol:
    temperature: float
    output_budget: int
    stream: bool
    concurrency: int = 8
    main_per_arm: int = 24
    repetitions: int = 3
    order: Sequence[str] = ("A", "B", "B", "A", "A", "B")
    native_warm_per_worker: int = 1
    rr_warm: int = 16


@dataclass(frozen=True)
class Requests:
    native: Body
    main: Body


@dataclass(frozen=True)
class Arm:
    repetition: int
    arm: str
    sequence: int
    started_at: str
    wall_seconds: float | None
    launches: Sequence[Launch]
    timeline: Timeline | None
    client: Client | None
    log_findings: Sequence[LogFinding]


@dataclass(frozen=True)
class Comparison:
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


@dataclass(frozen=True)
class IncompleteComparison:
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


@dataclass(frozen=True)
class Sample:
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


@dataclass(frozen=True)
class Samples:
    comparison: str
    samples: Sequence[Sample]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Receipt:
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


@dataclass(frozen=True)
class Ledger:
    worker: str
    arm: str
    receipts: Sequence[Receipt]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class DeviceMemory:
    device: str
    worker: str
    used_bytes: int | None
    total_bytes: int | None
    reason: str | None


@dataclass(frozen=True)
class Snapshot:
    repetition: int
    arm: str
    taken_seconds: float
    source: str
    method: str
    devices: Sequence[DeviceMemory]


@dataclass(frozen=True)
class Snapshots:
    comparison: str
    snapshots: Sequence[Snapshot]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Side:
    p95_ttft_seconds: float | None
    p95_total_seconds: float | None
    completion_tokens: int | None
    wall_seconds: float
    devices: Mapping[str, int | None]


@dataclass(frozen=True)
class Pair:
    repetition: int
    baseline: Side
    candidate: Side


@dataclass(frozen=True)
class GateRow:
    repetition: int | None
    device: str | None
    baseline: float | int | None
    candidate: float | int | None
    relative: str | None
    holds: bool | None


@dataclass(frozen=True)
class Gate:
    gate: str
    holds: bool | None
    rows: Sequence[GateRow]


@dataclass(frozen=True)
class Disqualification:
    code: str
    detail: str


@dataclass(frozen=True)
class Decision:
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


@dataclass(frozen=True)
class SettingsFiles:
    comparison: str
    samples: str
    snapshots: str
    decision: str


@dataclass(frozen=True)
class SettingsEntry:
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


@dataclass(frozen=True)
class SettingsIndex:
    comparisons: Sequence[SettingsEntry]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class OfferCounts:
    offered: int
    completed: int
    timed_out: int
    failed: int
    never_started: int


@dataclass(frozen=True)
class Upstream:
    sha256: str
    bytes: int
    worker: str
    complete: bool


@dataclass(frozen=True)
class OfferFate:
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


@dataclass(frozen=True)
class Offers:
    comparison: str
    counts: OfferCounts
    offers: Sequence[OfferFate]
    planned: int = 252
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class IncompleteFiles:
    comparison: str
    samples: str
    offers: str


@dataclass(frozen=True)
class IncompleteEntry:
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


@dataclass(frozen=True)
class IncompleteSettingsIndex:
    comparisons: Sequence[IncompleteEntry]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Exact:
    request_sha256: str
    expected_token_ids: Sequence[int]
    observed_token_ids: Sequence[int] | None
    control: str | None
    token_ids_equal: bool | None
    engagement: str
    traffic_per_worker: Mapping[str, int]


@dataclass(frozen=True)
class Scope:
    accepted: bool
    modes: Sequence[str]
    statement: str


@dataclass(frozen=True)
class Attempt:
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


@dataclass(frozen=True)
class Control:
    id: str
    kind: str
    worker: str
    path: str
    status: int | None
    sha256: str
    bytes: int
    kept: bool
    withheld_reason: str | None


@dataclass(frozen=True)
class Controls:
    attempt: str
    controls: Sequence[Control]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class ConvergedFiles:
    attempt: str
    samples: str
    controls: str


@dataclass(frozen=True)
class ConvergedEntry:
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


@dataclass(frozen=True)
class ConvergedIndex:
    attempts: Sequence[ConvergedEntry]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Artifact:
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Template:
    source: str
    sha256: str | None


@dataclass(frozen=True)
class Definition:
    path: str
    sha256: str


@dataclass(frozen=True)
class Profile:
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


@dataclass(frozen=True)
class HistoricalState:
    profile: str
    engine: str
    state: str
    note: str


@dataclass(frozen=True)
class ModelIdentities:
    profiles: Sequence[Profile]
    historical_catalog: Sequence[HistoricalState]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Model:
    profile: Profile
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Candidate:
    profile: str
    state: str
    arguments: Sequence[str]
    note: str


@dataclass(frozen=True)
class Probe:
    profile: str
    path: str
    sha256: str
    expected_token_ids: Sequence[int]
    token_ids_sha256: str


@dataclass(frozen=True)
class Registry:
    engine: str
    adapter: str
    version: str
    image: str | None
    image_digest: str | None
    candidates: Sequence[Candidate]
    probes: Sequence[Probe]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class RecipeSetting:
    argument: str
    value: str


@dataclass(frozen=True)
class Requalification:
    required: bool
    attempt: str | None
    statement: str


@dataclass(frozen=True)
class RecipeGateway:
    kind: str
    name: str


@dataclass(frozen=True)
class Recipe:
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


@dataclass(frozen=True)
class Recipes:
    recipes: Sequence[Recipe]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class RuleWorker:
    alias: str
    url: str


@dataclass(frozen=True)
class Rule:
    recipe: str
    mode: str
    listen: str
    strategy: str
    workers: Sequence[RuleWorker]
    note: str
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class MatrixRow:
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


@dataclass(frozen=True)
class RuntimeMatrix:
    campaign: str
    status: str
    surfaces: Sequence[str]
    rows: Sequence[MatrixRow]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Distribution:
    archive: str
    top_folder: str
    preparation: bool


@dataclass(frozen=True)
class EngineIdentity:
    name: str
    value: str
    sha256: str | None


@dataclass(frozen=True)
class ManifestEngine:
    id: str
    adapter: str
    version: str
    synthetic: bool
    registry: str | None
    identity: Sequence[EngineIdentity]
    source: str


@dataclass(frozen=True)
class ManifestGateway:
    kind: str
    name: str
    sha256: str | None
    source_commit: str | None
    reason: str | None


@dataclass(frozen=True)
class Boundary:
    id: str
    statement: str


@dataclass(frozen=True)
class PrivacyException:
    pattern: str
    kind: str
    reason: str


@dataclass(frozen=True)
class ManifestCounts:
    profiles: int
    cases: int
    attempts: int
    comparisons: int
    incomplete_comparisons: int
    main_samples: int
    warm_samples: int
    bodies: int
    lifecycle_records: int


@dataclass(frozen=True)
class Builder:
    name: str
    version: str


@dataclass(frozen=True)
class Dates:
    first_run_started_at: str | None
    last_run_ended_at: str | None


@dataclass(frozen=True)
class Manifest:
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


@dataclass(frozen=True)
class Role:
    request_sha256: str
    response_sha256: str


@dataclass(frozen=True)
class Roles:
    prefill: Role
    decode: Role


@dataclass(frozen=True)
class TransferCounters:
    before: int
    after: int


@dataclass(frozen=True)
class Negative:
    id: str
    rejected: bool


@dataclass(frozen=True)
class PrefillDecodeCase:
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


@dataclass(frozen=True)
class PrefillDecodeIndex:
    statement: str
    cases: Sequence[PrefillDecodeCase]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class LifecycleEntry:
    id: str
    path: str
    sha256: str
    experiments: Sequence[str]


@dataclass(frozen=True)
class LifecycleIndex:
    records: Sequence[LifecycleEntry]
    schema_version: int = SCHEMA_VERSION


@functools.cache
def key(name: str) -> str:
    """The JSON key of a field: `ttft_seconds` -> `ttftSeconds`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, key(field.name)) for field in dataclasses.fields(kind))


def plain(value: Any) -> Any:
    """A record as dicts, lists and scalars under their JSON keys."""
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, field)) for field, name in _fields(type(value))}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value]


def to_bytes(record: Any) -> bytes:
    """The canonical bytes of a package file: sorted keys, two spaces, UTF-8, one final newline."""
    return orjson.dumps(record, default=_one_level, option=_CANONICAL)


_CANONICAL = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATACLASS


@functools.cache
def _taker(kind: type) -> Callable[[Any], dict[str, Any]]:
    """What takes a record of this kind apart, in one call for all fields: a package has tens of thousands of rows."""
    fields, names = zip(*_fields(kind), strict=True)
    if len(fields) == 1:
        return lambda record: {names[0]: getattr(record, fields[0])}
    values = operator.attrgetter(*fields)
    return lambda record: dict(zip(names, values(record)))  # noqa: B905  # the same fields on both sides


def _one_level(value: Any) -> Any:
    """What orjson cannot write by itself, one level of it; it comes back for what is inside."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _taker(type(value))(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in a package file")


def from_bytes(data: bytes) -> Any:
    """Plain JSON of bytes that this project wrote; not for evidence that somebody else hands in."""
    return orjson.loads(data)
