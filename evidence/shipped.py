"""Finds the files that travel with the package: `schemas/`, `verifiers/` and the `SHA256SUMS` that pins them.

In a wheel they lie under `evidence/_shipped`, in a checkout beside the package; that order is tried. Every
file is checked against `SHA256SUMS`, and a file that it does not name is refused: a stray file in the folder
must not become a part of anybody's archive.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from evidence.errors import EvidenceError

ROOMS = ("schemas", "verifiers")
IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}


@functools.cache
def root() -> Path:
    """The folder that holds the shipped rooms and `SHA256SUMS`."""
    here = Path(__file__).resolve().parent
    for folder in (here / "_shipped", here.parent):
        if (folder / "SHA256SUMS").is_file() and all((folder / room).is_dir() for room in ROOMS):
            return folder
    raise EvidenceError(
        f"{here}: found no schemas/, verifiers/ and SHA256SUMS, expected them in the package or the checkout",
        "install the package again, or run from a complete checkout",
    )


def pinned(folder: Path) -> dict[str, str]:
    """`SHA256SUMS` of `folder` as path -> digest."""
    rows = (folder / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (row.split("  ", 1) for row in rows)}


@functools.cache
def files() -> dict[str, bytes]:
    """Every shipped file as path -> bytes (`verifiers/verify-results.py`, `schemas/manifest.schema.json`), checked.

    Raises EvidenceError naming the file that is unpinned, missing or changed.
    """
    folder = root()
    expected = {name: digest for name, digest in pinned(folder).items() if name.split("/", 1)[0] in ROOMS}
    found = {
        path.relative_to(folder).as_posix(): path
        for room in ROOMS
        for path in sorted((folder / room).rglob("*"))
        if path.is_file() and not IGNORED.intersection(path.parts)
    }
    hint = "in a checkout run `make sums` after changing schemas/ or verifiers/"
    for name in sorted(found.keys() ^ expected.keys()):
        state = "not named in SHA256SUMS" if name in found else "missing"
        raise EvidenceError(f"{folder / name}: found {state}, expected the pinned file", hint)
    contents = {name: path.read_bytes() for name, path in found.items()}
    for name, data in contents.items():
        digest = hashlib.sha256(data).hexdigest()
        if digest != expected[name]:
            raise EvidenceError(f"{folder / name}: found SHA-256 {digest}, expected {expected[name]}", hint)
    return contents


def verifiers() -> Path:
    """The folder of the trusted verifiers, after every file in it was checked."""
    files()
    return root() / "verifiers"
