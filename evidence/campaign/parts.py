"""Reads each kind of table of a campaign file into its record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date as Date
from ipaddress import IPv6Address

from evidence.campaign.model import (
    ADAPTERS,
    CONTROLS,
    KINDS,
    PROTOCOLS,
    SOURCES,
    STATES,
    SURFACES,
    TOPOLOGIES,
    Artifact,
    Case,
    Comparison,
    EngineSpec,
    GatewaySpec,
    Historical,
    Identity,
    Lifecycle,
    PrefillDecode,
    PrivacyException,
    Profile,
    Recipe,
    Role,
    placeholders,
)
from evidence.campaign.request import parsed, read_body, read_case_body, read_probe, unstreamed
from evidence.campaign.table import VARIABLE, Table, nearest, shown

PLACES = ("listen_port", "worker_1", "worker_2", "python", "folder")
"""What may stand in braces in a gateway's command."""


def read_profile(table: Table) -> Profile:
    identifier, repository = table.id(), table.text("repository")
    revision, revision_reason = table.optional_text("revision"), table.optional_text("revision_reason")
    if revision is not None and not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise table.error(
            "revision", repr(revision), "40 lower-case hex digits", "name the commit, not a branch or a tag"
        )
    if (revision is None) == (revision_reason is None):
        raise table.error(
            "revision",
            "nothing" if revision is None else "a revision and a revision_reason",
            "a revision, or a revision_reason why none was established",
            "name the commit whose files these are",
        )
    artifacts: list[Artifact] = []
    for part in table.tables("artifacts"):
        part.place = f"{table.place}, {part.place}"
        artifact = Artifact(part.text("path"), part.hash("sha256"), part.integer("bytes"))
        if artifact.path in {one.path for one in artifacts}:
            raise part.error("path", f"{artifact.path!r} a second time", "each file of the model once")
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
        identifier, repository, revision, revision_reason, table.choice("state", STATES), table.flag("date_sensitive", False),
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
        table.id(), table.choice("adapter", ADAPTERS), table.text("version"), table.program("program"),
        table.optional_text("model"), table.texts("urls", ()), table.variables("environment"), table.texts("arguments", ()),
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


LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
URL = re.compile(rf"http://(?:\[([0-9a-fA-F:]+)\]|{LABEL}(?:\.{LABEL})*)(?::(\d{{1,5}}|\{{listen_port\}}))?/?")


def check_url(table: Table, key: str, url: str, *, chosen: bool = False) -> None:
    """A plain HTTP address: `http://host[:port]`; when the port is `chosen` by the runner, `{listen_port}` stands for it."""
    found = URL.fullmatch(url)
    port = found[2] if found is not None else None
    sound = found is not None and (found[1] is None or is_ipv6(found[1])) and len(url) <= 253
    if port == "{listen_port}" and not chosen:
        raise table.error(key, repr(url), "a port, because it runs already: nothing is started that would be given one")
    if not sound or (port is not None and port.isdigit() and not 0 < int(port) <= 65535):
        raise table.error(key, repr(url), "an address of the form http://host:port")


def is_ipv6(text: str) -> bool:
    """Whether that is an IPv6 address."""
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def read_gateway(table: Table) -> GatewaySpec:
    table.place = "[gateway]"
    gateway = GatewaySpec(
        table.text("name"), table.program("command"), table.text("url"), table.optional_file("config"),
        table.optional_hash("sha256"), table.optional_text("source_commit"), table.optional_text("reason"),
    )  # fmt: skip
    check_url(table, "url", gateway.url, chosen=bool(gateway.command))
    known = [*PLACES, *(["config"] if gateway.config is not None else [])]
    for position, word in enumerate(gateway.command):
        for name in placeholders(word):
            if name not in known:
                raise table.error(
                    f"command[{position}]",
                    f"the placeholder {{{name}}}",
                    "one of " + ", ".join(f"{{{one}}}" for one in known),
                )
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
        withhold, table.texts("arguments", ()), devices, table.seconds("request_timeout_seconds", 120.0), table.flag("attempt", True),
    )  # fmt: skip


def read_comparison(table: Table, cases: Mapping[str, Case], engines: Mapping[str, EngineSpec]) -> Comparison:
    identifier = table.id()
    case = cases[table.reference("case", cases, "a case")]
    if (case.topology, case.surface) != ("two-worker", "rr"):
        raise table.error(
            "case", f"{case.id!r} ({case.topology}, {case.surface})", "a case with topology two-worker and surface rr"
        )
    if engines[case.engine].urls:
        raise table.error(
            "case", f"{case.id!r}, whose engine is named by urls", "an engine that can be started with each setting",
            "take the comparison out: attempts can be captured; or let the engine be started, by `program` instead of `urls`",
        )  # fmt: skip
    kind, argument = table.choice("kind", KINDS), table.text("argument")
    if argument.startswith("ENV:") and not VARIABLE.fullmatch(argument[4:]):
        raise table.error("argument", repr(argument), "ENV: and the name of an environment variable")
    baseline, candidate = table.text("baseline"), table.text("candidate")
    if baseline == candidate:
        raise table.error("candidate", repr(candidate), "another value than the baseline's")
    standing = [
        word for word in (*engines[case.engine].arguments, *case.arguments) if word.split("=", 1)[0] == argument
    ]
    if len(standing) > 1:
        raise table.error(
            "argument",
            f"{argument!r}, which the arguments set {len(standing)} times",
            "one that they set once or not at all",
        )
    body = read_body(table, "body")
    request = parsed(table, "body", "body", body)
    if "messages" not in request:
        raise table.error("body", "a request without messages", "a chat completion request")
    for key, kinds, least in (("temperature", (int, float), 0), ("max_tokens", (int,), 1)):
        value = request.get(key)
        if isinstance(value, bool) or not isinstance(value, kinds) or value < least:
            found = f"{key} {shown(value)}" if key in request else f"a request without {key}"
            raise table.error(
                "body", found, "temperature (at least 0) and max_tokens (an integer, at least 1) fixed in the body"
            )
    if request.get("stream") is not True:
        raise table.error("body", "a request that does not stream", '"stream": true, because TTFT is measured')
    native = read_body(table, "native_body") if "native_body" in table.content else unstreamed(table, request)
    table.asked.add("native_body")
    if parsed(table, "native_body", "native_body", native).get("stream", False) is not False:
        raise table.error(
            "native_body", "a request that streams", "a request without stream: the warm-up answer is JSON"
        )
    dated = table.table("date_sensitive")
    date = None
    if dated is not None:
        date = dated.text("comparison_date")
        if not is_date(date):
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


def is_date(text: str) -> bool:
    """Whether that is a day of the calendar, as YYYY-MM-DD."""
    try:
        return re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None and bool(Date.fromisoformat(text))
    except ValueError:
        return False


def read_recipe(table: Table, cases: Mapping[str, Case], comparisons: Mapping[str, Comparison]) -> Recipe:
    identifier, case = table.id(), table.reference("case", cases, "a case")
    modes = table.choices("modes", SURFACES)
    comparison = table.reference("comparison", comparisons, "a comparison") if "comparison" in table.content else None
    table.asked.add("comparison")
    if not modes:
        raise table.error("modes", "an empty list", "at least one of " + ", ".join(SURFACES))
    return Recipe(identifier, case, modes, comparison, table.text("scope"), table.variables("environment"))


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
