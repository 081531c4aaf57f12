"""SHA256SUMS, names and kinds: the package is exactly the files that it lists, with exactly their bytes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from checking.check import MOST_FINDINGS, Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.listing import FILE, Run, one_of_hashes
from checking.package import Recall, Unreadable
from checking.reading import shown
from checking.sums import SUMS, Row, SumsFault, Unplain, compare, read_sums, rows, told

lies = Later("checking.rules.checksums_lies")

# Text, and not compiled: only a name that a look at its whole folder did not pass is held to them.
_COMPONENT = r"[A-Za-z0-9_+](?:[A-Za-z0-9._+-]*[A-Za-z0-9_+-])?\Z"
_DEVICE = r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)"
_PLAIN = re.compile(
    r"(?:(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])[./])[a-z0-9_+](?:[a-z0-9._+-]{0,98}[a-z0-9_+-])?/)*",
    re.IGNORECASE | re.ASCII,
)
MAX_DEPTH = 7  # below the top folder; the archive allows eight with it
MAX_COMPONENT = 100


class Listed:
    """The listing of the package and its SHA256SUMS, which is read line by line and never held.

    Where the unaltered package is known to be as its own list says, only lines that are not in that list and names
    that are altered are looked at.
    """

    def __init__(self, scope: Scope, wanted: Callable[[str], bool]) -> None:
        self.view = scope.view
        self.wanted = wanted
        self.entries = self.view.listing()
        self.fault: Optional[SumsFault] = None
        self.left: Optional[List[Row]] = None
        self.wrong: Optional[List[Complaint]] = None  # digests that differ, of a list of the files that are there
        self.unlisted: List[str] = []
        self.there = 0
        self.missing: List[str] = []
        self.compared = 0
        try:
            self._meet_all()
        except Unreadable as error:
            self.fault = SumsFault("sums-missing-list", "", error.reason, "the list of every file")
        except SumsFault as fault:
            self.fault = fault

    def _meet_all(self) -> None:
        """Look up every name that is listed. Raises Unreadable, or SumsFault on a list that is not in its form."""
        if self._compare(self.view.recall):
            names = [name for _, name in self.rows()]
        else:
            try:
                self._agree()
                return
            except Unplain:
                self.compared = 0
                names = list(read_sums(self.view.read(SUMS)))
        absent = self.entries.absent(names)
        self.there = len(names) - len(absent)
        self.missing = absent[: MOST_FINDINGS + 1]

    def _agree(self) -> None:
        """Compare the list with the files that are there, all in one. Raises Unplain when it is not of these files."""
        there, wrong = 0, []  # type: int, List[Complaint]
        for run, digests in told(self.view.pieces(SUMS), self.entries.runs()):
            there += len(run.names)
            wrong += self.mismatches(self._due(run, digests))
        self.there, self.wrong = there, wrong

    def _due(self, run: Run, digests: Optional[List[str]]) -> Iterator[Row]:
        """The lines of a run, without those whose files are known to have the digest that is listed: these are counted."""
        start = run.folder + "/" if run.folder else ""
        names = run.names
        if digests is None:
            own = self.view.own(run.folder)
            if own is None:  # then none of the folder was read
                names = [name for name in names if self.wanted(start + name)]
            else:
                names = [name for name, known in zip(names, own) if not known]
                self.compared += len(own) - len(names)
        return zip(digests or names, [start + name for name in names])

    def mismatches(self, lines: Iterable[Row]) -> Iterator[Complaint]:
        """Files with another digest than is listed: of all that this verifier wants, and that an earlier family read."""
        view = self.view
        for listed, name in lines:
            digest: Optional[str] = None
            try:
                digest = view.digest(name) if self.wanted(name) else view.known(name)
            except Unreadable as error:
                if view.kind(name) == FILE:
                    yield (name, error.reason, "a readable file")
            if digest is None:
                continue
            self.compared += 1
            if digest != listed:
                yield (name, "sha256 " + digest, listed)

    def _compare(self, recall: Optional[Recall]) -> bool:
        """Find what is left to be looked at beside the list of the unaltered package; False when that cannot be told."""
        if recall is None or not recall.lines:
            return False
        differs = compare(self.view.read(SUMS), recall.lines)
        if differs is None:
            return False
        found, gone, altered = differs.found, differs.gone, self.view.altered()
        self.unlisted = sorted(
            name for name in gone | altered if name not in found and (name in gone or name not in recall.sums)
        )
        same = {name: (recall.sums[name], name) for name in altered if name in recall.sums and name not in gone}
        self.left = sorted({**same, **found}.values(), key=lambda row: row[1])
        return True

    def rows(self) -> Iterator[Row]:
        """The lines of the list that are to be looked at; none when it has a fault."""
        if self.fault is not None:
            return iter(())
        return rows(self.view.pieces(SUMS)) if self.left is None else iter(self.left)

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
    def hold(subject: Names) -> Iterator[Complaint]:
        for name, kind in subject.odd:
            if kind == wanted:
                yield (name, _WHAT[kind], "a regular file")

    return hold


def hold_names(subject: Names) -> Iterator[Complaint]:
    """Every component is of the alphabet, no device name, not too long, not too deep."""
    if not subject.odd and subject.plain():
        return
    for name in subject.view.below(""):
        parts = name.split("/")
        if len(parts) > MAX_DEPTH:
            yield (name, "%d levels" % len(parts), "at most %d" % MAX_DEPTH)
        for part in parts:
            if not re.match(_COMPONENT, part) or re.match(_DEVICE, part) or len(part) > MAX_COMPONENT:
                yield (name, "component " + shown(part), "letters, digits and ._+- in at most 100, no device name")
                break


def hold_collisions(subject: Names) -> Iterator[Complaint]:
    """No two names are one name where letter case does not count."""
    if not subject.odd and subject.differ():
        return
    seen: Dict[str, str] = {}
    for name in subject.view.below(""):
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield (name, "the same as %s but for letter case" % shown(other), "names that differ everywhere")


def hold_listed(subject: Listed) -> Iterator[Complaint]:
    """Every file that is there is listed."""
    names: Iterable[str]
    if subject.left is not None:
        names = subject.unlisted
    elif len(subject.entries) == subject.there + 1:
        return
    else:
        listed = {name for _, name in subject.rows()}
        names = (name for name in subject.view.below("") if name not in listed)
    for name in names:
        if name != SUMS and subject.entries.find(name) == FILE:
            yield (name, "a file that SHA256SUMS does not list", "listed files only")


def hold_there(subject: Listed) -> Iterator[Complaint]:
    """Every listed file is there."""
    for name in subject.missing:
        yield (name, "no such file", "a file, since SHA256SUMS lists it")


def hold_digests(subject: Listed) -> Iterator[Complaint]:
    """Every file has the digest that is listed: all that this verifier wants, and all that an earlier family read."""
    return iter(subject.wrong) if subject.wrong is not None else subject.mismatches(subject.rows())


def _facts(subject: Listed) -> Dict[str, Any]:
    return {"counts": {"files": subject.compared}}


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
            Mutation("add a link", lies.add_link, resealed=False),
            Mutation("turn a file into a link", lies.turn_to_link, resealed=True),
        ),
    ),
    Check(
        "type-special",
        "nothing in the package is a device, FIFO or socket",
        _kinds("special"),
        (
            Mutation("add a FIFO", lies.add_fifo, resealed=False),
            Mutation("turn a file into a FIFO", lies.turn_to_fifo, resealed=True),
        ),
    ),
    Check(
        "type-folder",
        "no folder is empty",
        _kinds("folder"),
        (Mutation("add an empty folder", lies.add_folder, resealed=False),),
    ),
    Check(
        "name-character",
        "names keep to the alphabet, the depth and the length",
        hold_names,
        (
            Mutation("add a file whose name has a blank", lies.add_blank),
            Mutation("add a file with a device name", lies.add_device),
            Mutation("add a file nine folders deep", lies.add_deep),
        ),
    ),
    Check(
        "name-collision",
        "no two names differ in letter case alone",
        hold_collisions,
        (Mutation("add a twin in another letter case", lies.case_twin),),
    ),
)

SUM_CHECKS = (
    Check(
        "sums-missing-list",
        "SHA256SUMS is there",
        _fault("sums-missing-list"),
        (Mutation("remove SHA256SUMS", lies.remove_list, resealed=False),),
    ),
    Check(
        "sums-empty",
        "SHA256SUMS lists something",
        _fault("sums-empty"),
        (Mutation("empty SHA256SUMS", lies.empty, resealed=False),),
    ),
    Check(
        "sums-form",
        "SHA256SUMS is in the GNU text form",
        _fault("sums-form"),
        (
            Mutation("end the lines with CRLF", lies.crlf, resealed=False),
            Mutation("write a digest in upper case", lies.upper_case, resealed=False),
            Mutation("add a blank line", lies.blank_line, resealed=False),
            Mutation("drop the final newline", lies.no_final_newline, resealed=False),
            Mutation("put a byte order mark first", lies.byte_order_mark, resealed=False),
            Mutation("mark a file as binary", lies.binary_mark, resealed=False),
        ),
    ),
    Check(
        "sums-duplicate",
        "SHA256SUMS lists each name once",
        _fault("sums-duplicate"),
        (Mutation("list the first file twice", lies.first_twice, resealed=False),),
    ),
    Check(
        "sums-order",
        "SHA256SUMS is sorted by name",
        _fault("sums-order"),
        (Mutation("swap the first and the last line", lies.swap_ends, resealed=False),),
    ),
    Check(
        "sums-path",
        "SHA256SUMS names files inside the package",
        _fault("sums-path"),
        (
            Mutation("list a path outside", lies.path_outside, resealed=False),
            Mutation("list an absolute path", lies.absolute_path, resealed=False),
        ),
    ),
    Check(
        "sums-unlisted",
        "every file is listed",
        hold_listed,
        (Mutation("add a file that is not listed", lies.add_unlisted, resealed=False),),
        needs=LIST_CODES,
    ),
    Check(
        "sums-missing",
        "every listed file is there",
        hold_there,
        (Mutation("remove a listed file", lies.drop_file, resealed=False),),
        needs=LIST_CODES,
    ),
    Check(
        "sums-mismatch",
        "every file has its listed digest",
        hold_digests,
        (Mutation("flip a listed digest", lies.flip_a_listed_digest, resealed=False),),
        needs=LIST_CODES,
    ),
)


def _family(wanted: Callable[[str], bool]) -> Family:
    rows: Tuple[Check, ...] = SUM_CHECKS
    if wanted("README.md"):
        rows = tuple(
            row._replace(
                mutations=(*row.mutations, Mutation("flip the last bit of a file", lies.flip_a_byte, resealed=False))
            )
            if row.code == "sums-mismatch"
            else row
            for row in rows
        )
    return Family(
        kind="package",
        find=lambda view: [""],
        open=lambda scope: Listed(scope, wanted),
        checks=rows,
        facts=_facts,
    )


class Names:
    """The names and kinds of the package, without a byte of any file."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.entries = scope.view.listing()
        self.odd = sorted(self.entries.odd().items())

    def plain(self) -> bool:
        """Whether all components are right by a look at all of a folder at once."""
        return all(_plain(folder, self.entries.joined(folder)) for folder in self.entries.all_folders())

    def differ(self) -> bool:
        """Whether folders differ in more than letter case, and so do the files of each."""
        folders = self.entries.all_folders()
        if len({folder.lower() for folder in folders}) != len(folders):
            return False
        return all(_differ(self.entries.joined(folder)) for folder in folders)


@lru_cache(maxsize=None)
def _plain(folder: str, joined: str) -> bool:
    hashed = one_of_hashes(joined)
    names = (folder + "/" if folder else "") + (hashed + "/" if hashed else joined)
    return folder.count("/") < MAX_DEPTH - 1 and bool(_PLAIN.fullmatch(names))


@lru_cache(maxsize=None)
def _differ(joined: str) -> bool:
    if one_of_hashes(joined):
        return True
    names = joined.lower().split("/")
    return len(set(names)) == len(names)


LISTING = Family(kind="package", find=lambda view: [""], open=Names, checks=LISTING_CHECKS)
EVERYTHING = _family(lambda name: True)
WHAT_WAS_READ = _family(lambda name: name == "manifest.json")
