"""What a package archive may hold: names, headers, limits. Shared by writer, reader and unpacker.

Names are paths below the top folder, or with it; both are bytes in a restricted ASCII alphabet, so Unicode
normalisation cannot make two of them one. POSIX.1-1988 ustar is the header form; nothing needs an extension header.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

BLOCK = 512
MTIME = 315532800
"""1980-01-01T00:00:00Z, the earliest time that no tar or zip warns about."""
GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
"""Deflate, no flags, no time, no extra flags, unknown system."""
END = bytes(2 * BLOCK)
SUMS_NAME = "SHA256SUMS"


class Limits(NamedTuple):
    """What a reader will take before it stops; the writer refuses what a reader would."""

    members: int = 262_144
    free_members: int = 32_768
    bytes_a_member: int = 64
    member_bytes: int = 1 << 30
    total_bytes: int = 16 << 30
    ratio: int = 200
    ratio_slack: int = 1 << 20
    depth: int = 8
    component: int = 100
    json_bytes: int = 4 << 20

    def members_in(self, compressed: int) -> int:
        """Return the most members that a .tgz of so many bytes may have: what holds nothing is not counted for long."""
        return min(self.members, self.free_members + compressed // self.bytes_a_member)

    def inflated(self, compressed: int) -> int:
        """Return the most bytes that `compressed` bytes may inflate to."""
        return min(self.total_bytes, self.ratio * compressed + self.ratio_slack)


LIMITS = Limits()


class Refusal(Exception):
    """One reason why the input is not evidence: a stable code, the place, what was found, what was expected.

    `place` is a path, a path with a line or a JSON pointer, or the name of a stream with a byte offset.
    """

    def __init__(self, code: str, place: str, found: str, expected: str) -> None:
        super().__init__(f"{code} {place}: {found}, expected {expected}")
        self.code = code
        self.place = place
        self.found = found
        self.expected = expected


_COMPONENT = re.compile(rb"[A-Za-z0-9_+][A-Za-z0-9._+-]*(?<!\.)")
_DEVICE = re.compile(rb"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")
_DEVICE_START = frozenset(b"cpanlCPANL")


def component_fits(name: bytes) -> bool:
    """Tell whether one path component is inside the alphabet, the length limit and the device-name rule."""
    return (
        len(name) <= LIMITS.component
        and _COMPONENT.fullmatch(name) is not None
        and (name[0] not in _DEVICE_START or _DEVICE.match(name) is None)
    )


def name_fault(name: bytes) -> tuple[str, str] | None:
    """Say what is wrong with a whole member name: (code, what was found), or None when it fits the grammar."""
    shown = show(name)
    if not name:
        return "path-component", "an empty name"
    if name[:1] == b"/":
        return "path-absolute", f"absolute name {shown}"
    parts = name.split(b"/")
    if b".." in parts:
        return "path-parent", f"parent component in {shown}"
    if len(parts) > LIMITS.depth:
        return "path-depth", f"{len(parts)} components"
    for part in parts:
        if part in (b"", b"."):
            return "path-component", f"empty or dot component in {shown}"
        if len(part) > LIMITS.component:
            return "path-length", f"a component of {len(part)} bytes in {shown}"
        if not component_fits(part):
            return "path-character", f"component {show(part)}"
    if split(name) is None:
        return "path-length", f"a name of {len(name)} bytes that ustar cannot split"
    return None


NAME_RULE = "a relative path of plain ASCII components"


def show(name: bytes) -> str:
    """Return a name as printable ASCII, cut at 80 characters, for a message."""
    text = repr(name)[1:]
    return text if len(text) <= 80 else f"{text[:80]}..."


def split(name: bytes) -> tuple[bytes, bytes] | None:
    """Split a path into ustar's (prefix, name), or return None when it does not fit.

    The split is at the last slash that leaves at most 155 bytes before it and 100 after it.
    """
    if len(name) <= 100:
        return b"", name
    cut = name.rfind(b"/", 0, 156)
    if cut <= 0 or len(name) - cut - 1 > 100:
        return None
    return name[:cut], name[cut + 1 :]


def mode_of(name: bytes) -> int:
    """Return the mode of a member by its whole name: scripts that lie directly in the top folder can be run."""
    return 0o755 if name.count(b"/") == 1 and name.endswith(b".py") else 0o644


# Everything between two variable fields of a header, by mode: name | mode uid gid | size | mtime | checksum | rest.
_OWNER = {mode: b"%07o\0%07o\0%07o\0" % (mode, 0, 0) for mode in (0o644, 0o755)}
_TIME = b"\0%011o\0" % MTIME
_TYPE_TO_DEVICES = b"0" + bytes(100) + b"ustar\x0000" + bytes(64) + b"0000000\x000000000\0"
_FIXED_SUM = {mode: sum(_OWNER[mode]) + sum(_TIME) + 8 * 32 + sum(_TYPE_TO_DEVICES) for mode in _OWNER}


def header(prefix: bytes, name: bytes, size: int, mode: int) -> bytes:
    """Return the one 512-byte header that a member with these facts has (`split` gives prefix and name)."""
    digits = b"%011o" % size
    ending, ending_sum = _ending(prefix)
    checksum = _FIXED_SUM[mode] + sum(name) + ending_sum + sum(digits)
    return b"%b%b%b%b%06o\0 %b%b" % (
        name.ljust(100, b"\0"),
        _OWNER[mode],
        digits,
        _TIME,
        checksum,
        _TYPE_TO_DEVICES,
        ending,
    )


@functools.lru_cache(64)
def _ending(prefix: bytes) -> tuple[bytes, int]:
    """The prefix field with what follows it, and the sum of its bytes: a folder's files share it."""
    return prefix.ljust(167, b"\0"), sum(prefix)


def padding(size: int) -> int:
    """Return how many zero bytes follow `size` bytes of content up to the next block."""
    return -size % BLOCK


class _Folder:
    def __init__(self, path: bytes) -> None:
        self.path = path
        self.prefix = path + b"/"
        self.children: dict[bytes, tuple[bytes, bool]] = {}


class Names:
    """Takes whole member names one by one and refuses the first that cannot stand beside those before it.

    Sorted bytes keep everything below one folder together, so only the folders on the way to the last name are
    held: children of each, by their case-folded name. `place` names the spot for the message.
    """

    def __init__(self, most: int = LIMITS.members) -> None:
        self._most = most
        self._head = b""
        self._prefix = b""  # the head with its slash
        self._tail = b""
        self._open: list[_Folder] = []
        self.count = 0

    @property
    def _last(self) -> bytes:
        return self._prefix + self._tail

    def add(self, name: bytes, place: str = "") -> None:
        """Take the next name; raise `Refusal` when it breaks a rule on names."""
        head, _, tail = name.rpartition(b"/")
        last = self._last
        same = head and head == self._head and component_fits(tail)
        if not (same and (len(name) <= 100 or split(name) is not None)):
            self._enter(name, head, place)
        if name <= last:
            if name == last:
                raise Refusal("path-duplicate", place, f"{show(name)} a second time", "each name once")
            raise Refusal("order", place, f"{show(name)} after {show(last)}", "names sorted as bytes")
        self._child(self._open[-1], tail, False, name, place)
        self._tail = tail
        self.count += 1
        if self.count > self._most:
            raise Refusal("limit-members", place, f"member {self.count}", f"at most {self._most} members")

    def add_sibling(self, tail: bytes, shortest: int) -> bool:
        """Take a file of the same folder as the last one, or leave it to `add`, which names the fault."""
        known = self._open[-1].children
        folded = tail.lower()
        if (
            len(tail) < shortest
            or tail <= self._tail
            or folded in known
            or not component_fits(tail)
            or self.count >= self._most
        ):
            return False
        known[folded] = (tail, False)
        self._tail = tail
        self.count += 1
        return True

    def beside(self) -> tuple[dict[bytes, tuple[bytes, bool]], bytes, int]:
        """Return what lies in the folder of the last name (by case-folded name), that file's own name, and how many may follow."""
        return self._open[-1].children, self._tail, self._most - self.count

    def passed(self, tail: bytes, count: int) -> None:
        """Take note of `count` files of that folder, put beside the others by the caller; `tail` is the last of them."""
        self._tail = tail
        self.count += count

    def _enter(self, name: bytes, head: bytes, place: str) -> None:
        prefix, level = head + b"/", len(self._open)
        while level and not prefix.startswith(self._open[level - 1].prefix):
            level -= 1
        # What lies above the folder that is open was looked at when it was opened.
        parts = name[len(self._open[level - 1].prefix) if level else 0 :].split(b"/")
        if level + len(parts) > LIMITS.depth or not all(map(component_fits, parts)) or split(name) is None:
            fault = name_fault(name)
            assert fault is not None, "one of its parts does not fit"
            raise Refusal(fault[0], place, fault[1], NAME_RULE)
        if not head:
            raise Refusal("top-folder", place, f"{show(name)} outside a top folder", "one top folder")
        if self._open and not level:
            right = f"everything below {show(self._open[0].path)}"
            raise Refusal("top-folder", place, f"second top folder {show(parts[0])}", right)
        if name <= self._last:
            return  # the caller names the fault; folders are only tracked in order
        del self._open[level:]
        for part in parts[:-1]:
            if self._open:
                self._child(self._open[-1], part, True, name, place)
                part = self._open[-1].prefix + part
            self._open.append(_Folder(part))
        self._head, self._prefix = head, prefix

    def _child(self, folder: _Folder, part: bytes, is_folder: bool, name: bytes, place: str) -> None:
        folded = part.lower()
        known = folder.children.setdefault(folded, (part, is_folder))
        if known[0] != part:
            raise Refusal(
                "path-collision",
                place,
                f"{show(name)} beside {show(folder.path + b'/' + known[0])}",
                "names that differ in more than case",
            )
        if known[1] != is_folder:
            raise Refusal(
                "path-file-as-directory", place, f"{show(name)} makes a file a folder too", "a file or a folder"
            )
