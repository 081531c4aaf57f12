"""The package tree: its form closed, so that nothing lies in it that the format does not name.

A stray Python file beside the verifiers could be imported in place of the standard library, and a stray page could
say anything: whatever has no place of its own in the format is refused, however well SHA256SUMS lists it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Iterator, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.listing import one_of_hashes
from checking.reading import shown
from checking.rules.comparison import peek

lies = Later("checking.rules.tree_lies")

TOOLS = (
    "README.md",
    "CHECKS.md",
    "receipt-proxy.py",
    "verify-results.py",
    "verify-incomplete-results.py",
    "verify-converged.py",
    "verify-lifecycle.py",
)
DOCUMENTS = ("manifest.json", "model-identities.json", "recipes.json", "runtime-matrix.json")
INDICES = ("converged-index", "settings-index", "incomplete-settings-index", "pd-index", "lifecycle-index")
SCHEMAS = (
    "attempt", "common", "comparison", "controls", "converged-index", "decision", "incomplete-comparison",
    "incomplete-settings-index", "ledger", "lifecycle-index", "lifecycle-record", "manifest", "model",
    "model-identities", "offers", "pd-index", "recipes", "registry", "rule", "runtime-matrix", "samples",
    "settings-index", "snapshots",
)  # fmt: skip
FIXED = frozenset(
    [*TOOLS, *DOCUMENTS, "SHA256SUMS"]
    + ["results/%s.json" % name for name in INDICES]
    + ["schemas/%s.schema.json" % name for name in SCHEMAS]
)
_ID = r"[a-z0-9][a-z0-9.-]*"
PLACES = re.compile(
    r"results/(?:settings|incomplete|converged)/{id}/(?:bodies/[0-9a-f]{{64}}|ledgers/{id}\.json)"
    r"|results/settings/{id}/(?:comparison|samples|snapshots|decision)\.json"
    r"|results/incomplete/{id}/(?:(?:comparison|samples|snapshots|offers)\.json|partials/[0-9a-f]{{64}})"
    r"|results/converged/{id}/(?:attempt|samples|controls)\.json"
    r"|results/lifecycle/{id}\.json"
    r"|models/{id}\.json|source-definitions/{id}\.[A-Za-z0-9]+"
    r"|weights/{id}\.(?:source-index|sha256)"
    r"|registry-{id}/(?:manifest\.json|probes/{id}\.json)"
    r"|checking/(?:rules/)?[a-z_]+\.py"  # other releases have other modules, and each runs its own
    r"|settings/{id}\.env|rules/{id}\.(?:native|rr|exact|native-pd)\.json".format(id=_ID)
)
_WEIGHTS = re.compile(r"weights/(.+)\.(?:source-index|sha256)")


class Tree:
    """The names of the package, and the profiles and registries that it speaks of."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.entries = self.view.listing()
        told = peek(self.view, "model-identities.json").get("profiles", ())
        self.profiles = {one.get("id") for one in told if isinstance(one, dict)}
        told = peek(self.view, "manifest.json").get("engines", ())
        self.registries = {one.get("registry") for one in told if isinstance(one, dict)}


def hold_closed(subject: Tree) -> Iterator[Complaint]:
    """Every name is one of the format: a fixed one, or one of the shapes that section 2 gives a folder."""
    entries = subject.entries
    wrong = [name for folder in entries.all_folders() for name in _misplaced(folder, entries.joined(folder))]
    wrong += filter(_odd, entries.odd())
    for name in sorted(wrong):
        yield (name, "a file that has no place in a package", "only what the format names")


def _odd(name: str) -> bool:
    return name not in FIXED and not PLACES.fullmatch(name)


@lru_cache(maxsize=None)
def _misplaced(folder: str, joined: str) -> Tuple[str, ...]:
    start = folder + "/" if folder else ""
    hashed = one_of_hashes(joined)
    if hashed and not _odd(start + hashed):
        return ()
    return tuple(filter(_odd, [start + name for name in joined.split("/")[:-1]]))


def hold_tools(subject: Tree) -> Iterator[Complaint]:
    """The guide, the recorder, the verifiers and what each code means are there."""
    for name in TOOLS:
        if not subject.view.has(name):
            yield (name, "no such file", "the tools and the guide of every package")


def hold_owned(subject: Tree) -> Iterator[Complaint]:
    """A file of weights is of a profile, and a registry is one that an engine of the manifest names."""
    for name in subject.view.below("weights"):
        match = _WEIGHTS.fullmatch(name)
        if match and match.group(1) not in subject.profiles:
            yield (name, "a file of no profile", "profiles of model-identities.json only")
    entries = subject.entries
    for name in sorted({name.split("/")[0] for name in (*entries.all_folders(), *entries.files(""), *entries.odd())}):
        if not name.startswith("registry-"):
            continue
        if name not in subject.registries:
            yield (
                name,
                "a registry that no engine of manifest.json names",
                shown(sorted(filter(None, subject.registries))),
            )


CHECKS = (
    Check(
        "tree-closed",
        "nothing lies in the package that the format does not name",
        hold_closed,
        (
            Mutation("lay a page of claims into the top folder", lies.page_of_claims),
            Mutation("lay a file of import paths into the top folder", lies.import_paths),
            Mutation("lay a start-up hook beside the verifiers", lies.start_up_hook),
            Mutation("shadow the JSON reader of the verifiers", lies.shadow_json),
            Mutation("lay a compiled module among the rules", lies.compiled_module),
            Mutation("add a verifier that is none", lies.further_verifier),
            Mutation("add a folder that no page names", lies.further_folder),
            Mutation("add a report beside the indices", lies.further_report),
            Mutation("add a file of another ending to a folder", lies.further_schema),
        ),
    ),
    Check(
        "tree-tools",
        "the guide, the recorder and the verifiers are there",
        hold_tools,
        (
            Mutation("remove what the codes mean", lies.drop_codes),
            Mutation("remove a verifier", lies.drop_verifier),
            Mutation("remove the guide", lies.drop_guide),
        ),
    ),
    Check(
        "tree-owned",
        "weights are of a profile, registries of an engine",
        hold_owned,
        (
            Mutation("add checksums of an unlisted profile", lies.unlisted_checksums),
            Mutation("add a registry that no engine names", lies.unnamed_registry),
        ),
    ),
)

FAMILY = Family(kind="package", find=lambda view: [""], open=Tree, checks=CHECKS)
