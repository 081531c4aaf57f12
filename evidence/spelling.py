"""Schemas made into patterns: long tables in canonical form are proved to fit their schema without being parsed.

`speller` compiles the JSON Schema (2020-12) of a file whose bulk is one list of objects (samples, receipts) into regular
expressions over its bytes. True means that the text is strict JSON, each key once, and that jsonschema would find nothing;
False means only that the text must be parsed and judged. Whatever cannot be spelled is left out of the patterns, never let
in: they accept plain ASCII strings without escapes, numbers of at most fifteen digits before the point, keys in order.
Why: most of the JSON of a package is such rows, and parsing, writing again and judging them costs four times as much.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_SILENT = {"$id", "$schema", "$defs", "$comment", "title", "description"}
_PLAIN = r"[ !#-\[\]-~]"
"""A character that stands for itself in a JSON string."""
_WORD = re.compile(rf"{_PLAIN}*")
_KEY = re.compile(r"[A-Za-z0-9_-]+")
_CLASS = r"\[(?:a-z|a-f|A-Z|[0-9]-[0-9]|[a-zA-Z](?!-[^\]])|[0-9_:/+.](?!-[^\]])|-(?=\]))+\]"
_SIMPLE = re.compile(rf"\^((?:[A-Za-z0-9_:/ -]|\\\.|{_CLASS}|\((?!\?)|[)|?*+]|\{{[0-9]+(?:,[0-9]*)?\}})*)\$")
"""A pattern that matches plain characters alone, whole strings, and means the same for text and bytes."""
_DIGITS = 15
"""So many digits are below 2^53."""


class Unspelled(Exception):
    """A schema says something that no pattern here does."""


def speller(schemas: Mapping[str, Any], name: str) -> Callable[[bytes], bool] | None:
    """Return the proof for `schemas[name]` (keys are the `$id`s), or None when its texts have to be parsed."""
    try:
        head, row, tail = _Spelling(schemas, name).table()
    except Unspelled:
        return None

    def prove(text: bytes) -> bool:
        found = head(text)
        while found is not None:
            at = found.end()
            found = row(text, at)
            if found is not None and found.lastindex is None:  # no comma: the last row
                return tail(text, found.end()) is not None
        return False

    return prove


class _Spelling:
    """The text of values by their schemas; `_file` is where a reference without a file leads."""

    def __init__(self, schemas: Mapping[str, Any], name: str) -> None:
        self._schemas = schemas
        self._name = name

    def table(self) -> tuple[Any, Any, Any]:
        """Return matchers for what comes before the rows, for one row (group 1 is its comma), and for the rest."""
        schema, file = self._schemas.get(self._name), self._name
        properties = self._fixed(schema)
        lists = [
            key for key in properties if isinstance(properties[key], dict) and properties[key].get("type") == "array"
        ]
        if len(lists) != 1 or properties[lists[0]].keys() - _SILENT != {"type", "items"}:
            raise Unspelled("not one list")
        lines = {
            key: f'  "{key}": ' + ("\\[\n" if key in lists else self._value(properties[key], file, 1))
            for key in properties
        }
        keys = sorted(properties)
        cut = keys.index(lists[0])
        head = "\\{\n" + ",\n".join(lines[key] for key in keys[: cut + 1])
        row = f"    {self._value(properties[lists[0]]['items'], file, 2)}(,)?\n"
        tail = ",\n".join(["  \\]", *(lines[key] for key in keys[cut + 1 :])]) + "\n\\}\n"
        patterns = [re.compile(text.encode("ascii")) for text in (head, row, tail)]
        return patterns[0].match, patterns[1].match, patterns[2].fullmatch

    def _fixed(self, schema: Any) -> dict[str, Any]:
        """The properties of an object that has exactly these."""
        if not isinstance(schema, dict) or schema.keys() - _SILENT != {
            "type", "properties", "required", "additionalProperties"
        }:  # fmt: skip
            raise Unspelled("another kind of object")
        properties = schema["properties"]
        fixed = schema["type"] == "object" and schema["additionalProperties"] is False
        if not fixed or set(schema["required"]) != set(properties) or not all(map(_KEY.fullmatch, properties)):
            raise Unspelled("keys that may be missing")
        return dict(properties)

    def _value(self, schema: Any, file: str, depth: int) -> str:
        """The pattern of a value in canonical form that stands in a line indented by `depth` steps."""
        if not isinstance(schema, dict):
            raise Unspelled("a schema that is no object")
        keys = schema.keys() - _SILENT
        if keys == {"$ref"}:
            target, _, pointer = schema["$ref"].partition("#")
            found = self._schemas.get(target or file)
            for part in pointer.strip("/").split("/"):
                found = found.get(part) if isinstance(found, dict) else None
            return self._value(found, target or file, depth)
        if keys == {"anyOf"}:
            return f"(?:{'|'.join(self._value(one, file, depth) for one in schema['anyOf'])})"
        if keys in ({"enum"}, {"const"}):
            return f"(?:{'|'.join(map(_constant, schema.get('enum', [schema.get('const')])))})"
        kind = schema.get("type")
        rest = {key: schema[key] for key in keys if key != "type"}
        if kind == "null" and not rest:
            return "null"
        if kind == "boolean" and not rest:
            return "(?:true|false)"
        if kind == "string":
            return _string(rest)
        if kind in ("integer", "number") and rest.keys() <= {"minimum", "maximum"}:
            return (_integer if kind == "integer" else _number)(
                rest.get("minimum", 0), rest.get("maximum", 10**_DIGITS)
            )
        if kind == "object" and rest.keys() == {"propertyNames", "additionalProperties"}:
            return self._named(rest["propertyNames"], rest["additionalProperties"], file, depth)
        if kind == "object":
            properties = self._fixed(schema)
            inner = "  " * (depth + 1)
            lines = [f'{inner}"{key}": {self._value(properties[key], file, depth + 1)}' for key in sorted(properties)]
            return "\\{\n" + ",\n".join(lines) + f"\n{'  ' * depth}\\}}"
        raise Unspelled(str(kind))

    def _named(self, names: Any, item: Any, file: str, depth: int) -> str:
        """An object that may have each of some keys: each a line that a comma ends, or the end of the object."""
        if not isinstance(names, dict) or names.keys() != {"enum"}:
            raise Unspelled("keys of any name")
        inner, end = "  " * (depth + 1), f"\n{'  ' * depth}\\}}"
        value = self._value(item, file, depth + 1)
        lines = []
        for name in sorted(names["enum"]):
            if not isinstance(name, str) or not _KEY.fullmatch(name):
                raise Unspelled(str(name))
            lines.append(f'(?:{inner}"{name}": {value}(?:,\n|(?={end})))?')
        return f"(?:\\{{\\}}|\\{{\n(?!\n){''.join(lines)}(?<!,\n){end})"


def _constant(value: Any) -> str:
    if value is None or type(value) in (bool, int) or (type(value) is str and _WORD.fullmatch(value)):
        return re.escape(json.dumps(value))
    raise Unspelled("a constant of many parts")


def _string(rest: dict[str, Any]) -> str:
    if rest.keys() == {"pattern"}:
        simple = _SIMPLE.fullmatch(rest["pattern"])
        if simple is None:
            raise Unspelled(rest["pattern"])
        body, depth = simple[1], 0
        for one in body:
            depth += (one == "(") - (one == ")")
            if one == "|" and not depth:
                raise Unspelled(rest["pattern"])  # its anchors hold at one side only
        return f'"{body.replace("(", "(?:")}"'
    if not rest.keys() <= {"minLength", "maxLength"}:
        raise Unspelled("a string of another kind")
    return f'"{_PLAIN}{{{rest.get("minLength", 0)},{rest.get("maxLength", "")}}}"'


def _integer(least: Any, most: Any) -> str:
    """Some of the integers from `least` to `most`, never another."""
    if type(least) is not int or type(most) not in (int, float) or most < 0:
        raise Unspelled("bounds")
    digits = min(len(str(int(most))) - 1, _DIGITS)
    if least in (0, 1) and digits:
        return ("(?:0|" if least <= 0 else "(?:") + f"[1-9][0-9]{{0,{digits - 1}}})"
    low, high = str(least), str(most)
    if least >= 0 and type(most) is int and len(low) == len(high) and {*low[1:]} <= {"0"} and {*high[1:]} <= {"9"}:
        return f"[{low[0]}-{high[0]}][0-9]{{{len(low) - 1}}}"
    raise Unspelled("bounds")


def _number(least: Any, most: Any) -> str:
    """Some of the numbers from 0 to `most`, as they are written canonically."""
    if least != 0 or most < 10:
        raise Unspelled("bounds")
    digits = min(len(str(int(most))) - 1, _DIGITS)
    return rf"(?:0|[1-9][0-9]{{0,{digits - 1}}})(?:\.[0-9]{{1,20}})?(?:e-[0-9]{{1,2}})?"
