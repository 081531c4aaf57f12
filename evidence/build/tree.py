"""The package tree while it is gathered: what goes in, checked once, held flat in memory.

Derived files are appended to one spool (making a file costs more than filling it), bodies stay where capture left
them and are held as 32 bytes each, so that a package of a hundred thousand files costs a few megabytes. Nothing is visible to anybody
before the archive writer has taken the whole of it.
"""

from __future__ import annotations

import functools
import hashlib
import os
from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evidence.archive.grammar import SUMS_NAME
from evidence.build.archive import Content, Piece, unwritable
from evidence.build.privacy import Scanner
from evidence.examining import faults


@dataclass
class Bodies:
    """The bodies of one folder of the package, `prefix` ending with a slash: digest -> which source has it."""

    prefix: str
    sources: tuple[str, ...]
    digests: bytes = b""
    owners: bytes = b""

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """(path in the package, hash, path of the file), sorted by hash."""
        for place, owner in enumerate(self.owners):
            name = self.digests[32 * place : 32 * place + 32].hex()
            yield self.prefix + name, name, f"{self.sources[owner]}/{name}"

    def __len__(self) -> int:
        return len(self.owners)


@dataclass
class Tree:
    """Paths below the top folder, each with its hash; `refusals` collects what stands against packing."""

    staging: Path
    scanner: Scanner
    refusals: list[str] = field(default_factory=list)
    files: dict[str, tuple[str, Piece | bytes]] = field(default_factory=dict)
    bodies: list[Bodies] = field(default_factory=list)
    payload_bytes: int = 0

    def add(self, path: str, data: bytes, *, trusted: bool = False, free: bytes | None = None) -> str:
        """Stage one file and return its hash. JSON that does not fit its schema is a reason against the package.

        `trusted`: bytes pinned by this project, or searched already. `free` is that of `Scanner.scan`.
        """
        digest = hashlib.sha256(data).hexdigest()
        if path in self.files:
            self.refusals.append(f"{path}: found a second file of this name, expected one")
        if not trusted:
            self.scanner.scan(path, data, free=free)
            if path.endswith(".json"):
                self.refusals += [str(fault) for fault in faults(path, data)]
        self.payload_bytes += len(data)
        if trusted:
            self.files[path] = (digest, data)
        else:
            self.files[path] = (digest, self._spool(data))
        return digest

    @functools.cached_property
    def _spool_path(self) -> str:
        """One string for all pieces, and of the process that writes: a tree is made, and filled, in one."""
        return f"{self.staging}/spool-{os.getpid()}"

    def _spool(self, data: bytes) -> Piece:
        """Append to the spool of this process: trees of other processes are spooled beside it."""
        path = self._spool_path
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                start = os.lseek(handle, 0, os.SEEK_END)
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
            finally:
                os.close(handle)
        except OSError as error:
            raise unwritable(self.staging.parent, error) from None
        return Piece(path, start, len(data))

    def add_bodies(self, prefix: str, owners: Mapping[str, int], sources: tuple[str, ...]) -> None:
        """Take the bodies of one folder: hash -> place in `sources`; they were read and checked before."""
        if not owners:
            return
        names = sorted(owners)
        insort(
            self.bodies,
            Bodies(prefix, sources, b"".join(bytes.fromhex(name) for name in names), bytes(owners[n] for n in names)),
            key=lambda room: room.prefix,
        )

    def absorb(self, other: Tree) -> None:
        """Take over what another tree holds; both have one staging folder."""
        for path in other.files.keys() & self.files.keys():
            self.refusals.append(f"{path}: found a second file of this name, expected one")
        self.files |= other.files
        self.refusals += other.refusals
        self.scanner.findings.extend(other.scanner.findings)
        self.payload_bytes += other.payload_bytes
        for room in other.bodies:
            insort(self.bodies, room, key=lambda one: one.prefix)

    def count_bodies(self) -> int:
        return sum(len(room) for room in self.bodies)

    def rows(self) -> Iterator[tuple[str, str, Content]]:
        """(path, hash, content) of everything, sorted by path as bytes."""
        rooms = iter(self.bodies)
        room = next(rooms, None)
        # A folder's bodies stand together, because no other path lies between its prefix and their ends.
        for path in sorted(self.files):
            while room is not None and room.prefix < path:
                yield from room
                room = next(rooms, None)
            yield path, *self.files[path]
        while room is not None:
            yield from room
            room = next(rooms, None)

    def seal(self) -> None:
        """Add `SHA256SUMS` of everything in the tree: GNU text form, sorted, as `sha256sum -c` reads it."""
        whole, pieces, lines = hashlib.sha256(), list[Piece](), list[str]()

        def flush() -> None:
            data = "".join(lines).encode()
            whole.update(data)
            pieces.append(self._spool(data))
            lines.clear()

        for path, digest, _ in self.rows():
            lines.append(f"{digest}  {path}\n")
            if len(lines) >= 1024:
                flush()
        flush()
        # Nothing else was appended meanwhile, so the pieces lie one behind the other.
        piece = Piece(pieces[0].path, pieces[0].start, sum(one.size for one in pieces))
        self.payload_bytes += piece.size
        self.files[SUMS_NAME] = (whole.hexdigest(), piece)
