"""Where a package comes from, and what it does not prove."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evidence import shipped
from evidence.report import comparisons
from evidence.report.grids import facts, folded, grid
from evidence.report.markup import Markup, element, join
from evidence.report.tables import Json, PackageView, Table


def provenance(view: PackageView) -> Markup:
    """Digests, engine builds, gateways, models, recipes, and the launch arguments of every attempt."""
    manifest = view.one("manifest.json")
    engines = [
        [one["id"], one["adapter"], one["version"], one["source"], one["synthetic"],
         [f"{part['name']} {part['value']}" + (f" ({part['sha256']})" if part["sha256"] else "") for part in one["identity"]]]
        for one in manifest["engines"]
    ]  # fmt: skip
    gateways = [
        [one["kind"], one["name"], one["sha256"], one["sourceCommit"], one["reason"]] for one in manifest["gateways"]
    ]
    models = [
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
    recipes = [
        [one["id"], one["case"], one["modes"], one["selected"], one["requalification"]["statement"], one["scope"]]
        for one in view.one("recipes.json")["recipes"]
    ]
    dates = manifest["dates"]
    return join((
        facts([
            ("archive", manifest["distribution"]["archive"]), ("archive SHA-256", view.archive_sha256 or "a folder, not an archive"),
            ("files", len(view.members)), ("SHA-256 of SHA256SUMS", view.members.get("SHA256SUMS")),
            ("recording proxy SHA-256", manifest["proxySha256"]), ("built by", f"{manifest['builder']['name']} {manifest['builder']['version']}"),
            ("first run started", dates["firstRunStartedAt"]), ("last run ended", dates["lastRunEndedAt"]),
        ]),
        grid(Table("Engines", ("engine", "adapter", "version", "source", "synthetic", "identity"), engines), "engines"),
        grid(Table("Gateways", ("kind", "name", "SHA-256", "source commit", "reason"), gateways)),
        grid(Table("Models", ("profile", "repository", "revision", "state", "license", "template"), models), "models"),
        grid(Table("Recipes", ("recipe", "case", "modes", "selected", "requalification", "scope"), recipes), "recipes"),
        folded("Launch arguments of the functional attempts", comparisons.launches(
            [(entry["id"], launch) for entry in view.attempts for launch in entry["attemptFile"]["launches"]])),
        folded("Digests of the index files", grid(Table("Digests", ("file", "SHA-256"), [
            [name, digest] for name, digest in sorted(view.members.items()) if name.count("/") <= 1 and name.endswith(".json")
            and not name.startswith("schemas/")]))),
    ))  # fmt: skip


def limits(view: PackageView | None) -> Markup:
    """What the package itself disclaims, and what no verified package proves."""
    mine: Sequence[Json] = [] if view is None else view.one("manifest.json")["boundaries"]
    path = shipped.root() / "docs" / "what-this-does-not-prove.md"
    return join((
        element("ul", join(element("li", one["statement"]) for one in mine)) if mine else "",
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
