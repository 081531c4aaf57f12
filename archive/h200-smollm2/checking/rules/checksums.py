"""SHA256SUMS, names and kinds: the package is exactly the files that it lists, with exactly their bytes."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.damage import SUMS, Bench
from checking.package import Unreadable
from checking.reading import SumsFault, read_sums, shown

_COMPONENT = re.compile(r"[A-Za-z0-9_+](?:[A-Za-z0-9._+-]*[A-Za-z0-9_+-])?\Z")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
MAX_DEPTH = 7  # below the top folder; the archive allows eight with it
MAX_COMPONENT = 100


class Sums:
    """The listing of the package and its SHA256SUMS."""

    def __init__(self, scope: Scope, everything: bool) -> None:
        self.view = scope.view
        self.everything = everything
        self.names = self.view.below("")
        self.kinds = self.view.kinds()
        self.sums: Dict[str, str] = {}
        self.fault: Optional[SumsFault] = None
        try:
            self.sums = read_sums(self.view.read(SUMS))
        except Unreadable as error:
            self.fault = SumsFault("sums-missing-list", "", error.reason, "the list of every file")
        except SumsFault as fault:
            self.fault = fault
        self.compared = 0

    def faults(self, code: str) -> Iterator[Complaint]:
        """The fault of the list itself when it has this code."""
        if self.fault is not None and self.fault.code == code:
            yield (
                "%s %s" % (SUMS, self.fault.place) if self.fault.place else SUMS,
                self.fault.found,
                self.fault.expected,
            )


def _fault(code: str) -> Any:
    return lambda subject: subject.faults(code)


_WHAT = {"link": "a link", "special": "a device, FIFO or socket", "folder": "an empty folder"}


def _kinds(wanted: str) -> Any:
    def hold(subject: Listing) -> Iterator[Complaint]:
        for name, kind in subject.odd:
            if kind == wanted:
                yield (name, _WHAT[kind], "a regular file")

    return hold


def hold_names(subject: Listing) -> Iterator[Complaint]:
    """Every component is of the alphabet, no device name, not too long, not too deep."""
    good = set()
    for name in subject.names:
        parts = name.split("/")
        if len(parts) > MAX_DEPTH:
            yield (name, "%d levels" % len(parts), "at most %d" % MAX_DEPTH)
        for part in parts:
            if part in good:
                continue
            if not _COMPONENT.match(part) or _DEVICE.match(part) or len(part) > MAX_COMPONENT:
                yield (name, "component " + shown(part), "letters, digits and ._+- in at most 100, no device name")
                break
            if len(part) < 64:
                good.add(part)


def hold_collisions(subject: Listing) -> Iterator[Complaint]:
    """No two names are one name where letter case does not count."""
    if len({name.lower() for name in subject.names}) == len(subject.names):
        return
    seen: Dict[str, str] = {}
    for name in subject.names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield (name, "the same as %s but for letter case" % shown(other), "names that differ everywhere")


def hold_listed(subject: Sums) -> Iterator[Complaint]:
    """Every file that is there is listed."""
    if len(subject.sums) + 1 == len(subject.kinds) and subject.sums.keys() <= subject.kinds.keys():
        return
    for name in subject.names:
        if name not in subject.sums and name != SUMS and subject.kinds[name] == "file":
            yield (name, "a file that SHA256SUMS does not list", "listed files only")


def hold_there(subject: Sums) -> Iterator[Complaint]:
    """Every listed file is there."""
    if subject.sums.keys() <= subject.kinds.keys():
        return
    for name in subject.sums:
        if name not in subject.kinds:
            yield (name, "no such file", "a file, since SHA256SUMS lists it")


def hold_digests(subject: Sums) -> Iterator[Complaint]:
    """Every file has the digest that is listed: all of them, or all that this verifier read."""
    known = subject.view.known()
    for name, listed in subject.sums.items():
        digest = known.get(name)
        if digest is None:
            if not subject.everything:
                continue
            try:
                digest = subject.view.digest(name)
            except Unreadable as error:
                if subject.kinds.get(name) == "file":
                    yield (name, error.reason, "a readable file")
                continue
        else:
            subject.view.reads.add(name)  # known from an earlier family, and compared here all the same
        subject.compared += 1
        if digest != listed:
            yield (name, "sha256 " + digest, listed)


def hold_something(subject: Sums) -> Iterator[Complaint]:
    """Success needs something verified."""
    if not subject.sums or not subject.compared:
        yield (SUMS, "%d files compared" % subject.compared, "at least one")


def _facts(subject: Sums) -> Dict[str, Any]:
    return {"counts": {"files": subject.compared}}


def _first(bench: Bench, end: str = "") -> Optional[str]:
    return next((name for name in bench.below("") if name != SUMS and name.endswith(end)), None)


def _lines(bench: Bench) -> List[bytes]:
    return bench.read(SUMS).splitlines(keepends=True)


def _sums(name: str, change: Any) -> Tuple[Mutation, ...]:
    def damage(bench: Bench) -> Optional[str]:
        data = change(_lines(bench))
        bench.put(SUMS, data)
        return SUMS

    return (Mutation(name, damage, resealed=False),)


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


def _drop_file(bench: Bench) -> Optional[str]:
    name = _first(bench, "README.md") or _first(bench)
    if name is not None:
        bench.remove(name)
    return name


def _add(path: str, data: bytes = b"left behind\n") -> Any:
    def damage(bench: Bench) -> Optional[str]:
        bench.put(path, data)
        return path

    return damage


def _place(path: str, kind: str) -> Any:
    def damage(bench: Bench) -> Optional[str]:
        bench.place(path, kind)
        return path

    return damage


def _turn(kind: str) -> Any:
    def damage(bench: Bench) -> Optional[str]:
        name = _first(bench, "README.md") or _first(bench)
        if name is not None:
            bench.place(name, kind)
        return name

    return damage


def _case_twin(bench: Bench) -> Optional[str]:
    bench.put("readme.MD", b"another guide\n")
    if not bench.has("README.md"):
        bench.put("README.md", b"a guide\n")
    return "readme.MD"


def _remove_list(bench: Bench) -> Optional[str]:
    bench.remove(SUMS)
    return SUMS


LIST_CODES = (
    "sums-missing-list",
    "sums-empty",
    "sums-form",
    "sums-duplicate",
    "sums-order",
    "sums-path",
)

LISTING_CHECKS = (
    Check(
        "type-link",
        "nothing in the package is a link",
        _kinds("link"),
        (
            Mutation("add a link", _place("results/link", "link"), resealed=False),
            Mutation("turn a file into a link", _turn("link"), resealed=True),
        ),
    ),
    Check(
        "type-special",
        "nothing in the package is a device, FIFO or socket",
        _kinds("special"),
        (
            Mutation("add a FIFO", _place("results/fifo", "special"), resealed=False),
            Mutation("turn a file into a FIFO", _turn("special"), resealed=True),
        ),
    ),
    Check(
        "type-folder",
        "no folder is empty",
        _kinds("folder"),
        (Mutation("add an empty folder", _place("results/empty", "folder"), resealed=False),),
    ),
    Check(
        "name-character",
        "names keep to the alphabet, the depth and the length",
        hold_names,
        (
            Mutation("add a file whose name has a blank", _add("results/two words")),
            Mutation("add a file with a device name", _add("results/NUL.json")),
            Mutation("add a file nine folders deep", _add("results/a/b/c/d/e/f/g/h")),
        ),
    ),
    Check(
        "name-collision",
        "no two names differ in letter case alone",
        hold_collisions,
        (Mutation("add a twin in another letter case", _case_twin),),
    ),
)

SUM_CHECKS = (
    Check(
        "sums-missing-list",
        "SHA256SUMS is there",
        _fault("sums-missing-list"),
        (Mutation("remove SHA256SUMS", _remove_list, resealed=False),),
    ),
    Check(
        "sums-empty", "SHA256SUMS lists something", _fault("sums-empty"), _sums("empty SHA256SUMS", lambda lines: b"")
    ),
    Check(
        "sums-form",
        "SHA256SUMS is in the GNU text form",
        _fault("sums-form"),
        _sums("end the lines with CRLF", lambda lines: b"".join(lines).replace(b"\n", b"\r\n"))
        + _sums("write a digest in upper case", lambda lines: lines[0].upper() + b"".join(lines[1:]))
        + _sums("add a blank line", lambda lines: b"".join(lines) + b"\n")
        + _sums("drop the final newline", lambda lines: b"".join(lines)[:-1])
        + _sums("put a byte order mark first", lambda lines: b"\xef\xbb\xbf" + b"".join(lines))
        + _sums("mark a file as binary", lambda lines: lines[0].replace(b"  ", b" *", 1) + b"".join(lines[1:])),
    ),
    Check(
        "sums-duplicate",
        "SHA256SUMS lists each name once",
        _fault("sums-duplicate"),
        _sums("list the first file twice", lambda lines: lines[0] + b"".join(lines)),
    ),
    Check(
        "sums-order",
        "SHA256SUMS is sorted by name",
        _fault("sums-order"),
        _sums("swap the first and the last line", lambda lines: lines[-1] + b"".join(lines[1:-1]) + lines[0]),
    ),
    Check(
        "sums-path",
        "SHA256SUMS names files inside the package",
        _fault("sums-path"),
        _sums("list a path outside", lambda lines: lines[0][:66] + b"../outside\n" + b"".join(lines))
        + _sums("list an absolute path", lambda lines: lines[0][:66] + b"/outside\n" + b"".join(lines)),
    ),
    Check(
        "sums-unlisted",
        "every file is listed",
        hold_listed,
        (Mutation("add a file that is not listed", _add("results/extra.json"), resealed=False),),
        needs=LIST_CODES,
    ),
    Check(
        "sums-missing",
        "every listed file is there",
        hold_there,
        (Mutation("remove a listed file", _drop_file, resealed=False),),
        needs=LIST_CODES,
    ),
    Check(
        "sums-mismatch",
        "every file has its listed digest",
        hold_digests,
        (Mutation("flip a listed digest", flip_a_listed_digest, resealed=False),),
        needs=LIST_CODES,
    ),
)


def _family(everything: bool) -> Family:
    rows: Tuple[Check, ...] = SUM_CHECKS
    if everything:
        rows = tuple(
            row._replace(
                mutations=(*row.mutations, Mutation("flip the last bit of a file", flip_a_byte, resealed=False))
            )
            if row.code == "sums-mismatch"
            else row
            for row in rows
        )
    return Family(
        kind="package",
        find=lambda view: [""],
        open=lambda scope: Sums(scope, everything),
        checks=rows,
        facts=_facts,
    )


class Listing:
    """The names and kinds of the package, without a byte of any file."""

    def __init__(self, scope: Scope) -> None:
        self.names = scope.view.below("")
        self.kinds = scope.view.kinds()
        self.odd = [(name, kind) for name, kind in self.kinds.items() if kind != "file"]


LISTING = Family(kind="package", find=lambda view: [""], open=Listing, checks=LISTING_CHECKS)
EVERYTHING = _family(True)
WHAT_WAS_READ = _family(False)
