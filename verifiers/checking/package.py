"""A package as names and bytes: from a folder, with alterations in memory on top.

A `Folder` lists its tree once, follows no link and opens nothing but regular files, each at most once
for every time that its bytes are asked for. An `Overlay` is the same package with some names altered,
added, removed or turned into something that is no file; nothing of it is ever written. A `View` is what
one group of checks sees: it notes which names were read, so that after an alteration only the groups
that read an altered name have to be judged again.

What is kept for every file is its last component and one byte (checking.listing), and its digest where that is not
its name: memory hardly grows with the package.
"""

from __future__ import annotations

import hashlib
import operator
import os
import stat
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from checking.listing import FILE, Listing

_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_OPEN_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
_RELATIVE = os.open in os.supports_dir_fd
_INTO = hasattr(os, "readv")
_CHUNK = 1 << 18
LARGEST_READ = 64 << 20


class Unreadable(Exception):
    """A name cannot be read: it is not there, is no regular file, or the system refused."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("%s: %s" % (name, reason))
        self.name = name
        self.reason = reason


def _size(descriptor: int, name: str, most: Optional[int] = None) -> int:
    """The length of an open regular file. Raises Unreadable."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise Unreadable(name, "not a regular file")
    if most is not None and facts.st_size > most:
        raise Unreadable(name, "%d bytes, more than %d" % (facts.st_size, most))
    return facts.st_size


def _whole(descriptor: int, size: int) -> bytes:
    """All bytes of an open file that had this length a moment ago."""
    data = os.read(descriptor, size + 1)
    while len(data) != size:
        more = os.read(descriptor, _CHUNK)
        if not more:
            break
        data += more
    return data


def _fill(descriptor: int, buffer: memoryview) -> int:
    """Read as much as the buffer holds; how much it was."""
    if _INTO:
        return os.readv(descriptor, [buffer])
    data = os.read(descriptor, len(buffer))
    buffer[: len(data)] = data
    return len(data)


class Source:
    """Names, kinds and bytes of one package."""

    entries: Listing
    changed: FrozenSet[str] = frozenset()

    def __init__(self) -> None:
        self._derived: Dict[Tuple[Any, ...], Any] = {}

    def read(self, name: str) -> bytes:
        """The bytes of a regular file of at most 64 MiB. Raises Unreadable."""
        raise NotImplementedError

    def digest(self, name: str) -> str:
        """The SHA-256 of a regular file, as hex. Raises Unreadable."""
        raise NotImplementedError

    def take(self, name: str) -> Tuple[bytes, str]:
        """The bytes of a regular file, as `read` gives them, and their SHA-256. Raises Unreadable."""
        return self.read(name), self.digest(name)

    def known(self, name: str) -> Optional[str]:
        """The SHA-256 of a file whose bytes were asked for before; None of any other."""
        raise NotImplementedError

    def own(self, folder: str) -> Optional[bytearray]:
        """For every file right in a folder, in order, 1 where `known` gives its name; None where it knows no file."""
        start = folder + "/" if folder else ""
        names = self.entries.files(folder)
        known = [self.known(start + name) for name in names]
        return bytearray(map(operator.eq, known, names)) if any(known) else None

    def pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a regular file, as `read` gives them, in pieces. Raises Unreadable."""
        yield self.read(name)

    def derived(self, name: str, function: Callable[..., Any], words: Tuple[Any, ...]) -> Any:
        """function(*words, bytes of the file), where bytes are None when there is no such file that can be read."""
        key = (name, function, words)
        if key not in self._derived:
            self._derived[key] = function(*words, _bytes_of(self, name))
        return self._derived[key]


class Folder(Source):
    """A package in a folder. Raises OSError when the top folder cannot be listed."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = os.path.abspath(root)
        self.entries = Listing()
        self._own: Dict[str, bytearray] = {}  # folder where one was read -> 1 for its files whose digest is their name
        self._digests: Dict[str, str] = {}  # of all others that were read
        self._folder: Tuple[Optional[str], int] = (None, -1)
        self._buffer = memoryview(bytearray(_CHUNK))
        self._list(self.root, "")

    def _list(self, path: str, folder: str) -> bool:
        """List a folder and what is below it; whether anything lies in it."""
        names: List[str] = []
        inner: List[str] = []
        odd: Dict[str, str] = {}
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    names.append(entry.name)
                elif entry.is_symlink():
                    odd[entry.name] = "link"
                elif entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
                else:
                    odd[entry.name] = "special"
        start = folder + "/" if folder else ""
        odd.update((name, "folder") for name in inner if not self._list(os.path.join(path, name), start + name))
        if names or odd:
            self.entries.add(folder, names, odd)
        return bool(names or odd or inner)

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
        folder, _, last = name.rpartition("/")
        if last not in self.entries.places(folder):
            raise Unreadable(name, self.entries.find(name) or "not there")
        try:
            if _RELATIVE:
                descriptor = os.open(last, _OPEN, dir_fd=self._descend(folder))
            else:
                descriptor = os.open(os.path.join(self.root, *name.split("/")), _OPEN)
        except (OSError, ValueError) as error:
            raise Unreadable(name, getattr(error, "strerror", None) or "cannot be opened") from None
        return descriptor

    def read(self, name: str) -> bytes:
        return self.take(name)[0]

    def take(self, name: str) -> Tuple[bytes, str]:
        descriptor = self._open(name)
        try:
            data = _whole(descriptor, _size(descriptor, name, LARGEST_READ))
        except OSError as error:
            raise Unreadable(name, error.strerror or "cannot be read") from None
        finally:
            os.close(descriptor)
        return data, self._keep(name, hashlib.sha256(data).hexdigest())

    def _keep(self, name: str, digest: str) -> str:
        folder, _, last = name.rpartition("/")
        places = self.entries.places(folder)
        own = self._own.get(folder)
        if own is None:
            own = self._own[folder] = bytearray(len(places))
        if digest == last:
            own[places[last]] = 1
        else:
            self._digests[name] = digest
        return digest

    def pieces(self, name: str) -> Iterator[bytes]:
        descriptor = self._open(name)
        try:
            _size(descriptor, name, LARGEST_READ)
            while True:
                data = os.read(descriptor, _CHUNK)
                if not data:
                    break
                yield data
        except OSError as error:
            raise Unreadable(name, error.strerror or "cannot be read") from None
        finally:
            os.close(descriptor)

    def digest(self, name: str) -> str:
        known = self.known(name)
        if known is not None:
            return known
        descriptor = self._open(name)
        try:
            left = _size(descriptor, name)
            if left <= _CHUNK:  # to hash at once is half as dear as in pieces
                return self._keep(name, hashlib.sha256(_whole(descriptor, left)).hexdigest())
            running = hashlib.sha256()
            while left > 0:
                count = _fill(descriptor, self._buffer)
                if not count:
                    break
                running.update(self._buffer[:count])
                left -= count
        except OSError as error:
            raise Unreadable(name, error.strerror or "cannot be read") from None
        finally:
            os.close(descriptor)
        return self._keep(name, running.hexdigest())

    def known(self, name: str) -> Optional[str]:
        known = self._digests.get(name)
        if known is None:
            folder, _, last = name.rpartition("/")
            own = self._own.get(folder)
            if own is not None:
                place = self.entries.places(folder).get(last)
                if place is not None and own[place]:
                    return last
        return known

    def own(self, folder: str) -> Optional[bytearray]:
        return self._own.get(folder)


class Overlay(Source):
    """A package with alterations: name -> new bytes, or None for removed; kinds for what is no file."""

    def __init__(
        self, base: Source, changes: Mapping[str, Optional[bytes]], kinds: Optional[Mapping[str, str]] = None
    ) -> None:
        super().__init__()
        self.base = base
        self.changes = dict(changes)
        self.kinds = dict(kinds or {})
        self.changed = frozenset(self.changes) | frozenset(self.kinds)
        self.moved = frozenset(
            name for name in self.changed if (self.changes.get(name) is not None) != (name in base.entries)
        ) | frozenset(self.kinds)
        self.entries = base.entries
        if self.moved:
            self.entries = base.entries.altered({name: self._kind(name) for name in self.moved})

    def _kind(self, name: str) -> Optional[str]:
        return self.kinds.get(name) or (None if self.changes[name] is None else FILE)

    def read(self, name: str) -> bytes:
        kind = self.entries.find(name)
        if kind != FILE:
            raise Unreadable(name, kind or "not there")
        data = self.changes.get(name)
        return self.base.read(name) if data is None else data

    def digest(self, name: str) -> str:
        kind = self.entries.find(name)
        if kind != FILE:
            raise Unreadable(name, kind or "not there")
        data = self.changes.get(name)
        return self.base.digest(name) if data is None else hashlib.sha256(data).hexdigest()

    def known(self, name: str) -> Optional[str]:
        if name not in self.changed:
            return self.base.known(name)
        return self.digest(name) if self.entries.find(name) == FILE else None

    def derived(self, name: str, function: Callable[..., Any], words: Tuple[Any, ...]) -> Any:
        if name in self.changed:
            return super().derived(name, function, words)
        return self.base.derived(name, function, words)


class Memory(Source):
    """A package held in memory: what tests and tools build."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__()
        self.files = dict(files)
        self.entries = Listing.of((name, FILE) for name in self.files)
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

    def known(self, name: str) -> Optional[str]:
        return self._digests.get(name)


class Recall:
    """What was worked out from bytes, by their SHA-256, kept while one package is judged again and again.

    Only what follows from the bytes alone is kept, so an altered file can never be answered from memory.
    """

    MOST = 40000

    def __init__(self) -> None:
        self.documents: Dict[Tuple[str, Any], Any] = {}
        self.answers: Dict[Tuple[Any, ...], Any] = {}
        self.sizes: Dict[str, int] = {}
        self.sums: Mapping[str, str] = {}  # SHA256SUMS, read, of the package unaltered, which verified
        self.lines: FrozenSet[bytes] = frozenset()  # and its lines


def _bytes_of(source: Source, name: str) -> Optional[bytes]:
    try:
        return source.read(name) if source.entries.find(name) == FILE else None
    except Unreadable:
        return None


class View:
    """What one group of checks sees of a package, and (`noted`) what it asked for."""

    def __init__(self, source: Source, recall: Optional[Recall] = None, noted: bool = True) -> None:
        self.recall = recall
        self._source = source
        self._noted = noted
        self.reads: Set[str] = set()
        self.listed: Set[str] = set()
        self._derived: List[Tuple[str, Callable[..., Any], Tuple[Any, ...], Any]] = []

    def _note(self, name: str) -> None:
        if self._noted:
            self.reads.add(name)

    def kind(self, name: str) -> Optional[str]:
        """The kind of entry, None when nothing is there."""
        self._note(name)
        return self._source.entries.find(name)

    def has(self, name: str) -> bool:
        """Whether the name is a regular file."""
        self._note(name)
        return self._source.entries.find(name) == FILE

    def read(self, name: str) -> bytes:
        """Bytes of a file. Raises Unreadable."""
        self._note(name)
        return self._source.read(name)

    def take(self, name: str) -> Tuple[bytes, str]:
        """Bytes of a file and their SHA-256 as hex. Raises Unreadable."""
        self._note(name)
        return self._source.take(name)

    def digest(self, name: str) -> str:
        """SHA-256 of a file as hex. Raises Unreadable."""
        self._note(name)
        return self._source.digest(name)

    def pieces(self, name: str) -> Iterator[bytes]:
        """Bytes of a file, in pieces. Raises Unreadable."""
        self._note(name)
        return self._source.pieces(name)

    def listing(self) -> Listing:
        """Everything that is there."""
        self.listed.add("")
        return self._source.entries

    def altered(self) -> FrozenSet[str]:
        """The names that are altered in memory."""
        return self._source.changed

    def known(self, name: str) -> Optional[str]:
        """The SHA-256 of a file whose bytes anyone asked for so far; None of any other."""
        known = self._source.known(name)
        if known is not None:
            self._note(name)
        return known

    def own(self, folder: str) -> Optional[bytearray]:
        """For every file right in a folder, in order, 1 where its SHA-256 is known and its name; None where none is known."""
        own = self._source.own(folder)
        if own is not None and self._noted:
            self.reads.update([folder + "/" + name for name in self._source.entries.files(folder)])
        return own

    def folders(self, parent: str) -> List[str]:
        """The folders right below one, in order."""
        self.listed.add(parent)
        return self._source.entries.folders(parent)

    def right_in(self, folder: str) -> List[str]:
        """Sorted names right in a folder, of any kind but folders in which something lies."""
        self.listed.add(folder)
        return self._source.entries.right_in(folder)

    def below(self, folder: str, hashed: str = "") -> List[str]:
        """Sorted names below a folder (`results/settings/x`), of any kind; `` is the whole package.

        Without the files right in the folder `hashed` below it, if the name of each is a hash.
        """
        self.listed.add(folder)
        return self._source.entries.below(folder, hashed)

    def inside(self, folder: str) -> List[str]:
        """What `below` gives without the folder's own name before each, in any order."""
        self.listed.add(folder)
        return self._source.entries.inside(folder)

    def odd(self, folder: str) -> List[str]:
        """The names below a folder that are no regular files."""
        self.listed.add(folder)
        return [name for name in self._source.entries.odd() if name.startswith(folder + "/")]

    def derive(self, name: str, function: Callable[..., Any], *words: Any) -> Any:
        """What function(*words, bytes) makes of a file (None for bytes when there is no such file that can be read).

        Only what it made is depended on: an alteration of the file that leaves it the same touches nothing.
        """
        value = self._source.derived(name, function, words)
        if self._noted:
            self._derived.append((name, function, words, value))
        return value

    def touched(self, source: Source, changed: FrozenSet[str], moved: Iterable[str]) -> bool:
        """Whether an alteration, to `source`, reaches anything that was asked for."""
        if not self.reads.isdisjoint(changed):
            return True
        for name, function, words, value in self._derived:
            if name in changed and source.derived(name, function, words) != value:
                return True
        return any(not folder or name.startswith(folder + "/") for name in moved for folder in self.listed)
