"""What a supervisor hosts, read from a TOML file: every unknown key, wrong type and contradiction is refused.

```toml
schema_version = 1
[server]                         # optional
host = "127.0.0.1"
port = 0                         # 0 lets the system choose; the ready line says which
cooldown_seconds = 30            # after a crash or a failed load: 502, and no new try
retry_after_seconds = 5          # what callers are told while a model loads
[device]
source = "nvml"                  # nvml | process-rss-against-budget
index = 0                        # of the GPU, for nvml
budget_bytes = 4294967296        # the device's total, for process-rss-against-budget
memory_fraction = 1.0            # all reservations together stay within this share of the total
[[model]]
name = "a"                       # what callers ask for; passed on as it is
command = ["engine", "--port", "{port}"]     # {port} {host} {model} {python}; {env:NAME} reads the environment
environment = {NAME = "value"}
reservation_bytes = 1073741824   # free device memory that a load needs
pinned = false                   # never evicted
preload = false
ready_timeout_seconds = 120
ready_path = "/health"
```
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.campaign.table import VARIABLE, shown
from evidence.errors import EvidenceError
from evidence.inputs import decode, read_input

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HINT = "the keys are in evidence/supervisor/config.py; campaigns/lifecycle/ has examples"
RSS, NVML = "process-rss-against-budget", "nvml"


@dataclass(frozen=True)
class ModelSpec:
    """One model and the command that serves it."""

    name: str
    command: tuple[str, ...]
    reservation_bytes: int
    environment: dict[str, str] = field(default_factory=dict)
    pinned: bool = False
    preload: bool = False
    ready_timeout_seconds: float = 120.0
    ready_path: str = "/health"


@dataclass(frozen=True)
class Config:
    """A whole supervisor. Durations are seconds, sizes bytes."""

    models: tuple[ModelSpec, ...]
    source: str
    budget_bytes: int | None = None
    index: int = 0
    memory_fraction: float = 1.0
    host: str = "127.0.0.1"
    port: int = 0
    cooldown_seconds: float = 30.0
    retry_after_seconds: int = 5


class _Table:
    """One TOML table: `take` checks the type of a key, `end` refuses what was not taken."""

    def __init__(self, file: str, place: str, values: Any) -> None:
        if not isinstance(values, dict):
            found = "nothing" if values is None else shown(values)
            raise EvidenceError(f"{file}: {place}: found {found}, expected a table", HINT)
        self.file, self.place, self.values = file, place, dict(values)

    def wrong(self, key: str, found: Any, expected: str) -> EvidenceError:
        return EvidenceError(
            f"{self.file}: {self.place}.{key}: found {shown(found)}, expected {expected}",
            HINT,
        )

    def take(self, key: str, kind: type | tuple[type, ...], expected: str, default: Any = None) -> Any:
        value = self.values.pop(key, default)
        if value is None:
            raise EvidenceError(f"{self.file}: {self.place}.{key}: found nothing, expected {expected}", HINT)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise self.wrong(key, value, expected)
        return value

    def number(self, key: str, default: float | None, *, least: float = 0.0, most: float = 1e7) -> float:
        value = self.take(key, (int, float), f"a number from {least} to {most}", default)
        if not least <= value <= most:  # of integers as they are: one of 400 digits is no float
            raise self.wrong(key, value, f"a number from {least} to {most}")
        return float(value)

    def whole(self, key: str, default: int | None, *, least: int = 0, most: int = 2**53 - 1) -> int:
        value = int(self.take(key, int, f"an integer from {least} to {most}", default))
        if not least <= value <= most:
            raise self.wrong(key, value, f"an integer from {least} to {most}")
        return value

    def end(self) -> None:
        for key, value in self.values.items():
            raise self.wrong(key, value, "only keys that are known")


def _expand(table: _Table, word: str) -> str:
    def read(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise table.wrong("command", word, f"the environment variable {match[1]} to be set")
        return os.environ[match[1]]

    return re.sub(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}", read, word)


def _read_model(file: str, place: str, values: Any) -> ModelSpec:
    table = _Table(file, place, values)
    name = table.take("name", str, "a name")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", name):
        raise table.wrong("name", name, "letters, digits and ._/- beginning with a letter or digit")
    words = table.take("command", list, "a list of words")
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0].strip():
        raise table.wrong("command", words, "a list of words, the first of them a program")
    if not any("{port}" in word for word in words):
        raise table.wrong("command", words, "{port} in one of the words")
    environment = table.take("environment", dict, "a table of texts", {})
    if not all(isinstance(value, str) and "\0" not in value for value in environment.values()):
        raise table.wrong("environment", environment, "a table of texts")
    for variable in environment:
        if not VARIABLE.fullmatch(variable):
            raise table.wrong("environment", variable, "names of letters, digits and underscores")
    spec = ModelSpec(
        name=name,
        command=tuple(_expand(table, word) for word in words),
        reservation_bytes=table.whole("reservation_bytes", None, least=1),
        environment={key: _expand(table, value) for key, value in environment.items()},
        pinned=table.take("pinned", bool, "true or false", False),
        preload=table.take("preload", bool, "true or false", False),
        ready_timeout_seconds=table.number("ready_timeout_seconds", 120.0, least=0.1, most=86400),
        ready_path=table.take("ready_path", str, "a path", "/health"),
    )
    if not re.fullmatch(r"/[!-~]*", spec.ready_path):
        raise table.wrong("ready_path", spec.ready_path, "a path that begins with /")
    table.end()
    return spec


def _read_host(server: _Table) -> str:
    host: str = server.take("host", str, "an address", "127.0.0.1")
    if not re.fullmatch(r"[A-Za-z0-9.:-]+", host):  # an empty one would be every address of this machine
        raise server.wrong("host", host, "an address or the name of this machine")
    return host


def parse_config(text: str, file: str = "config") -> Config:
    """A supervisor's configuration from TOML text. Raises EvidenceError naming file, key, found, expected."""
    try:
        top = _Table(file, "top", tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{file}: found no valid TOML: {str(error).lower()}", "expected TOML") from None
    top.whole("schema_version", None, least=1, most=1)
    server = _Table(file, "server", top.values.pop("server", {}))
    device = _Table(file, "device", top.values.pop("device", None))
    listed = top.take("model", list, "at least one [[model]]")
    top.end()
    models = tuple(_read_model(file, f"model[{number}]", values) for number, values in enumerate(listed))
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise EvidenceError(f"{file}: model: found names {names}, expected at least one model, each name once")
    source = device.take("source", str, f"{NVML} or {RSS}")
    if source not in (NVML, RSS):
        raise device.wrong("source", source, f"{NVML} or {RSS}")
    config = Config(
        models=models,
        source=source,
        budget_bytes=device.whole("budget_bytes", None, least=1) if source == RSS else None,
        index=device.whole("index", 0, most=63) if source == NVML else 0,
        memory_fraction=device.number("memory_fraction", 1.0, least=0.01, most=1.0),
        host=_read_host(server),
        port=server.whole("port", 0, most=65535),
        cooldown_seconds=server.number("cooldown_seconds", 30.0, most=86400),
        retry_after_seconds=server.whole("retry_after_seconds", 5, least=1, most=3600),
    )
    server.end()
    device.end()
    return config


def read_config(path: Path) -> Config:
    """The configuration in a file."""
    content = read_input(path, "a supervisor's TOML file", "campaigns/lifecycle/ has some")
    return parse_config(decode(path, content, "TOML"), str(path))
