"""The campaign: what is to be evaluated, read from `campaign.toml` and checked whole.

`read_campaign(path)` gives one frozen `Campaign`, or one `EvidenceError` that names the file, the table and the
key, what was found and what was expected. The file and every path in it lie in one folder, so that the folder
alone rebuilds the package. docs/format.md, section 8, says what each key means.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from evidence.errors import EvidenceError
from evidence.table import RetainedFile, Table, nearest, shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ADAPTERS = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers-serve", "sie", "synthetic", "command")
SURFACES = ("native", "rr", "exact", "native-pd")
TOPOLOGIES = ("single", "two-worker", "prefill-decode")
STATES = ("accessible", "gated", "deferred")
STATUSES = ("FINAL", "IN_PROGRESS_NOT_FINAL")
KINDS = ("memory", "sequence-cap")
CONTROLS = ("models", "health", "version", "metrics")
SOURCES = ("nvml", "process-rss", "synthetic", "none")
PROTOCOLS = ("co-residency", "crash", "lora")

Item = TypeVar("Item")


@dataclass(frozen=True)
class Artifact:
    """One file of a model's repository: its path there, SHA-256 and length in bytes."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Profile:
    """One model to serve. `model` is where its files are on this machine (before the engine's own), unexpanded."""

    id: str
    repository: str
    revision: str
    state: str
    date_sensitive: bool
    license: str
    artifacts: tuple[Artifact, ...]
    source_index: RetainedFile | None
    template_source: str
    template_sha256: str | None
    definition: RetainedFile
    model: str | None


@dataclass(frozen=True)
class Identity:
    """A declared fact about an engine: a wheel, an image, a binary."""

    name: str
    value: str
    sha256: str | None


@dataclass(frozen=True)
class EngineSpec:
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


@dataclass(frozen=True)
class GatewaySpec:
    """The campaign's own gateway: a command to start, or the URL of one that runs. `config` is a file with placeholders."""

    name: str
    command: tuple[str, ...]
    url: str
    config: RetainedFile | None
    sha256: str | None
    source_commit: str | None
    reason: str | None


@dataclass(frozen=True)
class Probe:
    """A request whose rendered input is known: its body as sent, and the token ids that the engine must see."""

    file: RetainedFile
    body: bytes
    expected_token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Case:
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


@dataclass(frozen=True)
class Comparison:
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


@dataclass(frozen=True)
class Recipe:
    """What a reader may start: a case's launch, in `modes`, within `scope`; with a comparison's choice where named."""

    id: str
    case: str
    modes: tuple[str, ...]
    comparison: str | None
    scope: str
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Role:
    """The bodies of one role of a reviewed prefill/decode exchange, by hash."""

    request_sha256: str
    response_sha256: str


@dataclass(frozen=True)
class PrefillDecode:
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


@dataclass(frozen=True)
class Historical:
    """A state that an older catalog gave a profile; it promotes nothing."""

    profile: str
    engine: str
    state: str
    note: str


@dataclass(frozen=True)
class PrivacyException:
    """Text that looks private and may stand in the package, with the reason why."""

    pattern: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Lifecycle:
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
    sha256: str = field(default="")

    @property
    def folder(self) -> Path:
        """The folder that holds the campaign file and everything that it names."""
        return self.path.parent

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
            f"{self.path.name}: found no case, comparison or lifecycle {name!r}, expected one of its ids",
            nearest(name, known),
        )

    def model_of(self, profile: Profile, engine: EngineSpec) -> str | None:
        """Where the model's files are, `{env:NAME}` read; None when nothing is named or the variable is not set."""
        named = profile.model or engine.model
        return None if named is None else expanded(named)


def expanded(text: str) -> str | None:
    """`text` with every `{env:NAME}` read from the environment; None when a variable is not set."""
    missing = [name for name in re.findall(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}", text) if not os.environ.get(name)]
    if missing:
        return None
    return re.sub(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}", lambda found: os.environ[found[1]], text)


def request_path(body: bytes) -> str:
    """The OpenAI path that a request body belongs to: chat, completions or embeddings."""
    request = json.loads(body)
    if "messages" in request:
        return "/v1/chat/completions"
    return "/v1/completions" if "prompt" in request else "/v1/embeddings"


def read_campaign(path: Path) -> Campaign:
    """Reads and checks a campaign file, or the `campaign.toml` of a folder."""
    source = path / "campaign.toml" if path.is_dir() else path
    try:
        content = source.read_bytes()
    except OSError as error:
        raise EvidenceError(
            f"{source}: cannot be read ({error.strerror}), expected a campaign file", "`evidence init DIR` writes one"
        ) from None
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise EvidenceError(f"{source.name}: found bytes that are not UTF-8 at {error.start}, expected TOML") from None
    except tomllib.TOMLDecodeError as error:
        raise EvidenceError(f"{source.name}: found no valid TOML: {str(error).lower()}") from None
    top = Table(source, "top level", document)
    if top.integer("schema_version", least=0) != 1:
        raise top.error(
            "schema_version", str(document["schema_version"]), "1", "this version reads campaigns of form 1"
        )
    campaign = read_tables(top, content)
    check_whole(top, campaign)
    return campaign


def read_tables(top: Table, content: bytes) -> Campaign:
    """Every table of the file in the order in which they refer to one another."""
    head = top.needed("campaign", top.table("campaign"), "a table [campaign]")
    head.place = "[campaign]"
    name, title = head.id("name"), head.text("title")
    status = head.choice("status", STATUSES)
    surfaces = head.choices("surfaces", SURFACES)
    if not surfaces:
        raise head.error("surfaces", "an empty list", "at least one of " + ", ".join(SURFACES))
    head.end()
    profiles = by_id(top, "profile", read_profile)
    engines = by_id(top, "engine", read_engine)
    gateway_table = top.table("gateway")
    gateway = None if gateway_table is None else read_gateway(gateway_table)
    cases = by_id(top, "case", lambda table: read_case(table, profiles, engines, surfaces))
    comparisons = by_id(top, "comparison", lambda table: read_comparison(table, cases, engines))
    recipes = by_id(top, "recipe", lambda table: read_recipe(table, cases, comparisons))
    reviewed = by_id(top, "prefill_decode", lambda table: read_prefill_decode(table, cases, profiles, engines))
    historical = tuple(read_historical(table) for table in top.tables("historical"))
    exceptions = tuple(read_exception(table) for table in top.tables("privacy_exception"))
    lifecycle = by_id(top, "lifecycle", read_lifecycle)
    top.end()
    return Campaign(
        top.source, content, name, title, status, surfaces, profiles, engines, gateway, cases, comparisons, recipes,
        reviewed, historical, exceptions, lifecycle, hashlib.sha256(content).hexdigest(),
    )  # fmt: skip


def by_id(top: Table, key: str, read: Callable[[Table], Item]) -> dict[str, Item]:
    """The tables of `[[key]]` by their id, each id once."""
    found: dict[str, Item] = {}
    for table in top.tables(key):
        identifier = str(table.content.get("id", ""))
        item = read(table)
        table.end()
        if identifier in found:
            raise table.error("id", f"{identifier!r} a second time", "each id once")
        found[identifier] = item
    return found


def check_whole(top: Table, campaign: Campaign) -> None:
    """What no single table shows: one name for each thing to capture, and a case for each profile and surface."""
    names: dict[str, str] = {}
    for place, group in (
        ("case", campaign.cases),
        ("comparison", campaign.comparisons),
        ("lifecycle", campaign.lifecycle),
    ):
        for name in group:
            if name in names:
                raise top.error(
                    f"[[{place}]]", f"id {name!r}, which a {names[name]} has too", "one name for one thing to capture"
                )
            names[name] = place
    rows = {(case.profile, case.surface) for case in campaign.cases.values()}
    for profile in campaign.profiles:
        for surface in campaign.surfaces:
            if (profile, surface) not in rows:
                raise top.error(
                    "[[case]]", f"no case of profile {profile!r} on surface {surface!r}", "one for each profile and surface",
                    "a profile that will not run needs its rows too: deferred, gated and not attempted are outcomes",
                )  # fmt: skip


def read_profile(table: Table) -> Profile:
    identifier, repository = table.id(), table.text("repository")
    revision = table.text("revision")
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise table.error(
            "revision", repr(revision), "40 lower-case hex digits", "name the commit, not a branch or a tag"
        )
    artifacts = []
    for part in table.tables("artifacts"):
        part.place = f"{table.place}, {part.place}"
        artifact = Artifact(part.text("path"), part.hash("sha256"), part.integer("bytes"))
        part.end()
        artifacts.append(artifact)
    index = table.optional_file("source_index")
    declared = table.optional_hash("source_index_sha256")
    if declared is not None and (index is None or index.sha256 != declared):
        raise table.error(
            "source_index_sha256",
            declared,
            f"the SHA-256 of source_index, {index.sha256 if index else 'which is not named'}",
        )
    template = table.needed("template", table.table("template"), "a table with source and sha256")
    source, template_hash = template.text("source"), template.optional_hash("sha256")
    template.end()
    return Profile(
        identifier, repository, revision, table.choice("state", STATES), table.flag("date_sensitive", False),
        table.text("license"), tuple(artifacts), index, source, template_hash, table.file("definition"),
        table.optional_text("model"),
    )  # fmt: skip


def read_engine(table: Table) -> EngineSpec:
    identity = []
    for part in table.tables("identity"):
        part.place = f"{table.place}, {part.place}"
        identity.append(Identity(part.text("name"), part.text("value"), part.optional_hash("sha256")))
        part.end()
    engine = EngineSpec(
        table.id(), table.choice("adapter", ADAPTERS), table.text("version"), table.texts("program", ()),
        table.optional_text("model"), table.texts("urls", ()), table.mapping("environment"), table.texts("arguments", ()),
        table.seconds("ready_timeout_seconds", 120.0), table.choice("snapshot", SOURCES, "none"),
        table.optional_folder("registry"), tuple(identity),
    )  # fmt: skip
    for url in engine.urls:
        check_url(table, "urls", url)
    if engine.adapter == "command" and not engine.program and not engine.urls:
        raise table.error("program", "nothing", "the whole command, because the adapter is `command`")
    if engine.snapshot == "synthetic" and engine.adapter != "synthetic":
        raise table.error(
            "snapshot", "'synthetic'", "nvml, process-rss or none", "only the synthetic engine has made-up memory"
        )
    return engine


def check_url(table: Table, key: str, url: str) -> None:
    """A plain HTTP address: `http://host[:port]`, with `{listen_port}` allowed as the port."""
    if not re.fullmatch(r"http://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:(\d{1,5}|\{listen_port\}))?/?", url):
        raise table.error(key, repr(url), "an address of the form http://host:port")


def read_gateway(table: Table) -> GatewaySpec:
    table.place = "[gateway]"
    gateway = GatewaySpec(
        table.text("name"), table.texts("command", ()), table.text("url"), table.optional_file("config"),
        table.optional_hash("sha256"), table.optional_text("source_commit"), table.optional_text("reason"),
    )  # fmt: skip
    check_url(table, "url", gateway.url)
    table.end()
    return gateway


def read_case(
    table: Table, profiles: Mapping[str, Profile], engines: Mapping[str, EngineSpec], surfaces: Sequence[str]
) -> Case:
    identifier = table.id()
    profile = table.reference("profile", profiles, "a profile")
    engine = table.reference("engine", engines, "an engine")
    topology, surface = table.choice("topology", TOPOLOGIES), table.choice("surface", SURFACES)
    if surface not in surfaces:
        raise table.error("surface", repr(surface), "a surface of the campaign: " + ", ".join(surfaces))
    if surface == "rr" and topology != "two-worker":
        raise table.error("topology", repr(topology), "two-worker, because the surface is rr")
    if (surface == "native-pd") != (topology == "prefill-decode"):
        raise table.error("topology", repr(topology), "prefill-decode with native-pd, and only with it")
    probe = read_probe(table)
    body = read_case_body(table, profile)
    controls = table.choices("controls", CONTROLS, ())
    withhold = table.mapping("withhold")
    for name in withhold:
        if name not in controls:
            raise table.error(
                f"withhold.{name}", "a control that is not asked for", "one of controls", nearest(name, controls)
            )
    devices = table.texts("devices", ("0",) if topology == "single" else ("0", "1"))
    if len(devices) != (1 if topology == "single" else 2):
        raise table.error("devices", f"{len(devices)} devices", "one for each worker")
    requests = table.integer("requests", 4, least=1, most=10000)
    return Case(
        identifier, profile, engine, topology, surface, requests, probe.body if probe else body, probe, controls,
        withhold, table.texts("arguments", ()), devices, table.seconds("request_timeout_seconds", 120.0),
    )  # fmt: skip


def read_case_body(table: Table, model: str) -> bytes:
    """The request of a case: a file's bytes, or the keys of an inline table with `stream` and `max_tokens` beside it."""
    if isinstance(table.content.get("body"), str):
        return read_body(table, "body")
    given = table.take("body", dict, "a file name or a table with messages")
    stream, budget = table.flag("stream", True), table.integer("max_tokens", 64, least=1)
    request = {"model": model, "messages": [{"role": "user", "content": "Name three rivers."}], "temperature": 0}
    if given is not None:
        if not {"messages", "prompt", "input"} & set(given):
            raise table.error("body", shown(given), "messages, prompt or input")
        request = {"model": model, "temperature": 0, **given}
    if "input" not in request:
        request |= {"max_tokens": budget, "stream": stream}
        if stream:
            request["stream_options"] = {"include_usage": True}
    return json.dumps(request, ensure_ascii=False, sort_keys=True, allow_nan=False).encode()


def read_body(table: Table, key: str) -> bytes:
    """The bytes of a request file, which must be a JSON object with messages, prompt or input."""
    file = table.file(key)
    content = file.read()
    request = parsed(table, key, file.name, content)
    if not {"messages", "prompt", "input"} & set(request):
        raise table.error(key, f"{file.name} without messages, prompt or input", "an OpenAI request body")
    return content


def parsed(table: Table, key: str, name: str, content: bytes) -> dict[str, Any]:
    """A JSON object from a file of the campaign, without duplicate keys, NaN or Infinity."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({k for k, _ in items}) != len(items):
            raise ValueError("a duplicate key")
        return dict(items)

    def constant(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise table.error(key, f"{name} with no strict JSON ({error})", "one JSON object") from None
    if not isinstance(value, dict):
        raise table.error(key, f"{name} with {type(value).__name__}", "one JSON object")
    return value


def read_probe(table: Table) -> Probe | None:
    """A probe file: `{"request": {...}, "expectedTokenIds": [...]}`."""
    file = table.optional_file("probe")
    if file is None:
        return None
    content = parsed(table, "probe", file.name, file.read())
    request, ids = content.get("request"), content.get("expectedTokenIds")
    if not isinstance(request, dict) or not {"messages", "prompt"} & set(request):
        raise table.error(
            "probe", f"{file.name} without a request", '{"request": {"messages": ..}, "expectedTokenIds": [..]}'
        )
    if not isinstance(ids, list) or not ids or not all(type(token) is int and token >= 0 for token in ids):
        raise table.error("probe", f"{file.name} without expectedTokenIds", "a list of token ids, at least one")
    return Probe(file, json.dumps(request, ensure_ascii=False, sort_keys=True).encode(), tuple(ids))


def read_comparison(table: Table, cases: Mapping[str, Case], engines: Mapping[str, EngineSpec]) -> Comparison:
    identifier = table.id()
    case = cases[table.reference("case", cases, "a case")]
    if (case.topology, case.surface) != ("two-worker", "rr"):
        raise table.error(
            "case", f"{case.id!r} ({case.topology}, {case.surface})", "a case with topology two-worker and surface rr"
        )
    if engines[case.engine].urls:
        raise table.error(
            "case", f"{case.id!r}, whose engine is named by urls", "an engine that can be started with each setting"
        )
    kind, argument = table.choice("kind", KINDS), table.text("argument")
    baseline, candidate = table.text("baseline"), table.text("candidate")
    if baseline == candidate:
        raise table.error("candidate", repr(candidate), "another value than the baseline's")
    for place in (engines[case.engine].arguments, case.arguments):
        if any(word == argument or word.startswith(argument + "=") for word in place):
            raise table.error(
                "argument",
                f"{argument!r}, which the arguments set already",
                "an argument that only the comparison sets",
            )
    body = read_body(table, "body")
    request = parsed(table, "body", "body", body)
    if "messages" not in request:
        raise table.error("body", "a request without messages", "a chat completion request")
    for key in ("temperature", "max_tokens"):
        if isinstance(request.get(key), bool) or not isinstance(request.get(key), (int, float)):
            raise table.error("body", f"a request without {key}", "temperature and max_tokens fixed in the body")
    if request.get("stream") is not True:
        raise table.error("body", "a request that does not stream", '"stream": true, because TTFT is measured')
    native = read_body(table, "native_body") if "native_body" in table.content else unstreamed(request)
    table.asked.add("native_body")
    if parsed(table, "native_body", "native_body", native).get("stream", False) is not False:
        raise table.error(
            "native_body", "a request that streams", "a request without stream: the warm-up answer is JSON"
        )
    dated = table.table("date_sensitive")
    date = None
    if dated is not None:
        date = dated.text("comparison_date")
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
            raise dated.error("comparison_date", repr(date), "a date as YYYY-MM-DD")
        dated.end()
    devices = table.texts("devices", ("0", "1"))
    if len(devices) != 2:
        raise table.error("devices", f"{len(devices)} devices", "two, one for each worker")
    return Comparison(
        identifier, case.id, kind, argument, baseline, candidate, body, native,
        table.seconds("request_timeout_seconds", 120.0), devices, table.seconds("client_late_limit_seconds", 0.05),
        table.texts("allow_log_findings", ()), date,
    )  # fmt: skip


def unstreamed(request: Mapping[str, Any]) -> bytes:
    """The main request without streaming: what the native warm-up sends when the campaign names no body for it."""
    kept = {key: value for key, value in request.items() if key not in ("stream", "stream_options")}
    return json.dumps(kept | {"stream": False}, ensure_ascii=False, sort_keys=True).encode()


def read_recipe(table: Table, cases: Mapping[str, Case], comparisons: Mapping[str, Comparison]) -> Recipe:
    identifier, case = table.id(), table.reference("case", cases, "a case")
    modes = table.choices("modes", SURFACES)
    comparison = table.reference("comparison", comparisons, "a comparison") if "comparison" in table.content else None
    table.asked.add("comparison")
    if not modes:
        raise table.error("modes", "an empty list", "at least one of " + ", ".join(SURFACES))
    return Recipe(identifier, case, modes, comparison, table.text("scope"), table.mapping("environment"))


def read_prefill_decode(
    table: Table, cases: Mapping[str, Case], profiles: Mapping[str, Profile], engines: Mapping[str, EngineSpec]
) -> PrefillDecode:
    identifier, case = table.id(), table.reference("case", cases, "a case")
    profile, engine = table.reference("profile", profiles, "a profile"), table.reference("engine", engines, "an engine")
    roles = table.table("roles")
    read_roles = None if roles is None else {name: read_role(roles, name) for name in ("prefill", "decode")}
    if roles is not None:
        roles.end()
    counters = table.table("decode_transfer_counters")
    read_counters = None if counters is None else {name: counters.integer(name) for name in ("before", "after")}
    if counters is not None:
        counters.end()
    negatives = []
    for part in table.tables("negatives"):
        part.place = f"{table.place}, {part.place}"
        negatives.append((part.id(), part.flag("rejected")))
        part.end()
    return PrefillDecode(
        identifier, case, profile, engine, table.flag("reviewed"), table.choice("outcome", ("QUALIFIED", "FAILED")),
        table.optional_text("reason"), read_roles, table.optional_flag("state_preserved"),
        table.optional_hash("bootstrap_identity"), read_counters, tuple(negatives), table.optional_flag("recovery"),
        table.optional_flag("cleanup"), table.texts("completed_checks", ()),
    )  # fmt: skip


def read_role(roles: Table, name: str) -> Role:
    table = roles.needed(name, roles.table(name), "a table with request_sha256 and response_sha256")
    role = Role(table.hash("request_sha256"), table.hash("response_sha256"))
    table.end()
    return role


def read_historical(table: Table) -> Historical:
    found = Historical(table.text("profile"), table.text("engine"), table.text("state"), table.text("note"))
    table.end()
    return found


def read_exception(table: Table) -> PrivacyException:
    found = PrivacyException(table.text("pattern"), table.text("kind"), table.text("reason"))
    table.end()
    return found


def read_lifecycle(table: Table) -> Lifecycle:
    """The id, protocol and record; every other key is the protocol's own and stays as it is."""
    found = table.id(), table.choice("protocol", PROTOCOLS), table.optional_file("record")
    settings, table.content = dict(table.content), {}
    return Lifecycle(*found, settings)
