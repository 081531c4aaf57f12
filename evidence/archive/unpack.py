"""Lays verified bytes into a fresh folder: regular files only, by descriptor, never through a link."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

from evidence.archive.grammar import Refusal, mode_of
from evidence.archive.reader import Reading, read_archive
from evidence.errors import EvidenceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unpack(handle: int, verified: Reading, target: Path) -> Path:
    """Unpack the archive behind `handle`, which gave the reading `verified`, into the new folder `target`.

    Returns the package folder below it. Raises `Refusal` when the archive is no longer the one that was verified,
    `FileExistsError` when the folder is there already; in either case nothing of it stays behind.
    """
    if not verified.complete or verified.findings:
        raise Refusal("not-verified", verified.name, "an archive with findings", "a verified one")
    target.mkdir(mode=0o755)
    laid = _Laid(target)

    def lay(name: bytes, content: Any, first: bool) -> None:
        try:
            laid.take(name, content, first)
        except OSError as error:  # here, so that nobody takes it for one of reading the archive
            raise EvidenceError(
                f"{target}: cannot be written: {error.strerror}, expected room for the unpacked package",
                "free some space there, or let TMPDIR name another place",
            ) from error

    try:
        again = read_archive(handle, verified.name, pass_on=lay)
        laid.close()
        # The same stream has the same members: nothing of it need be hashed member by member again.
        if (again.tar_sha256, again.tgz_sha256) != (verified.tar_sha256, verified.tgz_sha256):
            raise Refusal("changed", verified.name, "other bytes than a moment before", "a file at rest")
    except BaseException:
        laid.close()
        shutil.rmtree(target)
        raise
    return target / verified.top


class _Laid:
    """Files written so far; the descriptors of the folders on the way to the last one are kept open."""

    def __init__(self, target: Path) -> None:
        self._folders: list[tuple[bytes, int]] = [(b"", os.open(target, _FOLDER))]
        self._file = -1
        self._given: set[int] = set()  # modes that files are given at once here, whatever the umask

    def take(self, name: bytes, content: Any, first: bool) -> None:
        """Write one run of a member's content; `first` opens a new file."""
        if first:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
            head, _, tail = name.rpartition(b"/")
            mode = mode_of(name)
            self._file = os.open(tail, _FILE, mode, dir_fd=self._enter(head))
            if mode not in self._given:
                if stat.S_IMODE(os.fstat(self._file).st_mode) == mode:
                    self._given.add(mode)
                else:
                    os.fchmod(self._file, mode)
        view = memoryview(content)
        while view:
            view = view[os.write(self._file, view) :]

    def _enter(self, head: bytes) -> int:
        while self._folders[-1][0] and not (head + b"/").startswith(self._folders[-1][0] + b"/"):
            os.close(self._folders.pop()[1])
        while self._folders[-1][0] != head:
            above, handle = self._folders[-1]
            part = head[len(above) :].lstrip(b"/").split(b"/", 1)[0]
            os.mkdir(part, 0o755, dir_fd=handle)
            self._folders.append(((above + b"/" if above else b"") + part, os.open(part, _FOLDER, dir_fd=handle)))
        return self._folders[-1][1]

    def close(self) -> None:
        """Close every descriptor; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        while self._folders:
            os.close(self._folders.pop()[1])
