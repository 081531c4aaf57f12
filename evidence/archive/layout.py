"""What may lie where in a package: the schema of every JSON file, what else there is, and which files a repository retains."""

from __future__ import annotations

import re

ORIGINAL = "original bytes"
"""JSON that somebody else wrote and that is kept as it was; it has a hash and no schema."""
_ID = r"[a-z0-9][a-z0-9.-]*"
_SCHEMAS: tuple[tuple[str, str], ...] = (
    (rf"results/settings/{_ID}/(comparison|samples|snapshots|decision)\.json", r"\1"),
    (rf"results/(?:settings|incomplete|converged)/{_ID}/ledgers/{_ID}\.json", "ledger"),
    (rf"results/incomplete/{_ID}/comparison\.json", "incomplete-comparison"),
    (rf"results/incomplete/{_ID}/(samples|offers|snapshots)\.json", r"\1"),
    (rf"results/converged/{_ID}/(attempt|samples|controls)\.json", r"\1"),
    (r"results/(converged-index|settings-index|incomplete-settings-index|pd-index|lifecycle-index)\.json", r"\1"),
    (rf"results/lifecycle/{_ID}\.json", "lifecycle-record"),
    (r"(manifest|model-identities|recipes|runtime-matrix)\.json", r"\1"),
    (rf"models/{_ID}\.json", "model"),
    (rf"registry-{_ID}/manifest\.json", "registry"),
    (rf"registry-{_ID}/probes/{_ID}\.json", ORIGINAL),
    (rf"rules/{_ID}\.json", "rule"),
    (r"source-definitions/[^/]+\.json", ORIGINAL),
    (r"schemas/[a-z-]+\.schema\.json", ORIGINAL),
)
_OTHERS = re.compile(
    rf"README\.md|CHECKS\.md|SHA256SUMS|settings/{_ID}\.env|weights/{_ID}\.(?:source-index|sha256)|source-definitions/[^/]+"
)
_COMPILED = tuple((re.compile(pattern), name) for pattern, name in _SCHEMAS)


def schema_of(name: str) -> str | None:
    """Return which schema the file `name` must fit (`samples`), `ORIGINAL` for none, None for a file of no kind."""
    for pattern, schema in _COMPILED:
        match = pattern.fullmatch(name)
        if match is not None:
            return match[1] if schema == r"\1" else schema
    return None


def is_known(name: str) -> bool:
    """Tell whether a package has such a file, tools apart. What lies below `results/` is for the verifiers to say."""
    return name.startswith("results/") or schema_of(name) is not None or _OTHERS.fullmatch(name) is not None


def is_retained(name: str) -> bool:
    """Tell whether a repository keeps this file of a package; bodies, ledgers, results and probes it does not."""
    return not name.startswith("results/") and "/probes/" not in name


FORMS = ("README.md", "SHA256SUMS")
"""Retained under the same name in a form of their own."""
