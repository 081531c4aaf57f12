"""The first two steps of a campaign: `init` writes one to begin with, `check` says what it lacks on this machine."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from evidence.campaign import Campaign, Case, Comparison, Lifecycle, read_campaign
from evidence.campaign.table import ID
from evidence.capture.adapters import find_adapter, list_needs, refuse_unsupported
from evidence.capture.gpu import read_nvml
from evidence.capture.launch import check_disk, check_setup, write_launch
from evidence.capture.processes import choose_port
from evidence.errors import EvidenceError
from evidence.lifecycle.section import check_section, expand, read_limits
from evidence.supervisor.config import read_config

TEMPLATE = Path(__file__).parent / "templates" / "campaign"
RUN_BYTES = 256 << 20


def init(folder: Path) -> None:
    """Writes a commented campaign with one profile of each state, and a README; refuses a folder with files in it.

    The campaign has the folder's name where that is an id.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise EvidenceError(
            f"{folder}: found something there, expected a new or an empty folder", "name another folder"
        )
    made = missing_parents(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in sorted(TEMPLATE.rglob("*")):
            target = folder / source.relative_to(TEMPLATE)
            if "__pycache__" in source.parts:
                continue
            if source.is_dir():
                target.mkdir()
            else:
                target.write_bytes(source.read_bytes())
        name, campaign = folder.resolve().name, folder / "campaign.toml"
        if ID.fullmatch(name):
            text = campaign.read_text(encoding="utf-8").replace("my-evaluation", name)
            campaign.write_text(text, encoding="utf-8")
    except OSError as error:
        for one in folder.iterdir() if folder.is_dir() else ():  # it was empty before
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        for one in made:
            with contextlib.suppress(OSError):
                one.rmdir()
        raise EvidenceError(
            f"{folder}: cannot be written ({error.strerror}), expected a writable place with room",
            "name another folder",
        ) from None


def missing_parents(folder: Path) -> list[Path]:
    """The folder and those above it that are not there, the innermost first."""
    return [one for one in (folder, *folder.parents) if not one.exists()]


def check(folder: Path) -> list[str]:
    """What is missing before any GPU time is spent, one line for each thing; empty when nothing is.

    Programs, models, access, environment variables, devices, running engines and gateways, ports and disk space, and
    what a case or comparison needs that its engine cannot give. Starts no engine and sends no request. Raises
    EvidenceError when the campaign cannot be read.
    """
    campaign = read_campaign(folder)
    found: dict[str, list[str]] = {}

    def note(name: str, look: Callable[..., object], *what: object) -> None:
        try:
            look(*what)
        except EvidenceError as error:
            found.setdefault(error.message, []).append(name)

    names = campaign.names()
    for case in campaign.cases.values():
        if case.id in names:
            note(case.id, check_launch, campaign, case, None)
            note(case.id, check_case, campaign, case)
    for comparison in campaign.comparisons.values():
        case = campaign.cases[comparison.case]
        for value in (comparison.baseline, comparison.candidate):
            note(comparison.id, check_launch, campaign, case, (comparison.argument, value))
        for message in lacking(campaign, comparison):
            found.setdefault(message, []).append(comparison.id)
    for entry in campaign.lifecycle.values():
        if entry.record is None:
            note(entry.id, check_entry, campaign, entry)
    note("gateway", check_gateway, campaign)
    for message in devices(campaign):
        found.setdefault(message, []).append("devices")
    note("ports", choose_port)
    note("disk", check_disk, campaign.folder, RUN_BYTES)
    return [f"{', '.join(dict.fromkeys(names))}: {message}" for message, names in found.items()]


def check_launch(campaign: Campaign, case: Case, setting: tuple[str, str] | None) -> None:
    """The program, the model and the arguments of a case; or that its running engines can be reached."""
    spec, profile = campaign.engines[case.engine], campaign.profiles[case.profile]
    if spec.urls:
        if len(spec.urls) < len(case.devices):
            raise EvidenceError(f"engine {spec.id}: found {len(spec.urls)} urls, expected {len(case.devices)}")
        for url in spec.urls:
            check_reachable(f"engine {spec.id}", url)
        return
    model, gated = campaign.model_of(profile, spec), profile.state == "gated"
    if model is None and (gated or find_adapter(spec.adapter).needs_model):
        named = profile.model or spec.model
        what = f"{named} names a variable that is not set" if named else "no model is named"
        raise EvidenceError(f"engine {spec.id}: {'the model is gated and ' if gated else ''}{what}")
    launch = write_launch(
        spec, device=case.devices[0], port=0, setting=setting, arguments=case.arguments, model=model, served_name=profile.id
    )  # fmt: skip
    check_setup(spec, launch, model=model, gated=gated, folder=campaign.folder)


def check_case(campaign: Campaign, case: Case) -> None:
    """That the engine can give what the request and the controls need, and that an exact case has its probe."""
    refuse_unsupported(
        campaign.engines[case.engine].adapter, list_needs(json.loads(case.body), case.controls),
        (*campaign.engines[case.engine].arguments, *case.arguments),
    )  # fmt: skip
    if case.surface == "exact" and case.probe is None:
        raise EvidenceError("surface exact without a probe, expected `probe = FILE`")


def lacking(campaign: Campaign, comparison: Comparison) -> Iterator[str]:
    """What would leave a comparison undecided after all its requests."""
    case = campaign.cases[comparison.case]
    spec, profile = campaign.engines[case.engine], campaign.profiles[case.profile]
    adapter, request = find_adapter(spec.adapter), json.loads(comparison.body)
    try:
        needs = list_needs(request) | ({"sequence-cap"} if comparison.kind == "sequence-cap" else set())
        refuse_unsupported(spec.adapter, needs, (*spec.arguments, *case.arguments, comparison.argument))
    except EvidenceError as error:
        yield error.message
    if spec.snapshot == "none":
        yield f"engine {spec.id} takes no snapshot, expected one for a comparison"
    usage = (request.get("stream_options") or {}).get("include_usage") is True
    if not usage and "usage-option" not in adapter.lacks:
        yield 'the body does not ask for usage, expected "stream_options": {"include_usage": true}: tokens would be unknown'
    if profile.date_sensitive and comparison.comparison_date is None:
        yield f"profile {profile.id} is date-sensitive, expected date_sensitive = {{comparison_date = ..}}"
    if comparison.comparison_date is not None and "tokenize" in adapter.lacks:
        yield f"engine {spec.id} has no tokenize route, expected one for a date-sensitive comparison"


def check_entry(campaign: Campaign, entry: Lifecycle) -> None:
    """That a lifecycle protocol's own keys are in form, its variables set, and its files and programs there."""
    check_section(entry.id, entry.protocol, entry.settings)
    read_limits(entry.id, entry.protocol, entry.settings)
    if "config" in entry.settings:
        read_config(campaign.folder / entry.settings["config"])
    for key in ("command", "environment", "url", "models", "hardware", "software"):
        given = expand(entry.settings.get(key), {"port": "0", "host": "127.0.0.1", "python": sys.executable})
        if key == "command" and given and shutil.which(given[0]) is None:
            raise EvidenceError(f"lifecycle {entry.id}: program {given[0]} is not there")
        if key == "url" and given:
            check_reachable(f"lifecycle {entry.id}", given)


def check_gateway(campaign: Campaign) -> None:
    """That the campaign's gateway can be started, or runs."""
    gateway = campaign.gateway
    if gateway is None:
        return
    if not gateway.command:
        check_reachable(f"gateway {gateway.name}", gateway.url)
    elif shutil.which(gateway.command[0]) is None:
        raise EvidenceError(f"gateway {gateway.name}: program {gateway.command[0]} is not there")


def check_reachable(what: str, url: str) -> None:
    """That something listens at `url`."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=2).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise EvidenceError(f"{what}: nothing listens at {url} ({why})") from None


def devices(campaign: Campaign) -> Iterator[str]:
    """GPUs that a case names and the driver does not show."""
    wanted = {
        device
        for case in campaign.cases.values()
        for device in case.devices
        if campaign.engines[case.engine].snapshot == "nvml" and case.id in campaign.names()
    } | {
        device
        for comparison in campaign.comparisons.values()
        for device in comparison.devices
        if campaign.engines[campaign.cases[comparison.case].engine].snapshot == "nvml"
    }
    for device, reading in zip(sorted(wanted), read_nvml(sorted(wanted)) if wanted else [], strict=True):
        if reading.used is None:
            yield f"device {device}: {reading.reason or 'its memory cannot be read'}"
