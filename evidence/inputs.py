"""Reads a file that a person named: a regular one, of a size that somebody may have written, without waiting for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evidence.errors import EvidenceError

MOST_BYTES = 64 << 20


def read_input(path: Path, expected: str, hint: str = "", *, most: int = MOST_BYTES) -> bytes:
    """The bytes of the file. Raises EvidenceError for what cannot be read, waits for a writer, or has no end.

    `expected` completes the sentence (`a campaign file`).
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise EvidenceError(f"{path}: cannot be read ({why}), expected {expected}", hint) from None
    try:
        facts = os.fstat(handle)
        if stat.S_ISDIR(facts.st_mode):
            raise EvidenceError(f"{path}: found a folder, expected {expected}", hint)
        if not stat.S_ISREG(facts.st_mode):
            raise EvidenceError(f"{path}: found no regular file, expected {expected}", hint)
        if facts.st_size > most:
            raise EvidenceError(f"{path}: found {facts.st_size} bytes, expected {expected} of at most {most}", hint)
        with open(handle, "rb", closefd=False) as file:  # a descriptor, and no folder's
            return file.read(most)
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read ({error.strerror}), expected {expected}", hint) from None
    finally:
        os.close(handle)


def decode(path: Path, content: bytes, expected: str) -> str:
    """The bytes as UTF-8. Raises EvidenceError."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EvidenceError(
            f"{path}: found bytes that are not UTF-8 at {error.start}, expected {expected}", "save it as UTF-8"
        ) from None
