"""Reads `campaign.toml`: the order of the tables, and what no single table shows.

`read_campaign(path)` gives one frozen `Campaign`, or one `EvidenceError` that names the file, the table and the
key, what was found and what was expected. The file and every path in it lie in one folder, so that the folder
alone rebuilds the package.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from evidence.campaign.model import STATUSES, SURFACES, Campaign
from evidence.campaign.parts import (
    read_case,
    read_comparison,
    read_engine,
    read_exception,
    read_gateway,
    read_historical,
    read_lifecycle,
    read_prefill_decode,
    read_profile,
    read_recipe,
)
from evidence.campaign.table import Table, shown
from evidence.errors import EvidenceError
from evidence.inputs import decode, read_input

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Item = TypeVar("Item")


def read_campaign(path: Path) -> Campaign:
    """Reads and checks a campaign file, or the `campaign.toml` of a folder."""
    source = path / "campaign.toml" if path.is_dir() else path
    content = read_input(source, "a campaign file", "`evidence init DIR` writes one")
    text = decode(source, content, "TOML")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise EvidenceError(
            f"{source}: found lists or tables nested beyond reading, expected TOML",
            "nothing here nests deeper than five",
        ) from None
    except ValueError as error:  # TOMLDecodeError, and what Python says of an integer of more than 4300 digits
        raise EvidenceError(f"{source}: found no valid TOML: {str(error).lower()}", _quoted(text, str(error))) from None
    top = Table(source, "top level", document)
    if top.integer("schema_version", least=0) != 1:
        raise top.error(
            "schema_version", str(document["schema_version"]), "1", "this version reads campaigns of form 1"
        )
    campaign = read_tables(top, content)
    check_whole(top, campaign)
    return campaign


def _quoted(text: str, error: str) -> str:
    """The line that a TOML error speaks of, as a hint."""
    place = re.search(r"at line (\d+)", error)
    lines = text.splitlines()
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark; save it as UTF-8 without one"
    if "digits" in error:
        return "an integer here has at most sixteen digits"
    if place is None or int(place[1]) > len(lines):
        return "a string, a list or a table that was opened is not closed"
    return f"line {place[1]} reads: {shown(lines[int(place[1]) - 1].strip())}"


def read_tables(top: Table, content: bytes) -> Campaign:
    """Every table of the file in the order in which they refer to one another."""
    head = top.needed("campaign", top.table("campaign"), "a table [campaign]")
    head.place = "[campaign]"
    name, title = head.id("name"), head.text("title")
    status = head.choice("status", STATUSES)
    surfaces = head.choices("surfaces", SURFACES)
    if not surfaces:
        raise head.error("surfaces", "an empty list", "at least one of " + ", ".join(SURFACES))
    limitations = head.lines("limitations")
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
        top.source, content, name, title, status, surfaces, limitations, profiles, engines, gateway, cases, comparisons, recipes,
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
            raise table.error("id", f"{identifier!r} a second time", "each id once", "give one of the two another id")
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
