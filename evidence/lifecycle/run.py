"""One lifecycle section of a campaign, carried out: target started or attached, protocol run, everything kept.

The keys of a section are in `section.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import json
import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from evidence import __version__
from evidence.campaign.table import shown
from evidence.capture.journal import NO_SPACE
from evidence.capture.load import fetch
from evidence.capture.processes import Process, choose_port, own_module, start_process
from evidence.capture.watch import Aborted, Watch
from evidence.errors import EvidenceError
from evidence.inputs import decode, read_input
from evidence.lifecycle.audit import audit
from evidence.lifecycle.bundle import ABOUT, MANIFEST, read_sources, render
from evidence.lifecycle.coresidency import run_co_residency
from evidence.lifecycle.crash import run_crash
from evidence.lifecycle.events import NAME, EventLog, parse_events
from evidence.lifecycle.lora import ENGINES, run_lora
from evidence.lifecycle.section import check_section, expand, read_limits
from evidence.lifecycle.selection import SELECTORS, run_selection
from evidence.lifecycle.target import TARGETS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    """How a run ended: its folder, whether it is complete, the audit's faults, and whether the operator stopped it."""

    run: Path
    complete: bool
    faults: tuple[tuple[str, str], ...]
    message: str = ""
    stopped: bool = False


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


class Stopped(EvidenceError):
    """The operator ended a run; what it had recorded is kept."""


async def carry_out(identifier: str, protocol: str, section: Mapping[str, Any], folder: Path, run: Path) -> None:
    """Run the protocol in the new folder `run`; the target is ended whatever happens. Raises EvidenceError."""
    settings = read_limits(identifier, protocol, section)
    try:
        log = EventLog(run / NAME)
    except OSError as error:
        raise EvidenceError(f"{run / NAME}: cannot be made ({error.strerror})", "is the disk full?", code=4) from None
    watch = Watch()
    try:
        with watch.listening():
            await watch.guard(observe(protocol, section, folder, run, settings, log))
    except Aborted as end:
        raise _noted(log, Stopped(end.message, f"what was seen until then is in {run}", code=4)) from None
    except EvidenceError as error:
        raise _noted(log, error) from error.__cause__
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        message = f"the target answered out of form ({type(error).__name__}: {error})"
        raise _noted(log, EvidenceError(message, f"see {run / NAME}", code=4)) from error
    finally:
        log.close()


def _noted(log: EventLog, error: EvidenceError) -> EvidenceError:
    """The error that ends a run, told by its events too."""
    with contextlib.suppress(EvidenceError):  # where there was no room for an event, there is none for this one
        log.write("aborted", message=error.message)
    return error


async def observe(
    protocol: str, section: Mapping[str, Any], folder: Path, run: Path, settings: Any, log: EventLog
) -> None:
    """Start or attach to the target, run the protocol on it, and end it."""
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
        elif protocol == "lora":
            await run_lora(
                settings, ENGINES[section["target"]](url, log, settings, process.pid if process else None), log
            )
        else:
            target = TARGETS[section["target"]](url, log, max_tokens=settings.max_generated_tokens)
            if protocol == "co-residency":
                await run_co_residency(settings, target, log)
            else:
                await run_crash(settings, target, log)
    finally:
        if process is not None:
            await process.stop(grace=20.0)


def begin(run: Path, files: Mapping[str, bytes]) -> None:
    """Make the run folder with these files, or leave nothing of it. Raises EvidenceError where it cannot be made."""
    try:
        run.parent.mkdir(parents=True, exist_ok=True)
        run.mkdir()
        for name, content in files.items():
            (run / name).write_bytes(content)
    except OSError as error:
        if not isinstance(error, FileExistsError):
            shutil.rmtree(run, ignore_errors=True)
        raise EvidenceError(
            f"{run}: the run folder cannot be made ({error.strerror}), expected a writable folder with space",
            "choose another folder with --runs",
            code=4 if error.errno in NO_SPACE else 2,
        ) from None


def run_section(identifier: str, protocol: str, section: Mapping[str, Any], folder: Path, runs: Path) -> Outcome:
    """Carry out one section in a new run folder under `runs`. Files that it names are relative to `folder`.

    Raises EvidenceError before anything is started when the section is wrong; a run that could not go on, or whose
    events bear no record, is an Outcome that is not complete.
    """
    check_section(identifier, protocol, section)
    read_limits(identifier, protocol, section)
    now = datetime.datetime.now(datetime.timezone.utc)
    run = runs / f"{identifier}-{now.strftime('%Y%m%dt%H%M%S.%fz')}"
    told = {key: section[key] for key in TOLD if key in section}
    about = {
        **expand(told, {}),
        "id": identifier,
        "measured_on": now.strftime("%Y-%m-%d"),
        "harness_version": __version__,
    }
    begin(run, {MANIFEST: render(read_sources()), ABOUT: render(about)})
    message, stopped = "", False
    try:
        asyncio.run(carry_out(identifier, protocol, section, folder, run))
    except EvidenceError as error:
        message, stopped = error.message, isinstance(error, Stopped)
    data = (run / NAME).read_bytes() if (run / NAME).exists() else b""
    if not data:
        return Outcome(run, False, (("RUN_INCOMPLETE", message),), message, stopped)
    faults = (
        tuple(audit(parse_events(data)))
        if b'"run-started"' in data.split(b"\n", 1)[0]
        else (("RUN_INCOMPLETE", message),)
    )
    with contextlib.suppress(OSError):  # on a full disk; the faults are told all the same, and follow from the events
        (run / "audit.json").write_text(json.dumps(faults, indent=2) + "\n")
    return Outcome(run, not faults, faults, message, stopped)


def run_file(file: Path, runs: Path, names: Collection[str], report: Callable[[str], None]) -> int:
    """Carry out the [[lifecycle]] sections of a file, or those named. Returns 0, 4 where a run is incomplete, 130 where it was stopped.

    `report` gets a line for each run and one for each fault of it. Raises EvidenceError when the file cannot be read.
    """
    hint = "name a TOML file with [[lifecycle]]; campaigns/lifecycle/ has some"
    text = decode(file, read_input(file, "a TOML file", hint), "TOML")
    try:
        listed = tomllib.loads(text).get("lifecycle", [])
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{file}: found no valid TOML: {str(error).lower()}", hint) from None
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        found = shown(listed) if listed != [] else "nothing"
        raise EvidenceError(f"{file}: lifecycle: found {found}, expected at least one [[lifecycle]]", hint)
    unknown = sorted(set(names) - {str(one.get("id")) for one in listed})
    if unknown:
        raise EvidenceError(f"{file}: --case {', '.join(unknown)}: found no such [[lifecycle]]")
    complete = True
    chosen = []
    for section in listed:
        identifier, protocol = section.pop("id", ""), section.pop("protocol", "")
        if names and identifier not in names:
            continue
        check_section(identifier, protocol, section)  # all of them, before any is begun
        read_limits(identifier, protocol, section)
        chosen.append((identifier, protocol, section))
    for identifier, protocol, section in chosen:
        outcome = run_section(identifier, protocol, section, file.parent, runs)
        report(f"{identifier}: {'complete' if outcome.complete else 'incomplete'}: {outcome.run}")
        for fault, text in outcome.faults:
            report(f"  {fault}: {text}")
        complete &= outcome.complete
        if outcome.stopped:
            return 130
    return 0 if complete else 4
