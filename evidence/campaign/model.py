"""What a campaign consists of: frozen records, as docs/format.md, section 8, describes them.

Named tuples with annotations that are evaluated, here and in `evidence.records`: every command makes them before it begins.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evidence.campaign.table import RetainedFile, nearest
from evidence.errors import EvidenceError

ADAPTERS = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers-serve", "sie", "synthetic", "command")
SURFACES = ("native", "rr", "exact", "native-pd")
TOPOLOGIES = ("single", "two-worker", "prefill-decode")
STATES = ("accessible", "gated", "deferred")
STATUSES = ("FINAL", "IN_PROGRESS_NOT_FINAL")
KINDS = ("memory", "sequence-cap")
CONTROLS = ("models", "health", "version", "metrics")
SOURCES = ("nvml", "process-rss", "synthetic", "none")
PROTOCOLS = ("co-residency", "crash", "lora")


class Artifact(NamedTuple):
    """One file of a model's repository: its path there, SHA-256 and length in bytes."""

    path: str
    sha256: str
    bytes: int


class Profile(NamedTuple):
    """One model to serve. `model` is where its files are on this machine (before the engine's own), unexpanded."""

    id: str
    repository: str
    revision: str | None
    revision_reason: str | None
    state: str
    date_sensitive: bool
    license: str
    artifacts: tuple[Artifact, ...]
    source_index: RetainedFile | None
    template_source: str
    template_sha256: str | None
    definition: RetainedFile
    model: str | None


class Identity(NamedTuple):
    """A declared fact about an engine: a wheel, an image, a binary."""

    name: str
    value: str
    sha256: str | None


class EngineSpec(NamedTuple):
    """One serving program and how to start it. `program` and `model` are as written; see `expanded`."""

    id: str
    adapter: str
    version: str
    program: tuple[str, ...]
    model: str | None
    urls: tuple[str, ...]
    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    ready_timeout_seconds: float
    snapshot: str
    registry: str | None
    identity: tuple[Identity, ...]


class GatewaySpec(NamedTuple):
    """The campaign's own gateway: a command to start, or the URL of one that runs. `config` is a file with placeholders."""

    name: str
    command: tuple[str, ...]
    url: str
    config: RetainedFile | None
    sha256: str | None
    source_commit: str | None
    reason: str | None


class Probe(NamedTuple):
    """A request whose rendered input is known: its body as sent, and the token ids that the engine must see."""

    file: RetainedFile
    body: bytes
    expected_token_ids: tuple[int, ...]


class Case(NamedTuple):
    """One profile x engine x topology x surface, and the requests of an attempt at it."""

    id: str
    profile: str
    engine: str
    topology: str
    surface: str
    requests: int
    body: bytes
    probe: Probe | None
    controls: tuple[str, ...]
    withhold: Mapping[str, str]
    arguments: tuple[str, ...]
    devices: tuple[str, ...]
    request_timeout_seconds: float
    attempt: bool


class Comparison(NamedTuple):
    """One launch argument changed from `baseline` to `candidate`, on a case with two workers and round robin."""

    id: str
    case: str
    kind: str
    argument: str
    baseline: str
    candidate: str
    body: bytes
    native_body: bytes
    request_timeout_seconds: float
    devices: tuple[str, ...]
    client_late_limit_seconds: float
    allow_log_findings: tuple[str, ...]
    comparison_date: str | None


class Recipe(NamedTuple):
    """What a reader may start: a case's launch, in `modes`, within `scope`; with a comparison's choice where named."""

    id: str
    case: str
    modes: tuple[str, ...]
    comparison: str | None
    scope: str
    environment: Mapping[str, str]


class Role(NamedTuple):
    """The bodies of one role of a reviewed prefill/decode exchange, by hash."""

    request_sha256: str
    response_sha256: str


class PrefillDecode(NamedTuple):
    """A reviewed summary of a native prefill/decode case."""

    id: str
    case: str
    profile: str
    engine: str
    reviewed: bool
    outcome: str
    reason: str | None
    roles: Mapping[str, Role] | None
    state_preserved: bool | None
    bootstrap_identity: str | None
    decode_transfer_counters: Mapping[str, int] | None
    negatives: tuple[tuple[str, bool], ...]
    recovery: bool | None
    cleanup: bool | None
    completed_checks: tuple[str, ...]


class Historical(NamedTuple):
    """A state that an older catalog gave a profile; it promotes nothing."""

    profile: str
    engine: str
    state: str
    note: str


class PrivacyException(NamedTuple):
    """Text that looks private and may stand in the package, with the reason why."""

    pattern: str
    kind: str
    reason: str


class Lifecycle(NamedTuple):
    """A lifecycle protocol to run (`settings` are its own keys, read by its runner), or a ready record."""

    id: str
    protocol: str
    record: RetainedFile | None
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Campaign:
    """A campaign file, read and consistent. Mappings are by id and keep the order of the file."""

    path: Path
    content: bytes
    name: str
    title: str
    status: str
    surfaces: tuple[str, ...]
    limitations: tuple[str, ...]
    profiles: Mapping[str, Profile]
    engines: Mapping[str, EngineSpec]
    gateway: GatewaySpec | None
    cases: Mapping[str, Case]
    comparisons: Mapping[str, Comparison]
    recipes: Mapping[str, Recipe]
    prefill_decode: Mapping[str, PrefillDecode]
    historical: tuple[Historical, ...]
    privacy_exceptions: tuple[PrivacyException, ...]
    lifecycle: Mapping[str, Lifecycle]
    sha256: str = ""

    @property
    def folder(self) -> Path:
        """The folder that holds the campaign file and everything that it names."""
        return self.path.parent

    def names(self) -> list[str]:
        """What can be captured, in the order of the file: comparisons, cases to attempt, lifecycle protocols to run.

        Left out are cases of deferred profiles, cases with `attempt = false`, native prefill/decode, which is reviewed by hand, and ready lifecycle records.
        """
        attempted = [
            case.id
            for case in self.cases.values()
            if case.attempt and case.surface != "native-pd" and self.profiles[case.profile].state != "deferred"
        ]
        return [*self.comparisons, *attempted, *(one.id for one in self.lifecycle.values() if one.record is None)]

    def kind(self, name: str) -> str:
        """What `capture` makes of `name`: `comparison`, `attempt` or a lifecycle protocol. Refuses an unknown name."""
        if name in self.comparisons:
            return "comparison"
        if name in self.cases:
            return "attempt"
        if name in self.lifecycle:
            return self.lifecycle[name].protocol
        known = [*self.comparisons, *self.cases, *self.lifecycle]
        raise EvidenceError(
            f"{self.path}: found no case, comparison or lifecycle {name!r}, expected one of its ids",
            nearest(name, known),
        )

    def model_of(self, profile: Profile, engine: EngineSpec) -> str | None:
        """Where the model's files are, `{env:NAME}` read; None when nothing is named or the variable is not set."""
        named = profile.model or engine.model
        return None if named is None else expanded(named)


def placeholders(word: str) -> list[str]:
    """The names that stand in braces in a word of a command; braces around anything else are text."""
    return re.findall(r"\{([a-z][a-z_0-9]*)\}", word)


def expanded(text: str) -> str | None:
    """`text` with every `{env:NAME}` read from the environment; None when a variable is not set."""
    missing = [name for name in re.findall(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}", text) if not os.environ.get(name)]
    if missing:
        return None
    return re.sub(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}", lambda found: os.environ[found[1]], text)
