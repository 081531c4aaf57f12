"""What changed between two packages: outcomes, decisions, gates with both margins, settings, versions, files.

Both are read, neither is judged: whether a package is true is what `evidence verify` says of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence.report.markup import visible
from evidence.report.tables import Json, PackageView, Table, gate_table, in_form, read_package, words
from evidence.verdict import as_json

Rows = Mapping[str, Mapping[str, Any]]
"""id -> what is said of it."""
WHAT = ("id", "what", "old", "new")


def diff(old: Path, new: Path, form: str = "table") -> str:
    """What changed from `old` to `new`, each an archive or a package folder, as `table`, `markdown` or `json`.

    Raises EvidenceError for what is no package or is out of form.
    """
    before, after = read_package(old), read_package(new)
    equal = before.members == after.members
    tables = compare(before, after)
    files = file_table(before, after)
    packed = (before.archive_sha256, after.archive_sha256)
    if form == "json":
        document = {
            "old": {"path": visible(str(old)), "archiveSha256": packed[0], "files": len(before.members)},
            "new": {"path": visible(str(new)), "archiveSha256": packed[1], "files": len(after.members)},
            "equal": equal,
            "files": files.plain(),
        } | {name: table.plain() for name, table in tables.items()}
        return as_json(document)
    heading = "# " if form == "markdown" else ""
    lines = [f"{heading}{words(old, form)} \u2192 {words(new, form)}", ""]
    if equal:
        packing = "" if None in packed or packed[0] == packed[1] else "; only the compression of the archives differs"
        return "\n".join([*lines, f"equal: all {len(after.members)} files have the same digests{packing}"])
    shown = [table for table in tables.values() if table.rows]
    return "\n".join([*lines, _summary(files), "", *(table.render(form) for table in [*shown, _fold(files)])]).rstrip(
        "\n"
    )


@in_form
def compare(before: PackageView, after: PackageView) -> dict[str, Table]:
    """The tables of changes by name; a table without rows says that nothing of its kind changed."""
    parts: dict[str, tuple[str, Callable[[PackageView], Rows]]] = {
        "package": ("Package", _package),
        "counts": ("Counts", lambda view: {"counts": view.one("manifest.json")["counts"]}),
        "versions": ("Engines and gateways", _versions),
        "outcomes": ("Outcomes", _outcomes),
        "decisions": ("Decisions", _decisions),
        "settings": ("Settings", _settings),
        "incomplete": ("Incomplete comparisons", lambda view: {one["id"]: {"reason": one["reason"], **one["counts"]} for one in view.incomplete}),
        "attempts": ("Functional attempts", lambda view: {one["id"]: {"outcome": one["outcome"], "reason": one["reason"], "accepted": one["accepted"]} for one in view.attempts}),
        "lifecycle": ("Lifecycle records", lambda view: {one["id"]: {"sha256": one["sha256"]} for one in view.one("results/lifecycle-index.json")["records"]}),
    }  # fmt: skip
    tables = {
        name: Table(title, WHAT, list(_changes(read(before), read(after)))) for name, (title, read) in parts.items()
    }
    return tables | {"gates": moved_gates(before, after)}


def _changes(old: Rows, new: Rows) -> Iterator[list[Any]]:
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield [name, "removed", _brief(old[name]), None]
        elif name not in old:
            yield [name, "added", None, _brief(new[name])]
        else:
            for key in sorted(old[name].keys() | new[name].keys()):
                sides = old[name].get(key), new[name].get(key)
                if sides[0] != sides[1]:
                    yield [name, key, *(_plain(side) for side in sides)]


def _brief(facts: Mapping[str, Any]) -> str | None:
    """The first thing that is known of a row, which is the one that matters most."""
    known = next((value for value in facts.values() if value is not None), None)
    return None if known is None else str(_plain(known))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(_plain(one)) for one in value) or "none"
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if isinstance(value, dict) else value


def _package(view: PackageView) -> Rows:
    manifest = view.one("manifest.json")
    keys = ("campaign", "title", "status", "synthetic", "statement", "builder", "proxySha256")
    boundaries = [one["id"] for one in manifest["boundaries"]]
    return {"manifest": {key: manifest[key] for key in keys} | {"boundaries": boundaries}}


def _versions(view: PackageView) -> Rows:
    manifest = view.one("manifest.json")
    engines = {
        f"engine {one['id']}": {"version": one["version"]}
        | {key: one[key] for key in ("adapter", "synthetic", "source", "registry")}
        | {"identity": [f"{part['name']} {part['value']} {part['sha256'] or ''}".rstrip() for part in one["identity"]]}
        for one in manifest["engines"]
    }
    gateways = {
        f"gateway {one['kind']} {one['name']}": {key: one[key] for key in ("sha256", "sourceCommit", "reason")}
        for one in manifest["gateways"]
    }
    models = {
        f"profile {one['id']}": {key: one[key] for key in ("revision", "repository", "state", "artifacts", "template")}
        for one in view.one("model-identities.json")["profiles"]
    }
    return engines | gateways | models


def _outcomes(view: PackageView) -> Rows:
    return {
        row["case"]: {
            key: row[key] for key in ("outcome", "reason", "blocker", "engine", "topology", "surface", "synthetic")
        }
        for row in view.matrix
    }


def _decisions(view: PackageView) -> Rows:
    return {
        one["id"]: {
            "decision": one["decision"],
            "qualified": one["performanceComparisonQualified"],
            "failed gates": one["failedGates"],
            "disqualifications": sorted({row["code"] for row in one["decisionFile"]["disqualifications"]}),
            "requalification": one["decisionFile"]["requalification"],
        }
        for one in view.comparisons
    }


def _settings(view: PackageView) -> Rows:
    rows: dict[str, Mapping[str, Any]] = {}
    for one in view.comparisons:
        record = one["comparisonFile"]
        setting = record["setting"]
        rows[f"comparison {one['id']}"] = {
            "setting": f"{setting['argument']} {setting['baseline']} -> {setting['candidate']}",
            "kind": record["kind"],
            "protocol": record["protocol"],
            "main request": record["requests"]["main"]["sha256"],
            "launch arguments": sorted(
                {" ".join(launch["arguments"]) for arm in record["arms"] for launch in arm["launches"]}
            ),
        }
    for one in view.one("recipes.json")["recipes"]:
        keys = ("arguments", "environment", "modes", "selected", "setting", "scope")
        rows[f"recipe {one['id']}"] = {key: one[key] for key in keys}
    return rows


def moved_gates(before: PackageView, after: PackageView) -> Table:
    """Every gate row that came out otherwise, with the relative difference and the margin of both packages."""
    old, new = (_gates(view) for view in (before, after))
    rows: list[Sequence[Any]] = []
    for key in sorted(old.keys() | new.keys(), key=str):
        sides = [one.get(key) for one in (old, new)]
        if sides[0] != sides[1]:
            # relative, margin, holds of each side
            flat = [value for side in sides for value in (side or (None, None, None))]
            flipped = None not in sides and flat[2] != flat[5]
            rows.append([*key, *flat, flipped])
    columns = ("comparison", "gate", "repetition", "device", "old relative", "old margin", "old holds", "new relative",
               "new margin", "new holds", "flipped")  # fmt: skip
    return Table("Gates that moved", columns, rows)


def _gates(view: PackageView) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    table = gate_table(view)
    places = [table.columns.index(name) for name in ("relative", "margin", "holds")]
    return {tuple(row[:4]): tuple(row[place] for place in places) for row in table.rows}


def file_table(before: PackageView, after: PackageView) -> Table:
    """Every file that was added, removed or changed, with both digests."""
    rows: list[Json | list[Any]] = []
    for name in sorted(before.members.keys() | after.members.keys()):
        sides = before.members.get(name), after.members.get(name)
        if sides[0] != sides[1]:
            rows.append([name, "added" if sides[0] is None else "removed" if sides[1] is None else "changed", *sides])
    return Table("Files", ("path", "change", "old", "new"), rows)  # type: ignore[arg-type]


def _summary(files: Table) -> str:
    counts = {change: sum(row[1] == change for row in files.rows) for change in ("added", "removed", "changed")}
    return "files: " + ", ".join(f"{count} {change}" for change, count in counts.items())


def _fold(files: Table) -> Table:
    """The files with bodies, ledgers and partials, which come by the hundred, counted by folder."""
    folded: dict[tuple[str, str], int] = {}
    rows: list[Sequence[Any]] = []
    for path, change, old, new in files.rows:
        folder, _, _ = path.rpartition("/")
        if folder.rpartition("/")[2] in ("bodies", "ledgers", "partials"):
            folded[folder, change] = folded.get((folder, change), 0) + 1
        else:
            rows.append([path, change, *(digest and digest[:16] for digest in (old, new))])
    many = [[f"{folder}/ ({count} files)", change, None, None] for (folder, change), count in folded.items()]
    return Table(files.title, files.columns, sorted([*rows, *many], key=lambda row: row[0]))
