"""Packages for the archive tests: the valid ones of the conformance suite, written by the real writer."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))

import base
import make

from evidence.build.archive import write_archive, write_digests

__all__ = ["base", "lay", "make", "publish"]


def publish(files: dict[str, bytes], folder: Path, top: str = "demo") -> Path:
    """Write the archive and both detached digests as `evidence build` does; return the archive."""
    path = folder / f"{top}-evaluation.tgz"
    write_digests(path, write_archive(files.items(), path, top))
    return path


def lay(files: dict[str, bytes], folder: Path) -> Path:
    """Lay the files into a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
