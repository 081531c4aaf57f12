"""Checks, findings and the order in which a package is judged.

How a rule file plugs in. It ends with one `FAMILY`:

    FAMILY = Family(
        kind="comparison",                 # what one subject is; `package` for the whole
        find=find,                         # find(view) -> folders, one a subject ("" for the whole package)
        documents=documents,               # documents(view, folder) -> [(name, shape)]: JSON files to be read
        open=Comparison,                   # open(scope) -> the subject handed to the checks; reads lazily
        facts=facts,                       # facts(subject) -> small results for families that come later
        checks=(Check(...), ...),
    )

A check is one row: code, truth, the function that holds it, its mutations (at least one, no default),
the codes that must have held first. `hold(subject)` yields complaints `(path, found, expected)`. Documents
are read, and their form and shape judged, before any check of the family: a check runs only on
documents of the right shape, and never has to ask whether a key is there. A subject finds the parsed
documents in `scope.documents[name]` and earlier families' facts in `scope.facts[kind][folder]`.

Families are judged in the order that a verifier gives, subject by subject, and everything of a subject is
forgotten before the next: memory does not grow with the package. What a subject read is remembered, so
that after an alteration in memory only the subjects that it touches are judged again.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from checking.package import Recall, Source, Unreadable, View
from checking.proof import read_proved
from checking.reading import JsonFault, read_document, shown
from checking.shape import Shape, faults

Complaint = Tuple[str, str, str]
LONGEST_LINE = 4096
MOST_FINDINGS = 25


class Finding(NamedTuple):
    """One line of a rejection."""

    code: str
    path: str
    found: str
    expected: str

    def __str__(self) -> str:
        return shown("%s %s: found %s, expected %s" % self, LONGEST_LINE)


class Mutation(NamedTuple):
    """One way to damage a package, told as an imperative.

    `damage(bench)` alters the package on the bench (checking.damage) and says what it altered, or returns None
    when the package has nothing of that kind. `resealed` says that hashes, indices and sums are made true
    again afterwards, so that only meaning can reject the lie.
    """

    name: str
    damage: Callable[[Any], Optional[str]]
    resealed: bool = True


class Check(NamedTuple):
    """One truth about good evidence, and how it is shown that its absence is seen."""

    code: str
    truth: str
    hold: Callable[[Any], Iterable[Complaint]]
    mutations: Tuple[Mutation, ...]
    needs: Tuple[str, ...] = ()
    also: Tuple[str, ...] = ()


class Scope:
    """One subject while it is judged."""

    def __init__(self, view: View, kind: str, folder: str, facts: Mapping[str, Mapping[str, Any]]) -> None:
        self.view = view
        self.kind = kind
        self.folder = folder
        self.facts = facts
        self.documents: Dict[str, Any] = {}

    def path(self, name: str) -> str:
        """The name of a file of this subject from the top of the package."""
        return "%s/%s" % (self.folder, name) if self.folder else name

    def document(self, name: str) -> Any:
        """A document of this subject by its name inside the folder."""
        return self.documents[self.path(name)]


def _no_facts(subject: Any) -> Any:
    return None


def _no_documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    return []


class Family(NamedTuple):
    """The checks of one kind of subject."""

    kind: str
    find: Callable[[View], Sequence[str]]
    open: Callable[[Scope], Any]
    checks: Tuple[Check, ...]
    documents: Callable[[View, str], Sequence[Tuple[str, Shape]]] = _no_documents
    facts: Callable[[Any], Any] = _no_facts


class Result(NamedTuple):
    """What judging one subject gave."""

    findings: Tuple[Finding, ...]
    facts: Any
    view: Optional[View]


class Report(NamedTuple):
    """What judging a package gave. `crashes` are faults of the judge itself, never of the package."""

    findings: Tuple[Finding, ...]
    results: Mapping[Tuple[int, str], Result]
    crashes: Tuple[str, ...]

    def codes(self) -> FrozenSet[str]:
        """The codes of all findings."""
        return frozenset(finding.code for finding in self.findings)


def read_one(view: View, name: str, shape: Shape) -> Tuple[Any, List[Finding]]:
    """A document's value, and what is wrong with its form or shape."""
    try:
        data = view.read(name)
        value = read_proved(data, shape)
        if value is not None:
            return value, []
        value, fault = read_document(data)
    except Unreadable as error:
        return None, [Finding("file-missing", name, error.reason, "a file")]
    except JsonFault as bad:
        value, fault = None, bad
    if fault is not None:
        place = "%s %s" % (name, fault.place) if fault.place else name
        return None, [Finding(fault.code, place, fault.found, fault.expected)]
    wrong = [Finding(code, name + "#" + at, found, expected) for code, at, found, expected in faults(value, shape)]
    return value, wrong[:MOST_FINDINGS]


def read_documents(scope: Scope, wanted: Sequence[Tuple[str, Shape]]) -> List[Finding]:
    """Read the documents of a subject into its scope; what is wrong with their form or shape comes back."""
    wrong: List[Finding] = []
    recall = scope.view.recall
    for name, shape in wanted:
        key = None
        if recall is not None and scope.view.has(name):
            key = (scope.view.digest(name), shape)
            if key in recall.documents:
                scope.documents[name] = recall.documents[key]
                continue
        value, told = read_one(scope.view, name, shape)
        wrong.extend(told)
        if not told:
            scope.documents[name] = value
            if recall is not None and key is not None:
                recall.documents[key] = value
    return wrong


def judge_subject(
    family: Family, view: View, folder: str, facts: Mapping[str, Mapping[str, Any]], without: FrozenSet[str]
) -> Tuple[Result, List[str]]:
    """Judge one subject with the checks of its family."""
    scope = Scope(view, family.kind, folder, facts)
    crashes: List[str] = []
    wrong = read_documents(scope, family.documents(view, folder))
    findings = [finding for finding in wrong if finding.code not in without]
    if wrong:
        return Result(tuple(findings), None, view), crashes
    try:
        subject = family.open(scope)
    except Exception as error:
        return Result((), None, view), ["%s %s: %r" % (family.kind, folder, error)]
    broken: Set[str] = set()
    for check in family.checks:
        if not broken.isdisjoint(check.needs):
            broken.add(check.code)
            continue
        seen = 0
        try:
            for path, found, expected in check.hold(subject):
                broken.add(check.code)
                seen += 1
                if check.code not in without and seen <= MOST_FINDINGS:
                    findings.append(Finding(check.code, path, found, expected))
                if seen > MOST_FINDINGS:
                    break
        except Exception as error:
            broken.add(check.code)
            if check.code not in without:
                crashes.append("%s %s: %r" % (check.code, folder, error))
    try:
        made = family.facts(subject)
    except Exception as error:
        made = None
        if not broken:
            crashes.append("facts of %s %s: %r" % (family.kind, folder, error))
    return Result(tuple(findings), made, view), crashes


def judge(
    source: Source,
    families: Sequence[Family],
    before: Optional[Report] = None,
    changed: FrozenSet[str] = frozenset(),
    moved: FrozenSet[str] = frozenset(),
    without: FrozenSet[str] = frozenset(),
    recall: Optional[Recall] = None,
    again: bool = False,
    first: bool = False,
) -> Report:
    """Judge a package; `again` keeps what each subject asked for, so that the report can be a later `before`.

    `first` ends it with the first subject that is rejected: all that is wrong with that one is told.

    With `before`, a report on the same package without the names in `changed` (of which `moved` came or went),
    subjects that read none of them keep their result, as long as no earlier family's facts changed.
    """
    facts: Dict[str, Dict[str, Any]] = {}
    results: Dict[Tuple[int, str], Result] = {}
    findings: List[Finding] = []
    crashes: List[str] = []
    same = before is not None
    for number, family in enumerate(families):
        gathered = facts.setdefault(family.kind, {}) if family.kind != "package" else {}
        keeps = True
        folders = family.find(View(source))
        for folder in folders:
            known = before.results.get((number, folder)) if before is not None and same else None
            if known is not None and known.view is not None and not known.view.touched(source, changed, moved):
                result = known
            else:
                result, fell = judge_subject(family, View(source, recall, again), folder, facts, without)
                crashes.extend(fell)
                if known is None or known.facts != result.facts:
                    keeps = False
                if not again:
                    result = result._replace(view=None)
            results[(number, folder)] = result
            gathered[folder] = result.facts
            findings.extend(result.findings)
            if first and findings:
                return Report(tuple(findings), results, tuple(crashes))
        if before is not None and family.kind != "package":
            keeps = keeps and set(folders) == {folder for at, folder in before.results if at == number}
            same = same and keeps
    return Report(tuple(findings), results, tuple(crashes))


def table(families: Iterable[Family]) -> List[Check]:
    """All rows of the families in order. Raises ValueError when a code stands twice."""
    rows = [check for family in families for check in family.checks]
    codes = [row.code for row in rows]
    for code in codes:
        if codes.count(code) > 1:
            raise ValueError("code %s stands twice" % code)
    return rows
