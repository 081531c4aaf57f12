"""One lifecycle section of a campaign: its keys, their forms, and the protocol's own settings.

The keys of a section (besides `id` and `protocol`):

    target = "supervisor"            # supervisor for co-residency and crash; vllm | llama.cpp | sie for lora
    config = "supervisor.toml"       # of `evidence serve`, beside the campaign; target supervisor
    command = ["vllm", "serve", ...] # or: a target to start, with {port} {host} {python} {env:NAME}; and
    environment = {NAME = "value"}   # its environment
    ready_path = "/health"           # what answers 200 once it is ready; ready_timeout_s = 120
    url = "http://127.0.0.1:8080"    # or: a target that runs already
    models = [{model = "a", kv_token_budget = 4096, artifact = "x.gguf", artifact_sha256 = "..."}]
    software = {"llama.cpp" = "..."}
    hardware = {gpu = "..."}         # optional; totals are measured
    limits = {rounds = 3, ...}       # the protocol's own settings, see coresidency.py, crash.py, lora.py, selection.py
    claim, limitations, invocation, environment_note     # optional words
    fixtures, lora_alpha, fixture_normal_weight_scale    # lora

Protocol lora is two: where a caller loads and unloads adapters by name (vllm), they come and go over a capacity
(lora.py); where a request selects them (llama.cpp, sie), the run shows selection (selection.py).
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from evidence.campaign.table import VARIABLE
from evidence.errors import EvidenceError
from evidence.lifecycle.coresidency import CoResidency
from evidence.lifecycle.crash import Crash
from evidence.lifecycle.lora import ENGINES, Adapters
from evidence.lifecycle.selection import SELECTORS, Selection
from evidence.lifecycle.target import REFUSED, TARGETS

SETTINGS: Mapping[str, Any] = {"co-residency": CoResidency, "crash": Crash, "lora": Adapters}
LORA_TARGETS = (*ENGINES, *SELECTORS)
Form = tuple[Callable[[Any], bool], str]
"""Whether a value has the form, and what is expected when it has not."""


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e9


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def is_json(value: Any) -> bool:
    """Whether JSON has a form for it: of what TOML has, no dates and no nan."""
    try:
        return bool(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return False


def each(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Of a list each entry, of a table each value."""
    return lambda value: all(map(holds, value.values() if isinstance(value, dict) else value))


def is_list(value: Any) -> bool:
    return isinstance(value, list)


TEXT: Form = is_text, "a text"
TEXTS: Form = (lambda value: is_list(value) and each(is_text)(value)), "a list of texts"
TABLE: Form = (lambda value: isinstance(value, dict) and is_json(value)), "a table of texts, numbers, lists and tables"
NAMED: Form = (lambda value: isinstance(value, dict) and each(is_text)(value)), "a table of texts"
COUNTS: Form = (lambda value: isinstance(value, dict) and each(is_whole)(value)), "a table of integers from 0"
NUMBER: Form = is_number, "a number from 0 to 1e9"
KEYS: Mapping[str, Form] = {
    "target": TEXT,
    "config": TEXT,
    "command": (lambda value: TEXTS[0](value) and bool(value), "a list of words, at least one"),
    "environment": (
        lambda value: (
            isinstance(value, dict)
            and all(VARIABLE.fullmatch(name) for name in value)
            and all(isinstance(one, str) and "\0" not in one for one in value.values())
        ),
        "a table of variables to texts",
    ),
    "ready_path": (lambda value: is_text(value) and value.startswith("/"), "a path that begins with /"),
    "ready_timeout_s": (lambda value: is_number(value) and 0 < value <= 86400, "seconds above 0 and at most 86400"),
    "url": (lambda value: is_text(value) and value.startswith("http://"), "an address of the form http://host:port"),
    "models": (
        lambda value: is_list(value) and all(TABLE[0](one) and is_text(one.get("model")) for one in value),
        "a list of tables, each with the text `model`",
    ),
    "software": NAMED,
    "hardware": TABLE,
    "limits": TABLE,
    "claim": TEXT,
    "limitations": TEXTS,
    "invocation": TEXTS,
    "environment_note": TEXT,
    "fixtures": TEXT,
    "lora_alpha": NUMBER,
    "fixture_normal_weight_scale": NUMBER,
}
LIMITS: Mapping[str, Form] = {
    "str": TEXT,
    "int": (is_whole, "an integer from 0"),
    "float": NUMBER,
    "tuple[str, ...]": TEXTS,
    "dict[str, str]": NAMED,
    "dict[str, int]": COUNTS,
}
"""By the type of the protocol's own field."""


def expand(value: Any, places: Mapping[str, str]) -> Any:
    """{port}, {host}, {python} and {env:NAME} in every text of a value. Raises EvidenceError for an unset variable."""
    if isinstance(value, dict):
        return {key: expand(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [expand(one, places) for one in value]
    if not isinstance(value, str):
        return value

    def read(match: re.Match[str]) -> str:
        if match[1] in places:
            return places[match[1]]
        name = match[1].removeprefix("env:")
        if not match[1].startswith("env:") or name not in os.environ:
            raise EvidenceError(f"{value!r}: {{{match[1]}}} is not known", "set the environment variable")
        return os.environ[name]

    return re.sub(r"\{(port|host|python|env:[A-Za-z_][A-Za-z0-9_]*)\}", read, value)


def read_limits(identifier: str, protocol: str, section: Mapping[str, Any]) -> Any:
    """The protocol's settings from `limits`. Raises EvidenceError naming an unknown or missing key."""
    kind: Any = Selection if protocol == "lora" and section.get("target") in SELECTORS else SETTINGS[protocol]
    limits = section.get("limits", {})
    if not isinstance(limits, dict):
        raise EvidenceError(f"lifecycle {identifier}: limits: found {limits!r:.60}, expected a table")
    given = expand(limits, {})
    known = {field.name: field for field in dataclasses.fields(kind)}
    for key in given:
        if key not in known:
            raise EvidenceError(
                f"lifecycle {identifier}: limits.{key}: found an unknown key, expected one of {', '.join(known)}"
            )
    for key, value in given.items():
        holds, expected = LIMITS[str(known[key].type)]
        if not holds(value):
            raise EvidenceError(f"lifecycle {identifier}: limits.{key}: found {value!r:.60}, expected {expected}")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        settings = kind(**values)
    except TypeError as error:
        missing = [
            name
            for name, field in known.items()
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            and name not in given
        ]
        raise EvidenceError(
            f"lifecycle {identifier}: limits: found no {', '.join(missing) or error}, expected these keys"
        ) from None
    try:
        settings.check()
    except EvidenceError as error:
        raise EvidenceError(f"lifecycle {identifier}: limits: {error.message}", error.hint, code=error.code) from None
    return settings


def check_section(identifier: str, protocol: str, section: Mapping[str, Any]) -> None:
    """Refuse an unknown protocol, key or target, and a section without exactly one way to its target."""
    if not isinstance(identifier, str) or not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", identifier):
        raise EvidenceError(f"lifecycle: id: found {identifier!r}, expected lower-case letters, digits, . and -")
    if not isinstance(protocol, str) or protocol not in SETTINGS:
        raise EvidenceError(
            f"lifecycle {identifier}: protocol: found {protocol!r}, expected one of {', '.join(SETTINGS)}"
        )
    for key in section:
        if key not in KEYS:
            raise EvidenceError(
                f"lifecycle {identifier}: {key}: found an unknown key, expected one of {', '.join(sorted(KEYS))}"
            )
        holds, expected = KEYS[key]
        if not holds(section[key]):
            raise EvidenceError(f"lifecycle {identifier}: {key}: found {section[key]!r:.60}, expected {expected}")
    known = LORA_TARGETS if protocol == "lora" else tuple(TARGETS)
    if (protocol, section.get("target")) in REFUSED:
        raise EvidenceError(
            f"lifecycle {identifier}: {protocol} cannot be carried out on {section['target']}: "
            + REFUSED[protocol, section["target"]],
            'target = "supervisor" (evidence serve) hosts one engine process a model and can carry it out',
        )
    if section.get("target") not in known:
        raise EvidenceError(
            f"lifecycle {identifier}: target: found {section.get('target')!r}, expected one of {', '.join(known)}"
        )
    ways = [key for key in ("config", "command", "url") if key in section]
    if len(ways) != 1:
        raise EvidenceError(
            f"lifecycle {identifier}: found {' and '.join(ways) or 'no way to the target'}, expected one of config, command, url"
        )
    if section["target"] == "sie" and ways != ["command"]:
        raise EvidenceError(
            f"lifecycle {identifier}: {ways[0]}: SIE lists no adapters, so who is resident is read from its log, "
            "and only a SIE that the harness starts has one here",
            "give its `command`",
        )
    needed = [
        "models",
        "software",
        *(["fixtures", "lora_alpha", "fixture_normal_weight_scale"] if protocol == "lora" else []),
    ]
    for key in needed:
        if not section.get(key):
            raise EvidenceError(f"lifecycle {identifier}: {key}: found nothing, expected it to be stated")
    if protocol == "co-residency" and not all("kv_token_budget" in model for model in section["models"]):
        raise EvidenceError(f"lifecycle {identifier}: models: found one without kv_token_budget, expected it of each")
