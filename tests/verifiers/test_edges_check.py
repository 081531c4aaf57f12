"""The order of judging at its edges, on packages of a few bytes and families of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from checking.check import Check, Complaint, Family, Finding, Mutation, Report, Scope, judge, table
from checking.package import Memory, Overlay, Recall, View
from checking.shape import COUNT, TEXT, Keys

NOTHING_TO_DO = (Mutation("do nothing", lambda bench: None),)
SHAPE = Keys(a=COUNT)


def check(code: str, hold: Callable[[Any], Iterable[Complaint]], *needs: str) -> Check:
    return Check(code, "a truth", hold, NOTHING_TO_DO, needs)


def complaining(*places: str) -> Callable[[Any], Iterable[Complaint]]:
    return lambda subject: [(place, "this", "that") for place in places]


def fail(subject: Any) -> Iterable[Complaint]:
    raise RuntimeError("fell over")


def family(*checks: Check, kind: str = "thing", folders: tuple[str, ...] = ("f",), **more: Any) -> Family:
    return Family(kind, lambda view: folders, more.pop("open", lambda scope: scope), checks, **more)


def documents(view: View, folder: str) -> list[tuple[str, Keys]]:
    return [(f"{folder}/{name}.json", SHAPE) for name in ("x", "y", "z")]


GOOD = b'{\n  "a": 1\n}\n'
FILES = {"f/x.json": GOOD, "f/y.json": b'{\n  "a": 2\n}\n', "f/z.json": b'{\n  "a": 3\n}\n'}


def test_a_finding_says_code_place_found_and_expected() -> None:
    report = judge(Memory({}), [family(check("one", complaining("p", "q")), check("two", complaining("r")))])
    assert report.findings == tuple(Finding(code, at, "this", "that") for code, at in (("one", "p"), ("one", "q"), ("two", "r")))  # fmt: skip
    assert str(report.findings[0]) == "one p: found this, expected that"
    assert report.codes() == {"one", "two"}
    assert report.crashes == ()


@pytest.mark.parametrize(("count", "told"), [(24, 24), (25, 25), (26, 25), (60, 25)])
def test_a_check_tells_at_most_25_findings_and_is_asked_for_no_more(count: int, told: int) -> None:
    asked = []

    def many(subject: Any) -> Iterable[Complaint]:
        for number in range(count):
            asked.append(number)
            yield (f"p{number}", "this", "that")

    report = judge(Memory({}), [family(check("many", many), check("next", complaining("q")))])
    assert [finding.path for finding in report.findings] == [f"p{number}" for number in range(told)] + ["q"]
    assert len(asked) == min(count, 26)


def test_a_check_whose_needs_did_not_hold_is_not_asked_nor_what_needs_it() -> None:
    asked: list[str] = []

    def noting(code: str, *places: str) -> Callable[[Any], Iterable[Complaint]]:
        def hold(subject: Any) -> Iterable[Complaint]:
            asked.append(code)
            return complaining(*places)(subject)

        return hold

    rows = (
        check("first", noting("first", "p")),
        check("second", noting("second", "p"), "first"),
        check("third", noting("third", "p"), "second"),
        check("other", noting("other")),
        check("after", noting("after", "q"), "other"),
    )
    report = judge(Memory({}), [family(*rows)])
    assert asked == ["first", "other", "after"]
    assert [finding.code for finding in report.findings] == ["first", "after"]


def test_a_check_left_out_tells_nothing_but_what_needs_it_still_waits() -> None:
    rows = (check("one", complaining("p")), check("two", complaining("q"), "one"), check("three", complaining("r")))
    report = judge(Memory({}), [family(*rows)], without=frozenset(["one"]))
    assert [finding.code for finding in report.findings] == ["three"]


def test_a_check_that_falls_over_is_a_crash_and_no_finding_and_the_next_is_asked() -> None:
    rows = (check("bad", fail), check("needing", complaining("q"), "bad"), check("good", complaining("r")))
    report = judge(Memory({}), [family(*rows)])
    assert [finding.code for finding in report.findings] == ["good"]
    assert report.crashes == ("bad f: RuntimeError('fell over')",)
    assert judge(Memory({}), [family(*rows)], without=frozenset(["bad"])).crashes == ()


def test_a_subject_that_cannot_be_opened_is_a_crash_and_its_checks_are_not_asked() -> None:
    report = judge(Memory({}), [family(check("one", complaining("p")), open=fail), family(check("two", complaining()))])
    assert report.findings == ()
    assert report.crashes == ("thing f: RuntimeError('fell over')",)
    assert report.results[0, "f"].facts is None


def test_facts_that_fall_over_are_a_crash_only_where_every_check_held() -> None:
    held = judge(Memory({}), [family(check("one", complaining()), facts=fail)])
    assert held.crashes == ("facts of thing f: RuntimeError('fell over')",)
    broken = judge(Memory({}), [family(check("one", complaining("p")), facts=fail)])
    assert broken.crashes == ()
    assert [report.results[0, "f"].facts for report in (held, broken)] == [None, None]


def opened(files: dict[str, bytes], recall: Recall | None = None) -> tuple[Report, list[Scope]]:
    scopes: list[Scope] = []

    def keep(scope: Scope) -> Scope:
        scopes.append(scope)
        return scope

    one = family(check("asked", complaining("p")), documents=documents, open=keep)
    return judge(Memory(files), [one], recall=recall), scopes


def test_documents_are_read_before_the_subject_is_opened() -> None:
    report, (scope,) = opened(FILES)
    assert [finding.code for finding in report.findings] == ["asked"]
    assert [scope.document(f"{name}.json") for name in "xyz"] == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert scope.documents == {f"f/{name}.json": {"a": number} for number, name in enumerate("xyz", 1)}
    assert (scope.kind, scope.folder, scope.path("q")) == ("thing", "f", "f/q")
    assert Scope(scope.view, "package", "", {}).path("q") == "q"


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        (None, Finding("file-missing", "f/y.json", "not there", "a file")),
        (b"[", Finding("json-syntax", "f/y.json line 1 column 2", "expecting value", "one JSON document")),
        (b'{\n  "a": 1e999\n}\n', Finding("json-number", "f/y.json", "number 1e999", "a finite one")),
        (b'{"a": 1}\n', Finding("json-form", "f/y.json line 1", '{"a": 1}', "two spaces a level, one element a line")),
        (b'{\n  "a": -1\n}\n', Finding("schema-value", "f/y.json#/a", "-1", "an integer, 0 or more")),
        (b"{}\n", Finding("schema-missing-key", "f/y.json#/a", "nothing", "an integer, 0 or more")),
    ],
)
@pytest.mark.parametrize("recalled", [False, True])
def test_what_is_wrong_with_a_document_is_told_and_no_check_is_asked(
    data: bytes | None, finding: Finding, recalled: bool
) -> None:
    files = {name: body for name, body in FILES.items() if name != "f/y.json"} | ({} if data is None else {"f/y.json": data})  # fmt: skip
    recall = Recall() if recalled else None
    for _ in range(2):
        report, scopes = opened(files, recall)
        assert report.findings == (finding,)
        assert scopes == []
    # Left out by its code it is not told, but nobody reads on either.
    one = family(check("asked", complaining("p")), documents=documents)
    assert judge(Memory(files), [one], without=frozenset([finding.code])).findings == ()


def test_every_document_that_is_wrong_is_told() -> None:
    report, _ = opened({"f/y.json": b"[", "f/z.json": b"{}\n"})
    assert [(one.code, one.path) for one in report.findings] == [
        ("file-missing", "f/x.json"),
        ("json-syntax", "f/y.json line 1 column 2"),
        ("schema-missing-key", "f/z.json#/a"),
    ]


@pytest.mark.parametrize(("count", "told"), [(25, 25), (26, 25)])
def test_at_most_25_faults_of_a_shape_are_told(count: int, told: int) -> None:
    shape = Keys(**{f"k{number:02d}": COUNT for number in range(count)})
    one = family(documents=lambda view, folder: [("d", shape)])
    assert [finding.path for finding in judge(Memory({"d": b"{}\n"}), [one]).findings] == [
        f"d#/k{number:02d}" for number in range(told)
    ]


def test_a_document_of_the_same_bytes_is_parsed_once_for_each_shape() -> None:
    recall, other = Recall(), Keys(a=TEXT)
    _, (first,) = opened(FILES, recall)
    _, (again,) = opened({**FILES, "f/y.json": b'{\n  "a": 7\n}\n'}, recall)
    assert again.document("x.json") is first.document("x.json")
    assert again.document("z.json") is first.document("z.json")
    assert again.document("y.json") == {"a": 7}
    strict = family(documents=lambda view, folder: [("f/x.json", other)])
    assert [one.code for one in judge(Memory(FILES), [strict], recall=recall).findings] == ["schema-type"]


class Counting:
    """Two families of two subjects each: what each subject's judging reads, and how often it is judged."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.first = self._family("one", ("a", "b"))
        self.second = self._family("two", ("a", "c"), "one")
        self.last = self._family("package", ("",))

    def _family(self, kind: str, folders: tuple[str, ...], earlier: str = "") -> Family:
        def open_(scope: Scope) -> Any:
            self.judged.append(f"{kind}:{scope.folder}")
            return scope.view.read(scope.path("facts")), dict(scope.facts.get(earlier, {}))

        def find(view: View) -> list[str]:
            return [one for one in folders if not one or view.has(f"{one}/facts")]

        def hold(subject: tuple[bytes, Any]) -> Iterable[Complaint]:
            return [(kind, "a bad word", "a good one")] if b"bad" in subject[0] else []

        return Family(kind, find, open_, (check(kind, hold),), facts=lambda subject: len(subject[0]))

    def families(self) -> tuple[Family, ...]:
        return self.first, self.second, self.last


@pytest.mark.parametrize(
    ("changes", "judged", "codes"),
    [
        ({"other": b"x"}, [], []),
        ({"b/facts": b"bbb"}, ["one:b"], []),  # other bytes, the same facts: nobody later is judged again
        ({"b/facts": b"bad"}, ["one:b"], ["one"]),
        ({"b/facts": b"bb"}, ["one:b", "two:a", "two:c", "package:"], []),  # other facts: everyone later is
        ({"c/facts": b"c"}, ["two:c", "package:"], []),
        ({"facts": b"bad"}, ["package:"], ["package"]),
        ({"b/facts": None}, ["two:a", "two:c", "package:"], []),  # a subject that went is news as well
    ],
)
def test_after_an_alteration_only_what_it_reaches_is_judged_again(
    changes: dict[str, bytes | None], judged: list[str], codes: list[str]
) -> None:
    counting = Counting()
    base = Memory({"a/facts": b"aaa", "b/facts": b"bBb", "c/facts": b"ccc", "facts": b"p"})
    before = judge(base, counting.families(), again=True)
    assert counting.judged == ["one:a", "one:b", "two:a", "two:c", "package:"]
    assert (before.findings, before.crashes) == ((), ())
    counting.judged.clear()
    overlay = Overlay(base, changes)
    after = judge(overlay, counting.families(), before, overlay.changed, overlay.moved)
    assert counting.judged == judged
    assert [finding.code for finding in after.findings] == codes
    # It is what judging afresh finds, subject by subject.
    afresh = judge(overlay, counting.families())
    assert after.findings == afresh.findings
    assert {key: one.facts for key, one in after.results.items()} == {key: one.facts for key, one in afresh.results.items()}  # fmt: skip


def test_findings_of_subjects_that_are_not_judged_again_stay() -> None:
    counting = Counting()
    base = Memory({"a/facts": b"bad", "b/facts": b"bbb", "c/facts": b"bad", "facts": b"p"})
    before = judge(base, counting.families(), again=True)
    overlay = Overlay(base, {"b/facts": b"BBB"})
    after = judge(overlay, counting.families(), before, overlay.changed, overlay.moved)
    assert [finding.code for finding in before.findings] == ["one", "two", "two"]
    assert after.findings == before.findings


def test_facts_of_a_kind_are_handed_to_later_families_and_those_of_the_package_are_not() -> None:
    handed: list[Any] = []

    def open_(scope: Scope) -> Any:
        handed.append({kind: dict(facts) for kind, facts in scope.facts.items()})
        return scope.folder

    families = [
        Family("package", lambda view: ("",), open_, (), facts=lambda subject: "whole"),
        Family("one", lambda view: ("a", "b"), open_, (), facts=lambda subject: subject.upper()),
        Family("one", lambda view: ("c",), open_, (), facts=lambda subject: subject.upper()),
        Family("two", lambda view: ("d",), open_, ()),
    ]
    report = judge(Memory({}), families)
    assert handed[-1]["one"] == {"a": "A", "b": "B", "c": "C"}
    assert "package" not in handed[-1]
    assert {key: one.facts for key, one in report.results.items()} == {
        (0, ""): "whole", (1, "a"): "A", (1, "b"): "B", (2, "c"): "C", (3, "d"): None
    }  # fmt: skip


def test_a_table_has_every_row_in_order_and_no_code_twice() -> None:
    one, two, three = (check(code, complaining()) for code in ("one", "two", "three"))
    assert [row.code for row in table([family(one, two), family(three)])] == ["one", "two", "three"]
    assert table([family()]) == []
    with pytest.raises(ValueError, match="code two stands twice"):
        table([family(one, two), family(two)])


def test_a_finding_is_one_line_that_no_terminal_obeys() -> None:
    line = str(Finding("tree-closed", "a\nverify-results: verified\x1b[2J\u202e", "x", "y"))
    assert line == "tree-closed a\\x0averify-results: verified\\x1b[2J\\u202e: found x, expected y"
