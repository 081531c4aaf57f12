"""Reproduction inputs: what package files say of one another is true, as far as it is a name or a hash."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evidence.archive.grammar import Refusal

_WANTED = re.compile(r"(?:manifest|model-identities|recipes|models/.*|registry-.*/manifest|results/.*-index)\.json")


def is_wanted(name: str) -> bool:
    """Tell whether `check` reads this file."""
    return name.count("/") <= 1 and _WANTED.fullmatch(name) is not None


def check(
    values: Mapping[str, Any], members: Mapping[str, str], top: str | None, guide: bytes
) -> tuple[int, int, list[Refusal]]:
    """Return how many statements there are, how many are true, and a refusal for each that is not.

    `guide` is README.md; `top` is the archive's top folder, None for a folder, which may have any name. `values` are the parsed files that `is_wanted` names and that fit their schemas, `members` name -> digest.
    """
    expected = 0
    refusals: list[Refusal] = []
    for place, statement, found, right in _statements(values, members, top, guide):
        expected += 1
        if found != right:
            refusals.append(Refusal("input-differs", place, f"{statement}: {found}", str(right)))
    return expected, expected - len(refusals), refusals


def _statements(
    values: Mapping[str, Any], members: Mapping[str, str], top: str | None, guide: bytes
) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield (place, what is stated, what is there, what is stated to be there)."""
    for name in ("manifest.json", "model-identities.json"):
        yield name, "file", "there" if name in values or name in members else "missing", "there"
    if top is not None and "manifest.json" in values:
        stated = values["manifest.json"]["distribution"]["topFolder"]
        yield "manifest.json#/distribution/topFolder", "top folder", top, stated
    if "manifest.json" in values:
        text = " ".join(guide.decode(errors="replace").split())
        for fact in guide_facts(values["manifest.json"]):
            yield "README.md", "guide", fact if fact in text else "other words", fact
    identities = values.get("model-identities.json", {"profiles": []})
    for number, profile in enumerate(identities["profiles"]):
        place = f"model-identities.json#/profiles/{number}"
        path = f"models/{profile['id']}.json"
        alone = values.get(path, {}).get("profile")
        yield place, path, "the same facts" if alone == profile else "missing or other facts", "the same facts"
        definition = profile["definition"]
        yield f"{place}/definition", definition["path"], members.get(definition["path"]), definition["sha256"]
        index = f"weights/{profile['id']}.source-index"
        if index in members:
            yield f"{place}/sourceIndexSha256", index, members[index], profile["sourceIndexSha256"]
    for name, value in values.items():
        if name.startswith("registry-"):
            for number, probe in enumerate(value["probes"]):
                yield f"{name}#/probes/{number}", probe["path"], members.get(probe["path"]), probe["sha256"]
        elif name in (
            "results/settings-index.json",
            "results/incomplete-settings-index.json",
            "results/converged-index.json",
        ):
            for number, entry in enumerate(value.get("comparisons", value.get("attempts", []))):
                for file, digest in entry["files"].items():
                    path = f"{entry['folder'].rstrip('/')}/{file}.json"
                    if digest is not None:
                        yield f"{name}#/{number}/files/{file}", path, members.get(path), digest
        elif name == "results/lifecycle-index.json":
            for number, record in enumerate(value["records"]):
                yield f"{name}#/records/{number}", record["path"], members.get(record["path"]), record["sha256"]
        elif name == "recipes.json":
            for number, recipe in enumerate(value["recipes"]):
                there = "there" if recipe["settingsFile"] in members else "missing"
                yield f"{name}#/recipes/{number}", recipe["settingsFile"], there, "there"


def guide_facts(manifest: Mapping[str, Any]) -> list[str]:
    """What README.md has to say of a package, white space apart: the manifest's claim, counts and boundaries."""
    counts = manifest["counts"]
    return [
        " ".join(fact.split())
        for fact in (
            manifest["statement"],
            f"{counts['profiles']} requested profiles, {counts['cases']} cases, {counts['attempts']} functional attempts, "
            f"{counts['comparisons']} complete comparisons ({counts['mainSamples']} main and {counts['warmSamples']} warm "
            f"samples), {counts['incompleteComparisons']} that did not finish, {counts['lifecycleRecords']} lifecycle records. "
            f"Matrix status: {manifest['status']}. Synthetic: {manifest['synthetic']}.",
            *(boundary["statement"] for boundary in manifest["boundaries"]),
        )
    ]
