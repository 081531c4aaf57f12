"""A package as names and bytes: from a folder, with alterations in memory on top.

A `Folder` lists its tree once, follows no link and opens nothing but regular files, each at most once
for every time that its bytes are asked for. An `Overlay` is the same package with some names altered,
added, removed or turned into something that is no file; nothing of it is ever written. A `View` is what
one group of checks sees: it notes which names were read, so that after an alteration only the groups
that read an altered name have to be judged again.

Kinds of entry: `file`, `link`, `special` (FIFO, device, socket), `folder` (only empty ones are listed).
Names use `/`, are relative to the top folder, and are kept as text (undecodable bytes as surrogates).
"""

from __future__ import annotations

import hashlib
import os
import stat
from bisect import bisect_left
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple

_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_OPEN_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
_RELATIVE = os.open in os.supports_dir_fd
_CHUNK = 1 << 20
LARGEST_READ = 64 << 20


class Unreadable(Exception):
    """A name cannot be read: it is not there, is no regular file, or the system refused."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("%s: %s" % (name, reason))
        self.name = name
        self.reason = reason


class Source:
    """Names, kinds and bytes of one package."""

    entries: Mapping[str, str]

    def read(self, name: str) -> bytes:
        """The bytes of a regular file of at most 64 MiB. Raises Unreadable."""
        raise NotImplementedError

    def digest(self, name: str) -> str:
        """The SHA-256 of a regular file, as hex. Raises Unreadable."""
        raise NotImplementedError

    def known(self) -> Mapping[str, str]:
        """Name -> SHA-256 of every file whose bytes were asked for so far."""
        raise NotImplementedError


class Folder(Source):
    """A package in a folder. Raises OSError when the top folder cannot be listed."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self.entries: Dict[str, str] = {}
        self._digests: Dict[str, str] = {}
        self._folder: Tuple[Optional[str], int] = (None, -1)
        self._list(self.root, "")

    def _list(self, folder: str, prefix: str) -> None:
        empty = True
        with os.scandir(folder) as found:
            for entry in found:
                empty = False
                name = prefix + entry.name
                if entry.is_symlink():
                    self.entries[name] = "link"
                elif entry.is_dir(follow_symlinks=False):
                    self._list(entry.path, name + "/")
                elif entry.is_file(follow_symlinks=False):
                    self.entries[name] = "file"
                else:
                    self.entries[name] = "special"
        if empty and prefix:
            self.entries[prefix[:-1]] = "folder"

    def _descend(self, folder: str) -> int:
        """A descriptor of the folder, each step refused when it is a link. The last one used stays open."""
        if self._folder[0] == folder:
            return self._folder[1]
        step = os.open(self.root, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        for part in folder.split("/") if folder else []:
            try:
                deeper = os.open(part, _OPEN_FOLDER, dir_fd=step)
            finally:
                os.close(step)
            step = deeper
        self.close()
        self._folder = (folder, step)
        return step

    def close(self) -> None:
        """Give the open folder back."""
        if self._folder[0] is not None:
            os.close(self._folder[1])
            self._folder = (None, -1)

    def _open(self, name: str) -> int:
        if self.entries.get(name) != "file":
            raise Unreadable(name, self.entries.get(name, "not there"))
        try:
            if _RELATIVE:
                folder, _, last = name.rpartition("/")
                descriptor = os.open(last, _OPEN, dir_fd=self._descend(folder))
            else:
                descriptor = os.open(os.path.join(self.root, *name.split("/")), _OPEN)
        except (OSError, ValueError) as error:
            raise Unreadable(name, getattr(error, "strerror", None) or "cannot be opened") from None
        return descriptor

    def read(self, name: str) -> bytes:
        descriptor = self._open(name)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise Unreadable(name, "not a regular file")
            if facts.st_size > LARGEST_READ:
                raise Unreadable(name, "%d bytes, more than %d" % (facts.st_size, LARGEST_READ))
            data = os.read(descriptor, facts.st_size + 1)
            while True:
                more = os.read(descriptor, _CHUNK) if len(data) != facts.st_size else b""
                if not more:
                    break
                data += more
        except OSError as error:
            raise Unreadable(name, error.strerror or "cannot be read") from None
        finally:
            os.close(descriptor)
        self._digests[name] = hashlib.sha256(data).hexdigest()
        return data

    def digest(self, name: str) -> str:
        known = self._digests.get(name)
        if known is None:
            descriptor = self._open(name)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise Unreadable(name, "not a regular file")
                running = hashlib.sha256()
                while True:
                    data = os.read(descriptor, _CHUNK)
                    if not data:
                        break
                    running.update(data)
            except OSError as error:
                raise Unreadable(name, error.strerror or "cannot be read") from None
            finally:
                os.close(descriptor)
            known = self._digests[name] = running.hexdigest()
        return known

    def known(self) -> Mapping[str, str]:
        return self._digests


class Overlay(Source):
    """A package with alterations: name -> new bytes, or None for removed; kinds for what is no file."""

    def __init__(
        self, base: Source, changes: Mapping[str, Optional[bytes]], kinds: Optional[Mapping[str, str]] = None
    ) -> None:
        self.base = base
        self.changes = dict(changes)
        self.kinds = dict(kinds or {})
        self.changed = frozenset(self.changes) | frozenset(self.kinds)
        self.moved = frozenset(
            name for name in self.changed if (self.changes.get(name) is not None) != (name in base.entries)
        ) | frozenset(self.kinds)
        if self.moved:
            entries = dict(base.entries)
            for name in self.moved:
                if name in self.kinds:
                    entries[name] = self.kinds[name]
                elif self.changes[name] is None:
                    entries.pop(name, None)
                else:
                    entries[name] = "file"
            self.entries: Mapping[str, str] = entries
        else:
            self.entries = base.entries

    def read(self, name: str) -> bytes:
        if self.entries.get(name) != "file":
            raise Unreadable(name, self.entries.get(name, "not there"))
        data = self.changes.get(name)
        return self.base.read(name) if data is None else data

    def digest(self, name: str) -> str:
        if self.entries.get(name) != "file":
            raise Unreadable(name, self.entries.get(name, "not there"))
        data = self.changes.get(name)
        return self.base.digest(name) if data is None else hashlib.sha256(data).hexdigest()

    def known(self) -> Mapping[str, str]:
        known = dict(self.base.known())
        for name in self.changed:
            known.pop(name, None)
            if self.entries.get(name) == "file":
                known[name] = self.digest(name)
        return known


class Memory(Source):
    """A package held in memory: what tests and tools build."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.entries: Dict[str, str] = dict.fromkeys(self.files, "file")
        self._digests: Dict[str, str] = {}

    def read(self, name: str) -> bytes:
        self.digest(name)
        return self.files[name]

    def digest(self, name: str) -> str:
        if name not in self.files:
            raise Unreadable(name, "not there")
        if name not in self._digests:
            self._digests[name] = hashlib.sha256(self.files[name]).hexdigest()
        return self._digests[name]

    def known(self) -> Mapping[str, str]:
        return self._digests


class Names:
    """The sorted names of a package, cut by folder."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._sorted = sorted(entries)
        self._folders: Dict[str, List[str]] = {}

    def below(self, folder: str) -> List[str]:
        """Names below a folder; none when it is not there, all when it is ``."""
        if not folder:
            return self._sorted
        return self._sorted[bisect_left(self._sorted, folder + "/") : bisect_left(self._sorted, folder + "0")]

    def folders(self, parent: str) -> List[str]:
        """The folders right below one, in order."""
        if parent not in self._folders:
            cut = len(parent) + 1
            inner = {name[cut:].split("/", 1)[0] for name in self.below(parent) if name.find("/", cut) > 0}
            self._folders[parent] = sorted(parent + "/" + name for name in inner)
        return self._folders[parent]


class Recall:
    """What was worked out from bytes, by their SHA-256, kept while one package is judged again and again.

    Only what follows from the bytes alone is kept, so an altered file can never be answered from memory.
    """

    MOST = 40000

    def __init__(self) -> None:
        self.documents: Dict[Tuple[str, int], Any] = {}
        self.answers: Dict[Tuple[Any, ...], Any] = {}
        self.sizes: Dict[str, int] = {}
        self._names: Dict[int, Tuple[Mapping[str, str], Names]] = {}

    def names(self, entries: Mapping[str, str]) -> "Names":
        """The names of a listing, sorted once for as long as the listing is the same object."""
        held = self._names.get(id(entries))
        if held is None or held[0] is not entries:
            held = (entries, Names(entries))
            if len(self._names) < 2:
                self._names[id(entries)] = held
        return held[1]


def _bytes_of(source: Source, name: str) -> Optional[bytes]:
    try:
        return source.read(name) if source.entries.get(name) == "file" else None
    except Unreadable:
        return None


class View:
    """What one group of checks sees of a package, and what it asked for."""

    def __init__(self, source: Source, names: Names, recall: Optional[Recall] = None) -> None:
        self.recall = recall
        self._source = source
        self._names = names
        self.reads: Set[str] = set()
        self.listed: Set[str] = set()
        self._derived: List[Tuple[str, Callable[[Optional[bytes]], Any], Any]] = []

    def kind(self, name: str) -> Optional[str]:
        """The kind of entry, None when nothing is there."""
        self.reads.add(name)
        return self._source.entries.get(name)

    def has(self, name: str) -> bool:
        """Whether the name is a regular file."""
        self.reads.add(name)
        return self._source.entries.get(name) == "file"

    def read(self, name: str) -> bytes:
        """Bytes of a file. Raises Unreadable."""
        self.reads.add(name)
        return self._source.read(name)

    def digest(self, name: str) -> str:
        """SHA-256 of a file as hex. Raises Unreadable."""
        self.reads.add(name)
        return self._source.digest(name)

    def kinds(self) -> Mapping[str, str]:
        """Name -> kind of everything that is there."""
        self.listed.add("")
        return self._source.entries

    def known(self) -> Mapping[str, str]:
        """Name -> SHA-256 of every file whose bytes anyone asked for so far."""
        return self._source.known()

    def folders(self, parent: str) -> List[str]:
        """The folders right below one, in order."""
        self.listed.add(parent)
        return self._names.folders(parent)

    def below(self, folder: str) -> List[str]:
        """Sorted names below a folder (`results/settings/x`), of any kind; `` is the whole package."""
        self.listed.add(folder)
        return self._names.below(folder)

    def derive(self, name: str, function: Callable[[Optional[bytes]], Any]) -> Any:
        """What a function makes of a file's bytes (None when there is no such file that can be read).

        Only what it made is depended on: an alteration of the file that leaves it the same touches nothing.
        """
        value = function(_bytes_of(self._source, name))
        self._derived.append((name, function, value))
        return value

    def touched(self, source: Source, changed: FrozenSet[str], moved: Iterable[str]) -> bool:
        """Whether an alteration, to `source`, reaches anything that was asked for."""
        if not self.reads.isdisjoint(changed):
            return True
        for name, function, value in self._derived:
            if name in changed and function(_bytes_of(source, name)) != value:
                return True
        return any(not folder or name.startswith(folder + "/") for name in moved for folder in self.listed)
