"""Which check would notice if a field lied: every field of the forged package altered, resealed, and judged by all verifiers.

`python -m tests.verifiers.fields` writes docs/fields.md anew; it takes a minute or two of one processor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.verifiers.kill_matrix import NAMES, Ground, ground

from checking.check import judge  # isort: skip
from checking.damage import Bench  # isort: skip
from checking.reading import read_json  # isort: skip

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fields.md"
VERIFIERS = (*NAMES, "verify-lifecycle")
FORM = ("schema-", "json-")
HASH = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

# Of what no check sees: what it is, and the item of what-this-does-not-prove.md that says so.
WHY = (
    (r"manifest.json (?:builder/.*|title|gateways/\*/reason)|.*[ /](?:scope|note|message|blocker|license|line|withheldReason)"
     r"|.*[ /]statement|.*gateway/reason|.*/requalification/statement|model-identities.json historicalCatalog.*"
     r"|.*pd-index.json cases/\*/(?:reason|completedChecks/\*)", "words", 14),
    (r"results/pd-index.json .*", "reviewed summary", 7),
    (r".*/controls.json .*", "control", 8),
    (r".*ledgers/\* receipts/\*/(?:started|ended)Seconds|.*samples/\*/(?:ttft|total|started|sendLag|reasoning)Seconds"
     r"|.*arms/\*/(?:startedAt|timeline.*|wallSeconds|client.*)|.*/takenSeconds|.*aborted(?:At|Seconds)"
     r"|.*(?:startedAt|endedAt)|manifest.json dates/.*", "time", 2),
    (r".*devices/\*/(?:usedBytes|totalBytes|reason)|.*snapshots/\*/method", "memory", 3),
    (r".*launches/?.*|manifest.json engines/.*|registry-\*/manifest.json .*|results/incomplete/.* gateway/.*", "engine", 4),
    (r".*ledgers/\* receipts/\*/(?:requestHeaders|responseHeaders)/.*", "header", 6),
    (r"results/converged/\*/ledgers/\* receipts", "what a gateway asked", 15),
    (r"results/incomplete/\*/ledgers/\* receipts", "a run that died", 5),
    (r"results/incomplete/\*/ledgers/\* receipts/\*/reason", "what the recorder saw", 6),
    (r".*/attempt.json run|runtime-matrix.json rows/\*/(?:case|topology)", "name", 5),
)  # fmt: skip


class Field(NamedTuple):
    """A field of a kind of document, the values that it is given, and where it stands: (file, steps)."""

    document: str
    pointer: str
    places: tuple[tuple[str, tuple[Any, ...]], ...]


class Fate(NamedTuple):
    """What became of a field: the codes that see it altered, and the alterations that none sees."""

    codes: frozenset[str]
    unseen: tuple[str, ...]


def kind_of(name: str) -> str:
    """A file's name without what tells it from others of its kind."""
    name = re.sub(r"^results/(settings|converged|incomplete)/[^/]+/", r"results/\1/*/", name)
    name = re.sub(r"ledgers/.*", "ledgers/*", name)
    return re.sub(r"^(models|rules|registry-)[^/]*(/?)([^/]*\.json)", lambda m: _kind(m), name)


def _kind(found: re.Match[str]) -> str:
    return f"{found[1]}*/{found[3]}" if found[1] == "registry-" else f"{found[1]}/*"


def leaves(value: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every list and every value that is neither list nor object."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*steps, key))
        return
    yield steps, value
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield from leaves(one, (*steps, place))


@lru_cache
def fields() -> tuple[Field, ...]:
    """The fields of the forged package, each with a few places where it stands."""
    source = ground(NAMES[0]).source
    found: dict[tuple[str, str], list[tuple[str, tuple[Any, ...], Any]]] = {}
    for name in source.entries.below(""):
        if not name.endswith(".json") or name.startswith("schemas/") or "/probes/" in name:
            continue
        for steps, value in leaves(read_json(source.read(name))):
            if not steps or steps == ("schemaVersion",):
                continue
            pointer = "/".join("*" if isinstance(one, int) else one for one in steps)
            found.setdefault((kind_of(name), pointer), []).append((name, steps, value))
    return tuple(
        Field(document, pointer, tuple((name, steps) for name, steps, _ in _few(places)))
        for (document, pointer), places in sorted(found.items())
    )


def _few(places: list[tuple[str, tuple[Any, ...], Any]]) -> list[tuple[str, tuple[Any, ...], Any]]:
    """The first place, one from the middle, and the first where a value of another type stands."""
    unlike = [one for one in places if type(one[2]) is not type(places[0][2])]
    return [places[0], *places[len(places) // 2 : len(places) // 2 + 1][: len(places) > 1], *unlike[:1]]


@lru_cache
def choices() -> dict[str, tuple[str, ...]]:
    """The words that schemas let a key choose from, by the name of the key."""
    schemas = {path.name: json.loads(path.read_text()) for path in sorted((ROOT / "schemas").glob("*.schema.json"))}
    found: dict[str, set[str]] = {}

    def words(schema: Any, file: str) -> Iterator[str]:
        if not isinstance(schema, dict):
            return
        if "$ref" in schema:
            other, _, pointer = schema["$ref"].partition("#")
            file = other or file
            target: Any = schemas[file]
            for part in pointer.strip("/").split("/"):
                target = target[part]
            yield from words(target, file)
        yield from (one for one in (*schema.get("enum", ()), schema.get("const")) if isinstance(one, str))
        for one in (*schema.get("anyOf", ()), *schema.get("allOf", ()), schema.get("items")):
            yield from words(one, file)

    def search(schema: Any, file: str) -> None:
        for key, one in schema.get("properties", {}).items() if isinstance(schema, dict) else ():
            found.setdefault(key, set()).update(words(one, file))
        for one in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
            search(one, file)

    for file, schema in schemas.items():
        search(schema, file)
    return {key: tuple(sorted(one)) for key, one in found.items()}


def others(value: Any, key: str) -> dict[str, Any]:
    """Other values that a field of this key could have had, named by what was done."""
    if value is None:
        return {"words": "x1", "0": 0, "a hash": "ab" * 32}
    if isinstance(value, bool):
        return {"turned round": not value}
    if isinstance(value, int):
        return {"one more": value + 1, "doubled": value * 2 + 1, "null": None}
    if isinstance(value, Decimal):
        return {"halved": round(value / 2, 9), "doubled": value * 2, "null": None}
    if isinstance(value, list):
        return {"cut": value[:-1]} if value else {}
    assert isinstance(value, str)
    if HASH.fullmatch(value):
        return {"another hash": ("0" if value[0] != "0" else "1") + value[1:], "null": None}
    if INSTANT.fullmatch(value):
        return {"a year earlier": f"{int(value[:4]) - 1}{value[4:]}", "a minute later": _later(value), "null": None}
    chosen = {word: word for word in choices().get(key, ()) if word != value}
    return {"another word": value + "x", **chosen, "null": None}


def _later(text: str) -> str:
    return f"{text[:14]}{(int(text[14:16]) + 1) % 60:02d}{text[16:]}"


def seen_by(bench: Bench, grounds: Sequence[Ground]) -> frozenset[str]:
    """The codes with which any verifier rejects what lies on a bench; `crash` when one falls over."""
    overlay, codes = bench.overlay(), set()
    for on in grounds:
        report = judge(overlay, on.families, on.clean, overlay.changed, overlay.moved, recall=on.recall)
        codes |= report.codes() | ({"crash"} if report.crashes else set())
    return frozenset(codes)


def fate(field: Field) -> Fate:
    """Alter a field in each of its places, one after another, and see who notices."""
    grounds = [ground(name) for name in VERIFIERS]
    codes: set[str] = set()
    unseen: list[str] = []
    for name, steps in field.places:
        value = read_json(grounds[0].source.read(name))
        for step in steps:
            value = value[step]
        for told, other in others(value, next(one for one in reversed(steps) if isinstance(one, str))).items():
            bench = Bench(grounds[0].source, grounds[0].sums)
            with bench.edit(name) as document:
                for step in steps[:-1]:
                    document = document[step]
                document[steps[-1]] = other
            bench.reseal()
            seen = seen_by(bench, grounds)
            if any(code.startswith(FORM) for code in seen):
                continue
            codes |= seen
            if not seen and told not in unseen:
                unseen.append(told)
    if "another word" in unseen:  # it need not be chosen from anything
        unseen = [told for told in unseen if told not in choices().get(field.pointer.rpartition("/")[2], ())]
    return Fate(frozenset(codes), tuple(unseen))


def why(field: Field) -> tuple[str, int] | None:
    """What a field is that an alteration of may go unseen: in a word, and the item that says so."""
    text = f"{field.document} {field.pointer}"
    return next(((word, item) for pattern, word, item in WHY if re.fullmatch(pattern, text)), None)


def line_of(field: Field, found: Fate) -> str:
    """The row of a field."""
    reason = why(field)
    told = ", ".join(found.unseen)
    if told and reason is not None:
        told += f" ({reason[0]}, {reason[1]})"
    codes = ", ".join(f"`{code}`" for code in sorted(found.codes)) or "none"
    return f"| `{field.pointer}` | {codes} | {told or 'none'} |"


def page() -> str:
    """docs/fields.md."""
    lines = [
        "# Which check would notice if a field lied",
        "",
        "Made by `python -m tests.verifiers.fields`: every field of a package is altered, one at a time, to other values that",
        "its schema allows; indices, counts and `SHA256SUMS` are made true again, and all four verifiers judge it. The second",
        "column names the codes that reject it, the third what none of them sees, with the item of",
        "[what this does not prove](what-this-does-not-prove.md) under which it falls. `null` is tried where a value stands,",
        "and a value where null stands, and of a word that is chosen every other choice; where both columns say none, the\nschema allows nothing else. Hashes in the indices, and counts, are made true again and so never tried alone.",
    ]
    document = ""
    for field in fields():
        if field.document != document:
            document = field.document
            lines += ["", f"## {document}", "", "| field | seen by | not seen |", "|---|---|---|"]
        lines.append(line_of(field, fate(field)))
    return "\n".join(lines) + "\n"


def rows_of(text: str) -> dict[tuple[str, str], str]:
    """The rows of a page: (document, pointer) -> row."""
    made, document = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            document = line[3:]
        elif line.startswith("| `"):
            made[document, line.split("`")[1]] = line
    return made


if __name__ == "__main__":
    PAGE.write_text(page())
