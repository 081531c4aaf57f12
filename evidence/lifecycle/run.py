"""One lifecycle section of a campaign, carried out: target started or attached, protocol run, everything kept.

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

import asyncio
import dataclasses
import datetime
import json
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from evidence import __version__
from evidence.capture.load import fetch
from evidence.capture.processes import Process, choose_port, own_module, start_process
from evidence.errors import EvidenceError
from evidence.lifecycle.audit import audit
from evidence.lifecycle.bundle import ABOUT, MANIFEST, read_sources, render
from evidence.lifecycle.coresidency import CoResidency, run_co_residency
from evidence.lifecycle.crash import Crash, run_crash
from evidence.lifecycle.events import NAME, EventLog, parse_events
from evidence.lifecycle.lora import ENGINES, Adapters, run_lora
from evidence.lifecycle.selection import SELECTORS, Selection, run_selection
from evidence.lifecycle.target import REFUSED, TARGETS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS: Mapping[str, Any] = {"co-residency": CoResidency, "crash": Crash, "lora": Adapters}
LORA_TARGETS = (*ENGINES, *SELECTORS)
KEYS = {
    "target", "config", "command", "environment", "ready_path", "ready_timeout_s", "url", "models", "software",
    "hardware", "limits", "claim", "limitations", "invocation", "environment_note", "fixtures", "lora_alpha",
    "fixture_normal_weight_scale",
}  # fmt: skip
TOLD = (
    "models",
    "software",
    "hardware",
    "claim",
    "limitations",
    "invocation",
    "environment_note",
    "fixtures",
    "lora_alpha",
    "fixture_normal_weight_scale",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: its folder, whether it is complete, and the audit's faults."""

    run: Path
    complete: bool
    faults: tuple[tuple[str, str], ...]
    message: str = ""


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
    given = expand(dict(section.get("limits", {})), {})
    known = {field.name: field for field in dataclasses.fields(kind)}
    for key in given:
        if key not in known:
            raise EvidenceError(
                f"lifecycle {identifier}: limits.{key}: found an unknown key, expected one of {', '.join(known)}"
            )
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
    settings.check()
    return settings


def check_section(identifier: str, protocol: str, section: Mapping[str, Any]) -> None:
    """Refuse an unknown protocol, key or target, and a section without exactly one way to its target."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", identifier):
        raise EvidenceError(f"lifecycle: id: found {identifier!r}, expected lower-case letters, digits, . and -")
    if protocol not in SETTINGS:
        raise EvidenceError(
            f"lifecycle {identifier}: protocol: found {protocol!r}, expected one of {', '.join(SETTINGS)}"
        )
    for key in section:
        if key not in KEYS:
            raise EvidenceError(
                f"lifecycle {identifier}: {key}: found an unknown key, expected one of {', '.join(sorted(KEYS))}"
            )
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


async def start_target(section: Mapping[str, Any], folder: Path, run: Path) -> tuple[str, Process | None, str]:
    """(URL, owned process or None, host) of the section's target. Raises EvidenceError (code 4) when it is not ready."""
    host = "127.0.0.1"
    if "url" in section:
        return expand(section["url"], {}), None, host
    logs = run / "logs"
    if "config" in section:
        command, environment = own_module("evidence.supervisor")
        words = [*command, str(folder / section["config"]), "--logs", str(logs)]
        process = await start_process(
            "supervisor", words, log_path=logs / "supervisor.log", environment=environment, grace=20.0
        )
        try:
            return "http://" + await process.announcement(section.get("ready_timeout_s", 300.0)), process, host
        except BaseException:
            await process.stop(grace=10.0)
            raise
    port = choose_port(host)
    places = {"port": str(port), "host": host, "python": sys.executable}
    environment = expand(dict(section.get("environment", {})), places)
    process = await start_process(
        "target",
        expand(list(section["command"]), places),
        log_path=logs / "target.log",
        environment=environment,
        grace=20.0,
    )
    until, path = time.monotonic() + section.get("ready_timeout_s", 120.0), section.get("ready_path", "/health")
    try:
        while (await fetch(f"http://{host}:{port}{path}", timeout_seconds=2.0)).status != 200:
            if process.ended.done() or time.monotonic() > until:
                raise EvidenceError(
                    "the target was not ready: "
                    + (process.ended.result().describe() if process.ended.done() else "time-out"),
                    f"see {logs}",
                    code=4,
                )
            await asyncio.sleep(0.2)
    except BaseException:
        await process.stop(grace=10.0)
        raise
    return f"http://{host}:{port}", process, host


async def carry_out(identifier: str, protocol: str, section: Mapping[str, Any], folder: Path, run: Path) -> None:
    """Run the protocol in the new folder `run`; the target is ended whatever happens. Raises EvidenceError."""
    settings = read_limits(identifier, protocol, section)
    log = EventLog(run / NAME)
    process: Process | None = None
    try:
        url, process, _ = await start_target(section, folder, run)
        if section["target"] in SELECTORS:
            selector = SELECTORS[section["target"]](
                url,
                log,
                settings,
                process.pid if process else None,
                process.log_path if process else None,
            )
            await run_selection(settings, selector, log)
            return
        if protocol == "lora":
            await run_lora(
                settings, ENGINES[section["target"]](url, log, settings, process.pid if process else None), log
            )
            return
        target = TARGETS[section["target"]](url, log, max_tokens=settings.max_generated_tokens)
        await (
            run_co_residency(settings, target, log) if protocol == "co-residency" else run_crash(settings, target, log)
        )
    except EvidenceError as error:
        log.write("aborted", message=error.message)
        raise
    finally:
        if process is not None:
            await process.stop(grace=20.0)
        log.close()


def run_section(identifier: str, protocol: str, section: Mapping[str, Any], folder: Path, runs: Path) -> Outcome:
    """Carry out one section in a new run folder under `runs`. Files that it names are relative to `folder`.

    Raises EvidenceError before anything is started when the section is wrong; a run that could not go on, or whose
    events bear no record, is an Outcome that is not complete.
    """
    check_section(identifier, protocol, section)
    read_limits(identifier, protocol, section)
    now = datetime.datetime.now(datetime.timezone.utc)
    run = runs / f"{identifier}-{now.strftime('%Y%m%dt%H%M%S.%fz')}"
    run.mkdir(parents=True)
    (run / MANIFEST).write_bytes(render(read_sources()))
    told = {key: section[key] for key in TOLD if key in section}
    about = {
        **expand(told, {}),
        "id": identifier,
        "measured_on": now.strftime("%Y-%m-%d"),
        "harness_version": __version__,
    }
    (run / ABOUT).write_bytes(render(about))
    message = ""
    try:
        asyncio.run(carry_out(identifier, protocol, section, folder, run))
    except EvidenceError as error:
        message = error.message
    data = (run / NAME).read_bytes()
    if not data:
        return Outcome(run, False, (("RUN_INCOMPLETE", message),), message)
    faults = (
        tuple(audit(parse_events(data)))
        if b'"run-started"' in data.split(b"\n", 1)[0]
        else (("RUN_INCOMPLETE", message),)
    )
    (run / "audit.json").write_text(json.dumps(faults, indent=2) + "\n")
    return Outcome(run, not faults, faults, message)


def run_file(file: Path, runs: Path, names: Collection[str], report: Callable[[str], None]) -> bool:
    """Carry out the [[lifecycle]] sections of a file, or those named; whether every run is complete.

    `report` gets a line for each run and one for each fault of it. Raises EvidenceError when the file cannot be read.
    """
    try:
        listed = tomllib.loads(file.read_text(encoding="utf-8")).get("lifecycle")
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{file}: cannot be read: {error}", "name a TOML file with [[lifecycle]]") from None
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise EvidenceError(f"{file}: lifecycle: found {listed!r:.60}, expected at least one [[lifecycle]]")
    unknown = sorted(set(names) - {str(one.get("id")) for one in listed})
    if unknown:
        raise EvidenceError(f"{file}: --case {', '.join(unknown)}: found no such [[lifecycle]]")
    complete = True
    for section in listed:
        identifier, protocol = section.pop("id", ""), section.pop("protocol", "")
        if names and identifier not in names:
            continue
        outcome = run_section(identifier, protocol, section, file.parent, runs)
        report(f"{identifier}: {'complete' if outcome.complete else 'incomplete'}: {outcome.run}")
        for fault, text in outcome.faults:
            report(f"  {fault}: {text}")
        complete &= outcome.complete
    return complete
