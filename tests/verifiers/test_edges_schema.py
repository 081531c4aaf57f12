"""The verifiers' own reader of JSON Schema, keyword by keyword at its edge, beside jsonschema's reading of the same."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from checking.rules.lifecycle_shape import Fault, Shape, is_number, pointer, show

A, B = {"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}


def kind(name: str, *required: str) -> dict[str, Any]:
    """A branch as the records have them: told by a constant and by the keys of its protocol."""
    return {
        "type": "object",
        "required": ["kind", "protocol"],
        "properties": {"kind": {"const": name}, "protocol": {"type": "object", "required": list(required)}},
    }


FITS = [
    ({"type": "object"}, [{}], [[], "a", 1, None, True]),
    ({"type": "array"}, [[]], [{}, "a", None]),
    ({"type": "string"}, [""], [1, None, []]),
    ({"type": "boolean"}, [True, False], [0, 1, None]),
    ({"type": "integer"}, [0, -3], [True, "1", None]),
    ({"type": "number"}, [0, 1.5, Decimal("1.5")], [True, False, "1", None]),
    ({"type": "null"}, [None], [0, False, ""]),
    ({"const": 1}, [1], [True, 2, "1"]),
    ({"const": True}, [True], [1, False]),
    ({"const": False}, [False], [0, True]),
    ({"const": "a"}, ["a"], ["b", "", "A"]),
    ({"enum": [1, "a", None]}, [1, "a", None], [True, 2, "b", 0]),
    ({"enum": [False]}, [False], [0, None]),
    ({"pattern": "^a+$"}, ["a", "aa", 7, None], ["", "b", "ab", "a\n"]),
    ({"pattern": "b"}, ["abc", "b"], ["ac"]),
    ({"minLength": 2}, ["ab", "abc", 1, []], ["a", ""]),
    ({"maxLength": 2}, ["ab", "", 111], ["abc"]),
    ({"minimum": 2}, [2, 3, "1", True], [1, Decimal("1.9")]),
    ({"maximum": 2}, [2, 1, "3", True], [3, Decimal("2.1")]),
    ({"exclusiveMinimum": 2}, [3, Decimal("2.1"), "1"], [2, 1]),
    ({"required": ["a", "b"]}, [{"a": 1, "b": 2, "c": 3}, "a", []], [{}, {"a": 1}, {"b": 1}]),
    ({"type": "object", "properties": {"a": {"type": "string"}}}, [{}, {"a": "x"}, {"b": 1}], [{"a": 1}]),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
        [{}, {"a": "x"}],
        [{"a": 1}, {"b": 1}, {"a": "x", "b": 1}],
    ),
    (
        {"type": "object", "propertyNames": {"pattern": "^[a-z]$"}, "additionalProperties": {"type": "integer"}},
        [{}, {"a": 1, "b": 2}],
        [{"A": 1}, {"a": "1"}, {"a": 1, "bb": 2}],
    ),
    ({"type": "object", "minProperties": 2}, [{"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}], [{}, {"a": 1}]),
    (
        {"type": "object", "dependentRequired": {"a": ["b", "c"]}},
        [{}, {"b": 1}, {"a": 1, "b": 2, "c": 3}],
        [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 3}],
    ),
    ({"type": "array", "items": {"type": "integer"}}, [[], [1, 2]], [["a"], [1, "a"], [1, None, 3]]),
    ({"type": "array", "minItems": 2}, [[1, 2], [1, 2, 3]], [[], [1]]),
    (
        {"type": "array", "uniqueItems": True},
        [[], [1], [1, 2, True], ["a", "b", "c"]],
        [[1, 1], ["a", "b", "a"], ["b", "a", "a"], [True, 1, True]],
    ),
    ({"type": "array", "uniqueItems": False}, [[1, 1]], []),
    ({"anyOf": [A, B]}, [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}], [{}, {"c": 1}, "a", None]),
    ({"oneOf": [A, B]}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 2}, "a", None]),
    ({"anyOf": [A, {"type": "string"}]}, ["a", {"a": 1}], [{}, 1, []]),
    ({"oneOf": [{"type": "null"}, {"type": "string", "minLength": 1}]}, [None, "a"], ["", 1, {}]),
    (
        {"$defs": {"name": {"type": "string"}}, "type": "array", "items": {"$ref": "#/$defs/name"}},
        [[], ["a"]],
        [[1], ["a", None]],
    ),
    (
        {"$defs": {"one": {"$ref": "#/$defs/two"}, "two": A}, "oneOf": [{"$ref": "#/$defs/one"}, B]},
        [{"a": 1}, {"b": 2}],
        [{"a": 1, "b": 2}, {}, "a"],
    ),
    (
        {"oneOf": [kind("x", "rounds"), kind("y", "limit")]},
        [{"kind": "x", "protocol": {"rounds": 1}}, {"kind": "y", "protocol": {"limit": 1, "rounds": 2}}],
        [
            {"kind": "x", "protocol": {"limit": 1}},
            {"kind": "z", "protocol": {"rounds": 1, "limit": 2}},
            {"kind": "x"},
            {"kind": "x", "protocol": ["rounds"]},
            {"kind": "x", "protocol": None},
        ],
    ),
]


@pytest.mark.parametrize(("schema", "fitting", "wrong"), FITS, ids=[str(row[0])[:60] for row in FITS])
def test_a_value_fits_exactly_when_jsonschema_says_so(schema: dict, fitting: list, wrong: list) -> None:
    # jsonschema takes $ for "before a last line break" too, and Decimal for a number only when it is told so
    types = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("number", lambda _, value: is_number(value))
    other = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=types)(schema)
    for value in fitting:
        assert Shape(schema).faults(value) == [], value
        assert other.is_valid(value), value
    for value in wrong:
        assert Shape(schema).faults(value), value
        assert not other.is_valid(value) or str(value).endswith("\n"), value


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "object"}, 1, [("", "1", "an object")]),
        ({"type": "integer"}, "a", [("", "'a'", "an integer")]),
        ({"type": "string"}, None, [("", "null", "a string")]),
        ({"type": "number"}, True, [("", "true", "a number")]),
        ({"const": 3}, 4, [("", "4", "3")]),
        ({"enum": ["a", 2]}, "b", [("", "'b'", "one of 'a', 2")]),
        ({"pattern": "^a$"}, "b", [("", "'b'", "text like ^a$")]),
        ({"minLength": 3}, "ab", [("", "2 characters", "at least 3")]),
        ({"maxLength": 1}, "ab", [("", "2 characters", "at most 1")]),
        ({"minimum": 1}, 0, [("", "0", "at least 1")]),
        ({"maximum": 1}, 2, [("", "2", "at most 1")]),
        ({"exclusiveMinimum": 1}, 1, [("", "1", "more than 1")]),
        ({"required": ["a", "b"]}, {"a": 1}, [("/b", "nothing", "this key")]),
        ({"properties": {}, "additionalProperties": False}, {"a/b": 1}, [("/a~1b", "an unknown key", "only the keys of the schema")]),
        ({"properties": {"a": {"properties": {"b": {"const": 1}}}}}, {"a": {"b": 2}}, [("/a/b", "2", "1")]),
        ({"minProperties": 1}, {}, [("", "0 keys", "at least 1")]),
        ({"items": {"const": 1}}, [1, 2, 3], [("/1", "2", "1"), ("/2", "3", "1")]),
        ({"minItems": 1}, [], [("", "0 items", "at least 1")]),
        ({"uniqueItems": True}, [1, 1], [("", "[1, 1]", "no item twice")]),
        ({"oneOf": [A, B]}, {"a": 1, "b": 2}, [("", "a value of 2 kinds", "of exactly one")]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, [("/b", "nothing", "this key")]),
    ],
)  # fmt: skip
def test_a_fault_says_place_found_and_expected(schema: dict, value: Any, told: list[tuple[str, str, str]]) -> None:
    assert Shape(schema).faults(value) == [Fault(*one) for one in told]


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_the_faults_told_are_those_of_the_kind_that_has_its_keys(keyword: str) -> None:
    few = kind("x", "rounds")
    many = kind("y", "limit")
    many["properties"] |= {name: {"type": "integer"} for name in ("p", "q", "r")}
    shape = Shape({keyword: [few, many]})
    value = {"kind": "z", "protocol": {"limit": 1}, "p": "1", "q": "2", "r": "3"}
    assert [fault.place for fault in shape.faults(value)] == ["/kind", "/p", "/q", "/r"]
    # Where no kind has its keys, the nearest is told.
    assert [fault.place for fault in shape.faults({**value, "protocol": {}})] == ["/kind", "/protocol/rounds"]
    assert [fault.place for fault in shape.faults({"kind": "y", "protocol": {}})] == ["/protocol/limit"]


def test_a_keyword_that_is_not_known_is_an_error() -> None:
    with pytest.raises(AttributeError):
        Shape({"contains": {}}).faults([])


def test_a_pointer_escapes_and_a_value_is_shown_on_one_line() -> None:
    assert [pointer("/a", one) for one in ("b", "c/d", "e~f", 3)] == ["/a/b", "/a/c~1d", "/a/e~0f", "/a/3"]
    assert [show(one) for one in (True, False, None, 1, Decimal("1.50"), "a\n\xe9", [1])] == [
        "true", "false", "null", "1", "1.50", r"'a\n\xe9'", "[1]",
    ]  # fmt: skip
    assert show("x" * 78) == "'" + "x" * 78 + "'"
    assert show("x" * 79) == "'" + "x" * 76 + "..."
