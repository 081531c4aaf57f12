"""Makes the archives of the suite: `python3 tests/conformance/make.py FOLDER`.

A case is text: how to damage the valid package, and what a reader must say.

    [name]
    say: code ...              the codes that must be printed, exactly; `accepted` for none
    at: words                  what the place of the finding must contain (optional)
    each: x = LITERAL, ...     makes one case of every value, which {x} gives in the other lines (optional)
    do: operation(arguments)   a method of `Damage`, called in order

Standard library only, and no line of the reader that it tests.
"""

import ast
import gzip
import hashlib
import re
import struct
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import base

CASES = Path(__file__).resolve().parent / "cases"
GZIP = bytes.fromhex("1f8b08000000000000ff")
FIELDS = {
    "name": (0, 100), "mode": (100, 8), "uid": (108, 8), "gid": (116, 8), "size": (124, 12), "mtime": (136, 12),
    "type": (156, 1), "linkname": (157, 100), "magic": (257, 8), "uname": (265, 32), "gname": (297, 32),
    "devmajor": (329, 8), "devminor": (337, 8), "prefix": (345, 155), "tail": (500, 12),
}  # fmt: skip


@dataclass
class Entry:
    name: bytes
    header: bytearray
    data: bytes
    pad: bytes | None = None
    exact: bool = False


def header(name: bytes, size: int) -> bytearray:
    """A canonical ustar header, written once more than in the package that is tested."""
    block = bytearray(512)
    prefix, short = b"", name
    if len(name) > 100 and b"/" in name[:156]:
        cut = name.rindex(b"/", 0, 156)
        prefix, short = name[:cut], name[cut + 1 :]
    executable = name.count(b"/") == 1 and name.endswith(b".py")
    values = (short, b"%07o" % (0o755 if executable else 0o644), b"%07o" % 0, b"%07o" % 0, b"%011o" % size,
              b"%011o" % 315532800, b"", b"0", b"", b"ustar\x0000", b"", b"", b"%07o" % 0, b"%07o" % 0, prefix)  # fmt: skip
    struct.pack_into("100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s", block, 0, *values)
    reseal(block)
    return block


def reseal(block: bytearray) -> None:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)


@dataclass
class Damage:
    """A valid package, and the operations that spoil it."""

    files: dict[str, bytes] = field(default_factory=base.full)
    extra: list[tuple[str, tuple, dict]] = field(default_factory=list)
    top: str = base.TOP

    def __post_init__(self) -> None:
        self.entries: list[Entry] = []
        self.end = bytes(1024)
        self.stream: bytes | None = None
        self.packed: bytes | None = None
        self.detached: bytes | None = None
        self.tar_detached: bytes | None = None
        self._lay()

    def _lay(self) -> None:
        rows = sorted((f"{self.top}/{name}".encode(), data) for name, data in self.files.items())
        self.entries = [Entry(name, header(name, len(data)), data) for name, data in rows]

    def _find(self, name: bytes) -> Entry:
        return next(entry for entry in self.entries if entry.name == name)

    # Files: the tar is right, its content is not.
    def file(self, name, data, sealed=True):
        """Write or replace a file; a sealed package has a right SHA256SUMS."""
        self.files[name] = data
        if sealed:
            self.files = base.seal(self.files)
        self._lay()

    def edit(self, name, old, new, sealed=True):
        assert old in self.files[name], f"{old!r} is not in {name}"
        self.file(name, self.files[name].replace(old, new, 1), sealed)

    def remove(self, name, sealed=False):
        del self.files[name]
        if sealed:
            self.files = base.seal(self.files)
        self._lay()

    def sums(self, pattern, new, count=1):
        """Replace a pattern in SHA256SUMS."""
        changed, times = re.subn(pattern, new, self.files["SHA256SUMS"], count=count)
        assert times, f"{pattern!r} is not in SHA256SUMS"
        self.file("SHA256SUMS", changed, sealed=False)

    def rename_top(self, top):
        self.top = top
        self._lay()

    # Members: header and data of one entry.
    def add(self, member, data=b"", last=False, **fields):
        """Add a member in sorted place, or last."""
        entry = Entry(member, header(member[:255], len(data)), data)
        place = sum(one.name < member for one in self.entries) if not last else len(self.entries)
        self.entries.insert(place, entry)
        if fields:
            self._fields(entry, fields)

    def _fields(self, entry, fields):
        for key, value in fields.items():
            start, width = FIELDS[key]
            entry.header[start : start + width] = value.ljust(width, b"\0")
        reseal(entry.header)

    def set(self, member, **fields):
        """Change header fields of a member and make its checksum right again."""
        self._fields(self._find(member), fields)

    def odd_field(self, name, which):
        """One field that differs from what the writer writes, in a way that others accept."""
        key, _, value = which.partition("=")
        values = {"mode": b"%07o" % int(value or "0", 8), "uid": b"%07o" % 262143, "gid": b"%07o" % 1,
                  "mtime": b"%011o" % 1790000000, "uname": b"root", "gname": b"root", "linkname": b"x",
                  "devmajor": b"0000001", "devminor": b"       ", "tail": b"x", "magic": b"ustar\x0001"}  # fmt: skip
        self.set(name, **{key.removesuffix("-version"): values[key.removesuffix("-version")]})

    def loose_checksum(self, name):
        """The right checksum in another form: blanks instead of zeros."""
        block = self._find(name).header
        block[148:156] = b"%6o\0 " % int(block[148:154], 8)

    def poke(self, name, at, data):
        """Change header bytes and leave the checksum as it was."""
        block = self._find(name).header
        block[at : at + len(data)] = data

    def flip(self, name, at, bit):
        self._find(name).header[at] ^= 1 << bit

    def pad(self, name, data):
        self._find(name).pad = data

    def move_last(self, name):
        entry = self._find(name)
        self.entries.remove(entry)
        self.entries.append(entry)

    def drop_data(self, name):
        """Keep the header, leave out the content."""
        entry = self._find(name)
        entry.data, entry.pad = b"", b""

    def pax(self, name, records, kind=b"x"):
        """An extension header in front of a member."""
        self._before(name, Entry(b"pax", self._extension(b"demo/PaxHeaders/x", len(records), kind), records))

    def gnu(self, name, data, kind=b"L", size=None):
        block = self._extension(b"././@LongLink", len(data) if size is None else size, kind)
        block[257:265] = b"ustar  \0"
        reseal(block)
        self._before(name, Entry(b"gnu", block, data, b"" if size is not None else None))

    def _extension(self, name, size, kind):
        block = header(name, size)
        block[156:157] = kind
        reseal(block)
        return block

    def _before(self, name, entry):
        self.entries.insert(self.entries.index(self._find(name)), entry)

    def many(self, count):
        """Empty members after all others."""
        for number in range(count):
            name = b"demo/zz/%07d" % number
            self.entries.append(Entry(name, header(name, 0), b""))

    def nest(self, depth):
        self.add(b"demo/" + b"d/" * depth + b"f")

    def only(self, *names):
        self.entries = [self._find(name) for name in names]

    # Stream and frame.
    def finish(self, end=1024, after=b"", cut=0):
        """What ends the tar stream, and how many bytes are then cut off."""
        self.end = bytes(end) + after
        self.stream = self.tar()[: -cut or None]

    def tar(self) -> bytes:
        if self.stream is not None:
            return self.stream
        parts = []
        for entry in self.entries:
            pad = bytes(-len(entry.data) % 512) if entry.pad is None else entry.pad
            parts += [bytes(entry.header), entry.data, pad]
        return b"".join([*parts, self.end])

    def blow(self, size):
        """A stream of zeros that deflates far better than any package."""
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = bytes(1 << 20)
        parts = [packer.compress(bytes(header(b"demo/a", size)))]
        parts += [packer.compress(block) for _ in range(size >> 20)]
        self.packed = GZIP + b"".join(parts) + packer.flush() + bytes(8)

    def frame(self, head=GZIP, optional=b"", crc=0, length=0, after=b"", cut=0):
        """Write the gzip member with another header, trailer, or with bytes behind it."""
        self.packed = self.pack(self.tar(), head, optional, crc, length)[: -cut or None] + after

    def two(self):
        """Two gzip members, each a tar."""
        self.packed = self.pack(self.tar()) * 2

    def cut(self, keep):
        self.packed = self.pack(self.tar())[:keep]

    def spoil(self, at, data):
        """Change bytes of the file, counted from its start or, when negative, from its end."""
        packed = bytearray(self.pack(self.tar()))
        at = at % len(packed)
        packed[at : at + len(data)] = data
        self.packed = bytes(packed)

    def recompress(self, level):
        """The same stream as Python's gzip writes it, without name and time."""
        published = self.pack(self.tar())
        self.detached = self._line(published, "demo-evaluation.tgz")
        self.packed = gzip.compress(self.tar(), level, mtime=0)

    def outer(self, data):
        self.packed = data

    def bare(self):
        self.packed = self.tar()

    def digest(self, data):
        """Replace the detached file."""
        self.detached = data

    def tar_digest(self, data):
        self.tar_detached = data

    def digest_line(self, before=b"", name=b"demo-evaluation.tgz", between=b"  ", after=b"\n", upper=False):
        digest = hashlib.sha256(self.archive()).hexdigest()
        self.detached = before + (digest.upper() if upper else digest).encode() + between + name + after

    @staticmethod
    def pack(stream, head=GZIP, optional=b"", crc=0, length=0) -> bytes:
        level = (
            1 if len(stream) < 4 << 20 else 6
        )  # four hundred small packages, or one that is to be small where it lies
        packer = zlib.compressobj(level, zlib.DEFLATED, -15)
        trailer = struct.pack("<II", zlib.crc32(stream) ^ crc, (len(stream) + length) & 0xFFFFFFFF)
        return head + optional + packer.compress(stream) + packer.flush() + trailer

    @staticmethod
    def _line(data: bytes, name: str) -> bytes:
        return f"{hashlib.sha256(data).hexdigest()}  {name}\n".encode()

    def archive(self) -> bytes:
        return self.pack(self.tar()) if self.packed is None else self.packed

    def write(self, folder: Path) -> Path:
        """The archive and its detached digests, which are right unless the case is about them."""
        folder.mkdir(parents=True)
        path = folder / "demo-evaluation.tgz"
        data = self.archive()
        path.write_bytes(data)
        detached = self._line(data, path.name) if self.detached is None else self.detached
        (folder / "demo-evaluation.tgz.sha256").write_bytes(detached)
        stream = self._line(self.tar(), "demo-evaluation.tar") if self.tar_detached is None else self.tar_detached
        (folder / "demo-evaluation.tar.sha256").write_bytes(stream)
        return path


@dataclass(frozen=True)
class Case:
    name: str
    say: frozenset[str]
    at: str
    operations: tuple[str, ...]
    group: str

    def build(self) -> Damage:
        damage = Damage()
        for line in self.operations:
            call = ast.parse(line, mode="eval").body
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Name)
            arguments = [_value(argument) for argument in call.args]
            getattr(damage, call.func.id)(*arguments, **{one.arg: _value(one.value) for one in call.keywords})
        return damage


def _value(node):
    """A literal, also one made with `*` and `+` of literals."""
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        return left * right if isinstance(node.op, ast.Mult) else left + right
    return ast.literal_eval(node)


def read_cases(folder: Path = CASES) -> list[Case]:
    """Every case of the text files, in order."""
    found = []
    for path in sorted(folder.glob("*.txt")):
        for block in re.split(r"\n(?=\[)", path.read_text(encoding="utf-8")):
            lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
            if not lines:
                continue
            name = lines[0].strip("[]")
            rows = [line.split(": ", 1) for line in lines[1:]]
            each = [value for key, value in rows if key == "each"]
            for number, value in enumerate(_elements(each[0]) if each else [""]):
                filled = [(key, text.replace("{x}", value)) for key, text in rows]
                operations = tuple(text for key, text in filled if key == "do")
                say = frozenset(" ".join(text for key, text in filled if key == "say").split()) - {"accepted"}
                at = "".join(text for key, text in filled if key == "at")
                found.append(Case(f"{name}-{number}" if each else name, say, at, operations, path.stem))
    return found


def _elements(text: str) -> list[str]:
    tree = ast.parse(f"[{text.removeprefix('x = ')}]", mode="eval").body
    assert isinstance(tree, ast.List)
    return [ast.unparse(element) for element in tree.elts]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python3 make.py FOLDER", file=sys.stderr)
        return 2
    for case in read_cases():
        case.build().write(Path(arguments[0]) / case.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
