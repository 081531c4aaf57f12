"""Where a package comes from, and what it does not prove."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evidence import shipped
from evidence.report import comparisons
from evidence.report.grids import facts, folded, grid
from evidence.report.markup import Markup, element, join
from evidence.report.tables import Json, PackageView, Table


def engine_table(view: PackageView) -> Table:
    """One row an engine build, with what identifies it."""
    rows = [
        [one["id"], one["adapter"], one["version"], one["source"], one["synthetic"],
         [f"{part['name']} {part['value']}" + (f" ({part['sha256']})" if part["sha256"] else "") for part in one["identity"]]]
        for one in view.one("manifest.json")["engines"]
    ]  # fmt: skip
    return Table("Engines", ("engine", "adapter", "version", "source", "synthetic", "identity"), rows)


def gateway_table(view: PackageView) -> Table:
    """One row a gateway that stood before the workers."""
    keys = ("kind", "name", "sha256", "sourceCommit", "reason")
    rows = [[one[key] for key in keys] for one in view.one("manifest.json")["gateways"]]
    return Table("Gateways", ("kind", "name", "SHA-256", "source commit", "reason"), rows)


def model_table(view: PackageView) -> Table:
    """One row a profile: which model, where from, under what terms."""
    rows = [
        [
            one["id"],
            one["repository"],
            one["revision"] or one["revisionReason"],
            one["state"],
            one["license"],
            one["template"]["source"],
        ]
        for one in view.one("model-identities.json")["profiles"]
    ]
    return Table("Models", ("profile", "repository", "revision", "state", "license", "template"), rows)


def recipe_table(view: PackageView) -> Table:
    """One row a recipe: what it may be used for, and whether it needs a requalification."""
    rows = [
        [one["id"], one["case"], one["modes"], one["selected"], one["requalification"]["statement"], one["scope"]]
        for one in view.one("recipes.json")["recipes"]
    ]
    return Table("Recipes", ("recipe", "case", "modes", "selected", "requalification", "scope"), rows)


def device_table(view: PackageView) -> Table:
    """One row a device of the comparisons: what read it, and the total that it reported."""
    found: dict[tuple[str, str, int | None], set[str]] = {}
    for entry in view.comparisons:
        for one in view.one(f"{entry['folder']}/snapshots.json")["snapshots"]:
            for device in one["devices"]:
                found.setdefault((device["device"], one["source"], device["totalBytes"]), set()).add(entry["id"])
    rows = [
        [device, comparisons.MEMORY.get(source, source), total, None if total is None else f"{total / comparisons.GIB:.1f} GiB", sorted(names)]
        for (device, source, total), names in sorted(found.items(), key=lambda row: (row[0][0], row[0][1], row[0][2] or 0))
    ]  # fmt: skip
    return Table("Devices", ("device", "what the snapshots read", "total bytes", "total", "comparisons"), rows)


def machine_table(view: PackageView) -> Table:
    """One row an experiment of the lifecycle records: hardware and software as recorded."""
    rows = [
        [one["id"], *([f"{key} {value}" for key, value in sorted(one[part].items())] for part in ("hardware", "software"))]
        for entry in view.one("results/lifecycle-index.json")["records"] for one in view.one(entry["path"])["experiments"]
    ]  # fmt: skip
    return Table("Hardware and software of the lifecycle records", ("experiment", "hardware", "software"), rows)


def origin(view: PackageView) -> Markup:
    """Digests of the package, its recorder and builder, and the time of its runs."""
    manifest = view.one("manifest.json")
    dates = manifest["dates"]
    return facts([
        ("archive", manifest["distribution"]["archive"]), ("archive SHA-256", view.archive_sha256 or "a folder, not an archive"),
        ("files", len(view.members)), ("SHA-256 of SHA256SUMS", view.members.get("SHA256SUMS")),
        ("recording proxy SHA-256", manifest["proxySha256"]), ("built by", f"{manifest['builder']['name']} {manifest['builder']['version']}"),
        ("first run started", dates["firstRunStartedAt"]), ("last run ended", dates["lastRunEndedAt"]),
    ])  # fmt: skip


def provenance(view: PackageView) -> Markup:
    """Digests, engine builds, gateways, models, recipes, and the launch arguments of every attempt."""
    return join((
        origin(view),
        grid(engine_table(view), "engines"),
        grid(gateway_table(view)),
        grid(model_table(view), "models"),
        grid(recipe_table(view), "recipes"),
        folded("Launch arguments of the functional attempts", attempt_launches(view)),
        folded("Digests of the index files", grid(Table("Digests", ("file", "SHA-256"), [
            [name, digest] for name, digest in sorted(view.members.items()) if name.count("/") <= 1 and name.endswith(".json")
            and not name.startswith("schemas/")]))),
    ))  # fmt: skip


def attempt_launches(view: PackageView) -> Markup:
    """Launch arguments of the functional attempts, each distinct launch once."""
    return comparisons.launches(
        [(entry["id"], launch) for entry in view.attempts for launch in entry["attemptFile"]["launches"]]
    )


def boundaries(view: PackageView) -> Markup:
    """What the package itself disclaims, the campaign's own limitations among it."""
    mine: Sequence[Json] = view.one("manifest.json")["boundaries"]
    return element("ul", join(element("li", one["statement"]) for one in mine)) if mine else Markup()


def limits(view: PackageView | None) -> Markup:
    """What the package itself disclaims, and what no verified package proves."""
    path = shipped.root() / "docs" / "what-this-does-not-prove.md"
    return join((
        "" if view is None else boundaries(view),
        _guide(path.read_text(encoding="utf-8")),
    ))  # fmt: skip


def _guide(source: str) -> Markup:
    """The page about limits: paragraphs, one numbered list, bold words and code, as it is written."""
    blocks: list[Markup] = []
    items: list[Markup] = []
    for block in re.split(r"\n\n|\n(?=\d+\. )", source):
        words = " ".join(block.split())
        numbered = re.match(r"\d+\. ", words)
        if numbered:
            items.append(element("li", _inline(words[numbered.end() :])))
        elif words and not words.startswith("#"):
            blocks.append(element("p", _inline(words)))
    return join((*blocks, element("ol", *items)))


def _inline(words: str) -> Markup:
    parts = re.split(r"(\*\*.+?\*\*|`.+?`)", words)
    return join(
        element("strong", part[2:-2])
        if part.startswith("**")
        else element("code", part[1:-1])
        if part.startswith("`")
        else part
        for part in parts
    )
