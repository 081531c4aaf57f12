"""Holds a document to a JSON Schema with the standard library: the part of draft 2020-12 that the schemas use.

Known keywords: $ref (within the document), type, const, enum, pattern, minLength, maxLength, minimum, maximum,
exclusiveMinimum, properties, required, additionalProperties, propertyNames, minProperties, dependentRequired, items,
minItems, uniqueItems, anyOf, oneOf. A keyword that is not known is an error of the schema, never passed over.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

_ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
_SIDE = {"additionalProperties"}  # judged together with `properties`


class Fault(NamedTuple):
    """Where (a JSON pointer), what was found there, what was expected."""

    place: str
    found: str
    expected: str


def is_number(value: Any) -> bool:
    """Whether a value is a JSON number; true and false are none."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def pointer(place: str, key: object) -> str:
    """The JSON pointer one step further."""
    return "%s/%s" % (place, str(key).replace("~", "~0").replace("/", "~1"))


def show(value: Any) -> str:
    """A value in a line of output, cut."""
    text = "true" if value is True else "false" if value is False else "null" if value is None else str(value)
    text = text if isinstance(value, (bool, int, Decimal)) or value is None else ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


_TYPES: Dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": is_number,
    "null": lambda value: value is None,
}


class Shape:
    """One schema document."""

    def __init__(self, schema: Dict[str, Any]) -> None:
        self._root = schema

    def faults(self, value: Any) -> List[Fault]:
        """Everything in which the value differs from the schema; an empty list when it does not."""
        return list(self._walk(self._root, value, ""))

    def _walk(self, schema: Dict[str, Any], value: Any, place: str) -> Iterator[Fault]:
        kind = schema.get("type")
        if kind is not None and not _TYPES[kind](value):
            yield Fault(place, show(value), "%s %s" % ("an" if kind[0] in "aeio" else "a", kind))
            return
        for keyword, argument in schema.items():
            if keyword not in _ANNOTATIONS and keyword not in _SIDE and keyword != "type":
                yield from getattr(self, "_" + keyword.lstrip("$"))(argument, value, place, schema)

    def _ref(self, argument: str, value: Any, place: str, _: Any) -> Iterator[Fault]:
        yield from self._walk(self._target(argument), value, place)

    def _const(self, argument: Any, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if not _same(argument, value):
            yield Fault(place, show(value), show(argument))

    def _enum(self, argument: List[Any], value: Any, place: str, _: Any) -> Iterator[Fault]:
        if not any(_same(one, value) for one in argument):
            yield Fault(place, show(value), "one of %s" % ", ".join(show(one) for one in argument))

    def _pattern(self, argument: str, value: Any, place: str, _: Any) -> Iterator[Fault]:
        # \Z and not $, which would also pass a line break at the end
        if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", argument), value):
            yield Fault(place, show(value), "text like %s" % argument)

    def _minLength(self, argument: int, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if isinstance(value, str) and len(value) < argument:
            yield Fault(place, "%d characters" % len(value), "at least %d" % argument)

    def _maxLength(self, argument: int, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if isinstance(value, str) and len(value) > argument:
            yield Fault(place, "%d characters" % len(value), "at most %d" % argument)

    def _minimum(self, argument: Any, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if is_number(value) and value < argument:
            yield Fault(place, show(value), "at least %s" % argument)

    def _maximum(self, argument: Any, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if is_number(value) and value > argument:
            yield Fault(place, show(value), "at most %s" % argument)

    def _exclusiveMinimum(self, argument: Any, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if is_number(value) and value <= argument:
            yield Fault(place, show(value), "more than %s" % argument)

    def _properties(self, argument: Dict[str, Any], value: Any, place: str, schema: Dict[str, Any]) -> Iterator[Fault]:
        for key, one in value.items():
            if key in argument:
                yield from self._walk(argument[key], one, pointer(place, key))
            elif schema.get("additionalProperties") is False:
                yield Fault(pointer(place, key), "an unknown key", "only the keys of the schema")

    def _required(self, argument: List[str], value: Any, place: str, _: Any) -> Iterator[Fault]:
        for key in argument:
            if isinstance(value, dict) and key not in value:
                yield Fault(pointer(place, key), "nothing", "this key")

    def _propertyNames(self, argument: Dict[str, Any], value: Any, place: str, schema: Any) -> Iterator[Fault]:
        for key, one in value.items():
            yield from self._walk(argument, key, pointer(place, key))
            yield from self._walk(schema["additionalProperties"], one, pointer(place, key))

    def _minProperties(self, argument: int, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if len(value) < argument:
            yield Fault(place, "%d keys" % len(value), "at least %d" % argument)

    def _dependentRequired(self, argument: Dict[str, List[str]], value: Any, place: str, _: Any) -> Iterator[Fault]:
        for key, others in argument.items():
            if key in value:
                yield from self._required(others, value, place, None)

    def _items(self, argument: Dict[str, Any], value: Any, place: str, _: Any) -> Iterator[Fault]:
        for number, one in enumerate(value):
            yield from self._walk(argument, one, pointer(place, number))

    def _minItems(self, argument: int, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if len(value) < argument:
            yield Fault(place, "%d items" % len(value), "at least %d" % argument)

    def _uniqueItems(self, argument: bool, value: Any, place: str, _: Any) -> Iterator[Fault]:
        if argument and any(_same(one, other) for n, one in enumerate(value) for other in value[:n]):
            yield Fault(place, show(value), "no item twice")

    def _has_required(self, branch: Dict[str, Any], value: Any) -> bool:
        """Whether a branch's keys and those of its protocol are all there: quick, and no branch that fits fails it."""
        while "$ref" in branch:
            branch = self._target(branch["$ref"])
        if not isinstance(value, dict):
            return True
        inner = branch.get("properties", {}).get("protocol", {}).get("required", [])
        protocol = value.get("protocol")
        known = not inner or (isinstance(protocol, dict) and all(key in protocol for key in inner))
        return known and all(key in value for key in branch.get("required", []))

    def _target(self, reference: str) -> Dict[str, Any]:
        target = self._root
        for step in reference[2:].split("/"):
            target = target[step]
        return target

    def _branches(self, argument: List[Dict[str, Any]], value: Any, place: str) -> Tuple[int, List[Fault]]:
        """How many branches the value fits, and the faults of the one it is nearest to."""
        likely = [branch for branch in argument if self._has_required(branch, value)]
        tried = [list(self._walk(branch, value, place)) for branch in likely or argument]
        return sum(not faults for faults in tried), min(tried, key=len)

    def _anyOf(self, argument: List[Dict[str, Any]], value: Any, place: str, _: Any) -> Iterator[Fault]:
        fitting, nearest = self._branches(argument, value, place)
        if not fitting:
            yield from nearest

    def _oneOf(self, argument: List[Dict[str, Any]], value: Any, place: str, _: Any) -> Iterator[Fault]:
        fitting, nearest = self._branches(argument, value, place)
        if not fitting:
            yield from nearest
        elif fitting > 1:
            yield Fault(place, "a value of %d kinds" % fitting, "of exactly one")
