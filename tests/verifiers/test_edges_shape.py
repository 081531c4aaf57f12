"""Shapes of documents at their edges: what fits, and what is said, with its place, of what does not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from checking.shape import (
    BOOL,
    COUNT,
    HASH,
    ID,
    INSTANT,
    INTEGER,
    LAG,
    LINE,
    NATURAL,
    NUMBER,
    RELATION,
    REVISION,
    SECONDS,
    STATUS,
    TEXT,
    VERSION,
    Keys,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    Open,
    Shape,
    faults,
    matching,
)

NANO = Decimal("0.000000001")
FITS: list[tuple[Shape, list[Any], list[Any]]] = [
    (TEXT, ["", "a"], [1, None, b"a"]),
    (LINE, ["a", " "], ["", None, 1]),
    (BOOL, [True, False], [0, 1, None]),
    (COUNT, [0, 1, 10**12], [-1, True, Decimal(1), "1", None]),
    (NATURAL, [1, 2], [0, -1, True]),
    (INTEGER, [0, -5], [True, Decimal(1), None]),
    (NUMBER, [0, -1, Decimal("0.5")], [True, 0.5, "1"]),
    (SECONDS, [0, 10**9 - 1, Decimal(0), NANO, Decimal("999999999.999999999"), Decimal("1E+3")],
     [-1, 10**9, -NANO, Decimal(10**9), Decimal("0.0000000001"), Decimal("1.0000000000"), True]),
    (LAG, [0, -1, -NANO, Decimal("-0.5"), 10**9 - 1, 1 - 10**9], [10**9, -(10**9), Decimal("0.0000000001"), Decimal("-1e-10"), True]),
    (HASH, ["0" * 64, "f" * 64], ["0" * 63, "0" * 65, "F" * 64, "g" * 64, "0" * 64 + "\n"]),
    (REVISION, ["a" * 40], ["a" * 39, "a" * 41, "A" * 40]),
    (ID, ["a", "0", "a.b-c", "a" + "b" * 62], ["", ".a", "-a", "A", "a_b", "a" + "b" * 63, "a\n"]),
    (INSTANT, ["2026-12-31T23:59:59.999999Z", "2000-01-01T00:00:00.000000Z", "2026-10-30T19:09:00.000000Z"],
     ["1999-01-01T00:00:00.000000Z", "2026-13-01T00:00:00.000000Z", "2026-00-01T00:00:00.000000Z", "2026-01-32T00:00:00.000000Z",
      "2026-01-00T00:00:00.000000Z", "2026-01-01T24:00:00.000000Z", "2026-01-01T00:60:00.000000Z", "2026-01-01T00:00:60.000000Z",
      "2026-01-01T00:00:00.00000Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000+00:00", "2026-01-01 00:00:00.000000Z"]),
    (RELATION, ["0/1", "-1/2", "10/3"], ["1/0", "01/2", "1/02", "1", "+1/2", "-/2", "1/-2"]),
    (STATUS, [100, 200, 599], [99, 600, True, "200"]),
    (VERSION, [1], [0, 2, True, Decimal(1), "1"]),
    (OneOf("a", "b", None), ["a", "b", None], ["c", "", 1, "ab"]),
    (OneOf(0, 1), [0, 1], [True, False, 2, Decimal(1)]),
    (Maybe(COUNT), [None, 0], [-1, "", False]),
    (ListOf(COUNT), [[], [0], [1, 2, 3]], [{}, None, (1,), [-1], [1, None], [1, 2, "3"], ["1", 2]]),
    (ListOf(COUNT, 2), [[1, 2]], [[], [1], [1, 2, 3], [1, -2]]),
    (ListOf(COUNT, least=1, most=2), [[1], [1, 2]], [[], [1, 2, 3]]),
    (ListOf(TEXT, unique=True), [[], ["a"], ["a", "b"]], [["a", "a"], ["a", "b", "a"]]),
    (ListOf(TEXT), [["a", "a"]], []),
    (ListOf(ListOf(COUNT, 1)), [[], [[1], [2]]], [[[1], []], [[1], [-1]], [[1], 2]]),
    (MapOf(ID, COUNT), [{}, {"a": 1, "b": 0}], [[], {"A": 1}, {"a": -1}, {"a": 1, "B": 2}, {"a": 1, "b": None}]),
    (Keys(a=COUNT, b=TEXT), [{"a": 1, "b": ""}], [[], {}, {"a": 1}, {"b": ""}, {"a": 1, "b": "", "c": 1}, {"a": -1, "b": ""}, {"a": 1, "c": ""}]),
    (Keys(), [{}], [{"a": 1}, []]),
    (Keys(a=Keys(b=ListOf(Keys(c=COUNT)))), [{"a": {"b": [{"c": 1}, {"c": 2}]}}], [{"a": {"b": [{"c": 1}, {"c": -2}]}}, {"a": {"b": [{"c": 1}, {}]}}]),
    (Open(), [{}, {"a": 1}], [[], None, "a"]),
    (matching("a+", "as"), ["a", "aa"], ["", "ab", "ba", "a\n"]),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "fitting", "wrong"), FITS)
def test_what_fits_a_shape_and_what_does_not(shape: Shape, fitting: list[Any], wrong: list[Any]) -> None:
    for value in fitting:
        assert shape.fits(value), value
        assert faults(value, shape) == [], value
    for value in wrong:
        assert not shape.fits(value), value
        assert faults(value, shape), value


@pytest.mark.parametrize(("shape", "fitting", "wrong"), FITS)
def test_many_values_fit_when_each_of_them_does(shape: Shape, fitting: list[Any], wrong: list[Any]) -> None:
    lists = ListOf(shape)
    assert lists.fits([])
    assert lists.fits(fitting)
    assert lists.fits([*fitting, *fitting])
    for value in wrong:
        for many in ([value], [*fitting, value], [value, *fitting], [value, value], [*fitting, value, *fitting]):
            assert not lists.fits(many), value
    rows = ListOf(Keys(x=shape, y=COUNT))
    assert rows.fits([{"x": one, "y": 1} for one in fitting])
    for value in wrong:
        assert not rows.fits([*[{"x": one, "y": 1} for one in fitting], {"x": value, "y": 1}])
    maybe = ListOf(Maybe(shape))
    assert maybe.fits([None, *fitting, None])
    for value in wrong:
        assert maybe.fits([None, value, *fitting]) is (value is None)
    table = MapOf(TEXT, shape)
    assert table.fits({str(number): one for number, one in enumerate(fitting)})
    for value in wrong:
        assert not table.fits({"a": fitting[0], "b": value})


@pytest.mark.parametrize(
    ("shape", "value", "told"),
    [
        (TEXT, 1, ("schema-type", "", "1", "a string")),
        (COUNT, -1, ("schema-value", "", "-1", "an integer, 0 or more")),
        (COUNT, True, ("schema-type", "", "true", "an integer, 0 or more")),
        (OneOf("a", 1, None), "b", ("schema-value", "", "b", "a or 1 or null")),
        (OneOf("a", 1), None, ("schema-type", "", "null", "a or 1")),
        (OneOf("a"), 1, ("schema-type", "", "1", "a")),
        (Maybe(COUNT), -1, ("schema-value", "", "-1", "an integer, 0 or more")),
        (ListOf(COUNT), {}, ("schema-type", "", "{}", "a list")),
        (ListOf(COUNT, 2), {}, ("schema-type", "", "{}", "a list of 2")),
        (ListOf(COUNT, 2), [1], ("schema-value", "", "1 entries", "2")),
        (ListOf(COUNT, least=1, most=2), [1, 2, 3], ("schema-value", "", "3 entries", "1 to 2")),
        (ListOf(COUNT), [1, -1, 2], ("schema-value", "/1", "-1", "an integer, 0 or more")),
        (ListOf(TEXT, unique=True), ["a", "a"], ("schema-value", "", "an entry twice", "each entry once")),
        (MapOf(ID, COUNT), [], ("schema-type", "", "[]", "an object")),
        (MapOf(ID, COUNT), {"A/~": 1}, ("schema-unknown-key", "/A~1~0", "key A/~", "an id")),
        (MapOf(TEXT, COUNT), {"a/b": -1}, ("schema-value", "/a~1b", "-1", "an integer, 0 or more")),
        (Keys(a=COUNT), [], ("schema-type", "", "[]", "an object")),
        (Keys(a=COUNT), {}, ("schema-missing-key", "/a", "nothing", "an integer, 0 or more")),
        (Keys(a=COUNT), {"a": 1, "b": 2}, ("schema-unknown-key", "/b", "key b", "no such key")),
        (Keys(a=Maybe(COUNT)), {}, ("schema-missing-key", "/a", "nothing", "an integer, 0 or more or null")),
        (Keys(a=Keys(b=ListOf(COUNT))), {"a": {"b": [1, "x"]}}, ("schema-type", "/a/b/1", "x", "an integer, 0 or more")),
        (Open(), 1, ("schema-type", "", "1", "an object")),
    ],
)  # fmt: skip
def test_a_fault_says_code_place_found_and_expected(shape: Shape, value: Any, told: tuple[str, str, str, str]) -> None:
    assert faults(value, shape) == [told]


def test_every_fault_is_told_in_order() -> None:
    shape = Keys(a=COUNT, b=TEXT, c=ListOf(COUNT))
    assert faults({"a": -1, "c": [1, "x", -2], "d": 1}, shape) == [
        ("schema-missing-key", "/b", "nothing", "a string"),
        ("schema-value", "/a", "-1", "an integer, 0 or more"),
        ("schema-type", "/c/1", "x", "an integer, 0 or more"),
        ("schema-value", "/c/2", "-2", "an integer, 0 or more"),
        ("schema-unknown-key", "/d", "key d", "no such key"),
    ]
    assert faults({"a": -1, "B": 2}, MapOf(ID, COUNT)) == [
        ("schema-value", "/a", "-1", "an integer, 0 or more"),
        ("schema-unknown-key", "/B", "key B", "an id"),
    ]
    # Where an entry is wrong already, that it stands twice as well is not told.
    assert faults(["a", "a", 1], ListOf(TEXT, unique=True)) == [("schema-type", "/2", "1", "a string")]


def test_lists_are_long_enough_for_any_package() -> None:
    assert ListOf(COUNT).fits([0] * 10**6)
    assert not ListOf(COUNT).fits([0] * (10**6 + 1))
