"""Lies about names, kinds and SHA256SUMS."""

from __future__ import annotations

from typing import Callable, List, Optional

from checking.damage import Bench
from checking.sums import SUMS

Lie = Callable[[Bench], Optional[str]]


def _first(bench: Bench, end: str = "") -> Optional[str]:
    return next((name for name in bench.below("") if name != SUMS and name.endswith(end)), None)


def _lines(bench: Bench) -> List[bytes]:
    return bench.read(SUMS).splitlines(keepends=True)


def _sums(change: Callable[[List[bytes]], bytes]) -> Lie:
    """A lie in SHA256SUMS; `change` makes the list from its lines."""

    def damage(bench: Bench) -> str:
        data = change(_lines(bench))
        bench.put(SUMS, data)
        return SUMS

    return damage


def flip_a_byte(bench: Bench) -> Optional[str]:
    """Change the last byte of a file."""
    name = _first(bench, "README.md") or _first(bench)
    if name is None:
        return None
    data = bench.read(name)
    bench.put(name, data[:-1] + bytes([(data[-1] if data else 0) ^ 1]))
    return name


def flip_a_listed_digest(bench: Bench) -> Optional[str]:
    """Change one digit of the list, for the manifest, which every verifier reads."""
    lines = bench.read(SUMS).decode("utf-8", "surrogateescape").split("\n")
    for number, line in enumerate(lines):
        if line.endswith("  manifest.json"):
            lines[number] = ("0" if line[0] != "0" else "1") + line[1:]
    bench.put(SUMS, "\n".join(lines).encode("utf-8", "surrogateescape"))
    return SUMS


def drop_file(bench: Bench) -> Optional[str]:
    name = _first(bench, "README.md") or _first(bench)
    if name is not None:
        bench.remove(name)
    return name


def _add(path: str) -> Lie:
    def damage(bench: Bench) -> str:
        bench.put(path, b"left behind\n")
        return path

    return damage


def _place(path: str, kind: str) -> Lie:
    def damage(bench: Bench) -> str:
        bench.place(path, kind)
        return path

    return damage


def _turn(kind: str) -> Lie:
    def damage(bench: Bench) -> Optional[str]:
        name = _first(bench, "README.md") or _first(bench)
        if name is not None:
            bench.place(name, kind)
        return name

    return damage


def case_twin(bench: Bench) -> Optional[str]:
    bench.put("readme.MD", b"another guide\n")
    if not bench.has("README.md"):
        bench.put("README.md", b"a guide\n")
    return "readme.MD"


def remove_list(bench: Bench) -> Optional[str]:
    bench.remove(SUMS)
    return SUMS


add_link = _place("results/link", "link")
turn_to_link = _turn("link")
add_fifo = _place("results/fifo", "special")
turn_to_fifo = _turn("special")
add_folder = _place("results/empty", "folder")
add_blank = _add("results/two words")
add_device = _add("results/NUL.json")
add_deep = _add("results/a/b/c/d/e/f/g/h")
add_unlisted = _add("results/extra.json")
empty = _sums(lambda lines: b"")
crlf = _sums(lambda lines: b"".join(lines).replace(b"\n", b"\r\n"))
upper_case = _sums(lambda lines: lines[0].upper() + b"".join(lines[1:]))
blank_line = _sums(lambda lines: b"".join(lines) + b"\n")
no_final_newline = _sums(lambda lines: b"".join(lines)[:-1])
byte_order_mark = _sums(lambda lines: b"\xef\xbb\xbf" + b"".join(lines))
binary_mark = _sums(lambda lines: lines[0].replace(b"  ", b" *", 1) + b"".join(lines[1:]))
first_twice = _sums(lambda lines: lines[0] + b"".join(lines))
swap_ends = _sums(lambda lines: lines[-1] + b"".join(lines[1:-1]) + lines[0])
path_outside = _sums(lambda lines: lines[0][:66] + b"../outside\n" + b"".join(lines))
absolute_path = _sums(lambda lines: lines[0][:66] + b"/outside\n" + b"".join(lines))
