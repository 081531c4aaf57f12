"""What a package was found to hold: name -> digest, at 32 bytes for each file that is named after its digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_HEX = 64


class Members(Mapping[str, str]):
    """Names below the top folder and their digests in lower-case hex, in the order in which they were added.

    Nearly all files of a package are bodies, `.../bodies/<SHA-256>`: of a run of them in one folder only the folder and
    the digests are held. So ten times the bodies take a few megabytes and not a hundred.
    """

    def __init__(self) -> None:
        # A name with its digest, or a folder (it ends with a slash, which no name does) with the digests of a run.
        self._held: dict[str, str | bytearray] = {}
        self._folder = ""
        self._run = bytearray()
        self._count = 0

    def add(self, name: str, digest: str) -> None:
        """Take one more file; no name comes twice."""
        self._count += 1
        if not name.endswith(digest) or name[-_HEX - 1 : -_HEX] != "/":
            self._held[name] = digest
            self._folder = ""
            return
        self._enter(name[:-_HEX])
        self._run += bytes.fromhex(digest)

    def extend(self, folder: str, digests: bytes) -> None:
        """Take more files of `folder` (it ends with a slash), each named after its digest: 32 bytes for each."""
        self._count += len(digests) // 32
        self._enter(folder)
        self._run += digests

    def _enter(self, folder: str) -> None:
        if folder != self._folder:
            self._folder, self._run = folder, bytearray()
            self._held[self._free(folder)] = self._run

    def _free(self, folder: str) -> str:
        """The key for a run of this folder: another run of it is told apart by one more slash."""
        while folder in self._held:
            folder += "/"
        return folder

    def rows(self, unless: str = "\0") -> Iterator[tuple[str, str]]:
        """Yield (name, digest) in order, but for files below `unless` that are named after their digest."""
        for name, held in self._held.items():
            if isinstance(held, str):
                yield name, held
                continue
            if name.startswith(unless):
                continue
            folder = f"{name.rstrip('/')}/"
            for at in range(0, len(held), 32):
                digest = held[at : at + 32].hex()
                yield folder + digest, digest

    def lines(self, without: str) -> Iterator[str]:
        """Yield the lines `<digest>  <name>` in order, one or many at a time, but for the file `without`."""
        for name, held in self._held.items():
            if isinstance(held, str):
                if name != without:
                    yield f"{held}  {name}\n"
                continue
            folder, digests = f"  {name.rstrip('/')}/", held.hex()
            parts = [digests[at : at + _HEX] for at in range(0, len(digests), _HEX)]
            yield "".join([f"{part}{folder}{part}\n" for part in parts])

    def __getitem__(self, name: str) -> str:
        held = self._held.get(name)
        if isinstance(held, str):
            return held
        folder, slash, digest = name.rpartition("/")
        key = folder + slash
        while slash and len(digest) == _HEX and isinstance(run := self._held.get(key), bytearray):
            if _holds(run, digest):
                return digest
            key += "/"
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.rows())

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return self._held == other._held if isinstance(other, Members) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]


def _holds(run: bytearray, digest: str) -> bool:
    try:
        wanted = bytes.fromhex(digest)
    except ValueError:
        return False
    at = run.find(wanted)
    while at % 32 and at > 0:
        at = run.find(wanted, at + 1)
    return at >= 0 and wanted.hex() == digest
