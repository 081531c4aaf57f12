"""The names of a package and what each is, kept folder by folder: some 70 bytes for a stored body.

Kinds of entry: `file`, `link`, `special` (FIFO, device, socket), `folder` (only empty ones are listed).
Names use `/`, are relative to the top folder, and are kept as text (undecodable bytes as surrogates).
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

FILE = "file"
_AT_HAND = 8
_HEX = b"0123456789abcdef"


@lru_cache(maxsize=None)
def one_of_hashes(joined: str) -> str:
    """The first of some components, each ended by `/`, when all are SHA-256s as hex, as most are; else nothing.

    Where a rule asks of a name no more than whether it is a hash, what it says of the first it says of all.
    """
    count, rest = divmod(len(joined), 65)
    if rest or joined[64::65] != "/" * count or not joined.isascii():
        return ""
    return joined[:64] if joined.encode().translate(None, _HEX) == b"/" * count else ""


class Run(NamedTuple):
    """Files right in one folder that follow one another in the order of all names, by their last components.

    `hashed` says that these are all the files of the folder and that the name of each is a SHA-256.
    """

    folder: str
    names: List[str]
    hashed: bool


class Listing(Mapping[str, str]):
    """Name -> kind. Iterates folder by folder, in order within each."""

    def __init__(self) -> None:
        self._files: Dict[str, str] = {}  # folder -> last components of its files, in order, each ended by `/`
        self._odd: Dict[str, str] = {}  # name -> kind of what is no file
        self._count = 0
        self._sorted: List[str] = []  # folders in order
        self._inner: Dict[str, List[str]] = {}
        self._at_hand: Dict[str, Dict[str, int]] = {}

    @classmethod
    def of(cls, entries: Iterable[Tuple[str, str]]) -> "Listing":
        """The listing of (name, kind) in any order."""
        made, folders = cls(), {}  # type: Listing, Dict[str, Dict[str, str]]
        for name, kind in entries:
            folder, _, last = name.rpartition("/")
            folders.setdefault(folder, {})[last] = kind
        for folder, found in folders.items():
            odd = {last: kind for last, kind in found.items() if kind != FILE}
            made.add(folder, [last for last in found if last not in odd], odd)
        return made

    def add(self, folder: str, names: List[str], odd: Mapping[str, str]) -> None:
        """Add what lies right in a folder, not listed yet: its files, and the kinds of all else, by last component."""
        start = folder + "/" if folder else ""
        self._files[folder] = "".join([name + "/" for name in sorted(names)])
        self._odd.update((start + last, kind) for last, kind in odd.items())
        self._count += len(names) + len(odd)

    def altered(self, kinds: Mapping[str, Optional[str]]) -> "Listing":
        """The listing with some names of another kind, added, or (None) gone."""
        made = Listing()
        made._files, made._odd, made._count = dict(self._files), dict(self._odd), self._count
        touched: Dict[str, Dict[str, Optional[str]]] = {}
        for name, kind in kinds.items():
            folder, _, last = name.rpartition("/")
            touched.setdefault(folder, {})[last] = kind
            made._count += (kind is not None) - (name in self)
            made._odd.pop(name, None)
            if kind not in (None, FILE):
                made._odd[name] = kind or FILE
        for folder, changes in touched.items():
            names = set(self.files(folder)).difference(changes)
            names.update(last for last, kind in changes.items() if kind == FILE)
            made._files[folder] = "".join([name + "/" for name in sorted(names)])
            if not names and not any(name.rpartition("/")[0] == folder for name in made._odd):
                del made._files[folder]
        return made

    def joined(self, folder: str) -> str:
        """The last components of the files right in a folder, in order, each ended by `/`."""
        return self._files.get(folder, "")

    def files(self, folder: str) -> List[str]:
        """The last components of the files right in a folder, in order."""
        return self.joined(folder).split("/")[:-1]

    def places(self, folder: str) -> Mapping[str, int]:
        """The last component of every file right in a folder, and its place in their order."""
        known = self._at_hand.get(folder)
        if known is None:
            if len(self._at_hand) >= _AT_HAND:
                del self._at_hand[next(iter(self._at_hand))]
            known = self._at_hand[folder] = {name: place for place, name in enumerate(self.files(folder))}
        return known

    def find(self, name: str) -> Optional[str]:
        """The kind of an entry, None when there is no such."""
        folder, _, last = name.rpartition("/")
        return FILE if last in self.places(folder) else self._odd.get(name)

    def absent(self, names: Iterable[str]) -> List[str]:
        """Those of the names that no entry has; quick where names of one folder follow one another."""
        found: List[str] = []
        places: Mapping[str, int] = {}
        before: Optional[str] = None
        for name in names:
            folder, _, last = name.rpartition("/")
            if folder != before:
                before, places = folder, self.places(folder)
            if last not in places and name not in self._odd:
                found.append(name)
        return found

    def odd(self) -> Mapping[str, str]:
        """Name -> kind of everything that is no file."""
        return self._odd

    def all_folders(self) -> List[str]:
        """Every folder in which something lies, in order; the top is ``."""
        if not self._sorted:
            self._sorted = sorted(self._files)
        return self._sorted

    def _within(self, folder: str) -> List[str]:
        """The folders below one, in order; all but the top below ``."""
        found = self.all_folders()
        if not folder:
            return found[1:] if found[:1] == [""] else found
        return found[bisect_left(found, folder + "/") : bisect_left(found, folder + "0")]

    def below(self, folder: str, hashed: str = "") -> List[str]:
        """Sorted names below a folder, of any kind; none when it is not there, all when it is ``.

        Without the files right in the folder `hashed` below it, if the name of each is a hash.
        """
        start = folder + "/" if folder else ""
        names = [start + last for last in self.files(folder)]
        for inner in self._within(folder):
            if inner != hashed or not one_of_hashes(self.joined(inner)):
                names += [inner + "/" + last for last in self.files(inner)]
        names += [name for name in self._odd if name.startswith(start)]
        names.sort()
        return names

    def inside(self, folder: str) -> List[str]:
        """What `below` gives without the folder's own name before each, in any order."""
        cut = len(folder) + 1 if folder else 0
        names = list(self.files(folder))
        for inner in self._within(folder):
            names += [inner[cut:] + "/" + last for last in self.files(inner)]
        names += [name[cut:] for name in self._odd if name.startswith(folder + "/" if folder else "")]
        return names

    def runs(self, folder: str = "") -> Iterator[Run]:
        """All files below a folder in the order of their whole names."""
        names, at = self.files(folder), 0
        inner = sorted([deeper + "/" for deeper in self.folders(folder)])
        if names and not inner:
            yield Run(folder, names, bool(one_of_hashes(self.joined(folder))))
        for deeper in inner:
            before = bisect_left(names, deeper[len(folder) + 1 if folder else 0 :])
            if before > at:
                yield Run(folder, names[at:before], False)
            yield from self.runs(deeper[:-1])
            at = before
        if inner and names[at:]:
            yield Run(folder, names[at:], False)

    def right_in(self, folder: str) -> List[str]:
        """Sorted names right in a folder, of any kind but folders in which something lies."""
        start = folder + "/" if folder else ""
        odd = [name for name in self._odd if name.rpartition("/")[0] == folder]
        return sorted([start + last for last in self.files(folder)] + odd)

    def folders(self, parent: str) -> List[str]:
        """The folders right below one, in order."""
        if parent not in self._inner:
            start = len(parent) + 1 if parent else 0
            found = {
                inner[: inner.find("/", start)] if "/" in inner[start:] else inner for inner in self._within(parent)
            }
            self._inner[parent] = sorted(found)
        return self._inner[parent]

    def __getitem__(self, name: str) -> str:
        kind = self.find(name)
        if kind is None:
            raise KeyError(name)
        return kind

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for folder, names in self._files.items():
            start = folder + "/" if folder else ""
            for last in names.split("/")[:-1]:
                yield start + last
        yield from self._odd
