"""Schemas made into functions: a quick proof that a value fits, for the many values that do.

`acceptor` makes of the JSON Schema (2020-12) keywords that `schemas/` uses one function out of small ones. True means that
jsonschema would find nothing; False means only that jsonschema must be asked, so its verdict stands in every case.
Why: jsonschema takes seconds for the small files of a package, and a hundred times as long as this for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Test = Callable[[Any], bool]
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
_SILENT = {"$id", "$schema", "$defs", "$comment", "title", "description"}
_STRING = {"minLength", "maxLength", "pattern"}
_NUMBER = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_ARRAY = {"items", "minItems", "maxItems", "uniqueItems"}
_OBJECT = {"properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties"}
_OF = {"string": _STRING, "integer": _NUMBER, "number": _NUMBER, "array": _ARRAY, "object": _OBJECT}
"""The keywords that speak of values of a type, and of no others."""
_INFINITY = float("inf")


class Unsupported(Exception):
    """A schema uses a keyword, or uses it in a way, that is left to jsonschema."""


def acceptor(schemas: Mapping[str, Any], name: str) -> Test | None:
    """Return the function for `schemas[name]` (keys are the `$id`s), or None when only jsonschema can judge it."""
    return Acceptors(schemas).find(name)


class Acceptors:
    """The functions for a set of schemas, each made when first asked for; what they share is made once."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._known: dict[str, Test | None] = {}

    def find(self, name: str) -> Test | None:
        """Return the function for the schema of this name, as `acceptor` does."""
        try:
            return self._reference(f"{name}#", name)
        except Unsupported:
            return None

    def _reference(self, reference: str, file: str) -> Test:
        """Return the function for `file#/pointer`, or for `#/pointer` in this file."""
        target, _, pointer = reference.partition("#")
        target = target or file
        reference = f"{target}#{pointer}"
        if reference not in self._known:
            schema = self._schemas.get(target)
            for part in pointer.strip("/").split("/") if pointer else ():
                schema = schema.get(part) if isinstance(schema, dict) else None
            self._known[reference] = None  # as long as it is being made, and after that if it cannot be
            self._known[reference] = self._test(schema, target)
        known = self._known[reference]
        if known is None:
            raise Unsupported(reference)
        return known

    def _test(self, schema: Any, file: str) -> Test:
        """Return a function that is true only for values that fit the schema."""
        if schema is True:
            return _anything
        if not isinstance(schema, dict):
            raise Unsupported("a schema that is no object")
        keys = schema.keys() - _SILENT
        tests = []
        if "$ref" in keys:
            tests.append(self._reference(schema["$ref"], file))
        if "const" in keys:
            tests.append(_one_of([schema["const"]]))
        if "enum" in keys:
            tests.append(_one_of(schema["enum"]))
        if "anyOf" in keys:
            tests.append(_any([self._test(one, file) for one in schema["anyOf"]]))
        if "allOf" in keys:
            tests += [self._test(one, file) for one in schema["allOf"]]
        keys -= {"$ref", "const", "enum", "anyOf", "allOf"}
        if "type" in keys:
            keys.discard("type")
            kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
            tests.append(_any([self._of_type(kind, schema, file) for kind in kinds]))
            keys -= {key for kind in kinds for key in _OF.get(kind, ())}
        else:
            for kind in ("string", "number", "array", "object"):
                if keys & _OF[kind]:
                    tests.append(_unless(_TYPES[kind], self._of_type(kind, schema, file)))
                    keys -= _OF[kind]
        if keys:
            raise Unsupported(", ".join(sorted(keys)))
        return _all(tests)

    def _of_type(self, kind: str, schema: dict[str, Any], file: str) -> Test:
        """Return a function that is true only for values of this type that fit what the schema says of such values."""
        if kind not in _TYPES:
            raise Unsupported(kind)
        types = _TYPES[kind]
        if not schema.keys() & _OF.get(kind, set()):
            return lambda x: type(x) in types
        if kind == "string":
            return _string(schema)
        if kind == "array":
            return self._array(schema, file)
        return self._object(schema, file) if kind == "object" else _number(types, schema)

    def _array(self, schema: dict[str, Any], file: str) -> Test:
        least, most = schema.get("minItems", 0), schema.get("maxItems", _INFINITY)
        item_fits, unique = self._test(schema.get("items", True), file), schema.get("uniqueItems", False)

        def fits(x: Any) -> bool:
            return (
                type(x) is list
                and least <= len(x) <= most
                and all(map(item_fits, x))
                and (not unique or (all(type(one) is str for one in x) and len(set(x)) == len(x)))
            )

        return fits

    def _object(self, schema: dict[str, Any], file: str) -> Test:
        least, most = schema.get("minProperties", 0), schema.get("maxProperties", _INFINITY)
        properties = {key: self._test(one, file) for key, one in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        rest, named = schema.get("additionalProperties", True), schema.get("propertyNames", True)
        names_fit = None if named is True else self._test(named, file)
        others_fit = _nothing if rest is False else self._test(rest, file)

        def fits(x: Any) -> bool:
            if type(x) is not dict or not least <= len(x) <= most or not required <= x.keys():
                return False
            if names_fit is not None and not all(map(names_fit, x)):
                return False
            for key, value in x.items():  # noqa: SIM110  # a generator takes twice the time
                if not properties.get(key, others_fit)(value):
                    return False
            return True

        return fits


def _anything(x: Any) -> bool:
    return True


def _nothing(x: Any) -> bool:
    return False


def _all(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda x: all(test(x) for test in tests)


def _any(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:  # nearly always: something or null
        one, other = tests
        return lambda x: one(x) or other(x)
    return lambda x: any(test(x) for test in tests)


def _unless(types: tuple[type, ...], test: Test) -> Test:
    """Without a type, keywords speak only of the values that they fit."""
    return lambda x: type(x) not in types or test(x)


def _one_of(options: list[Any]) -> Test:
    """Equality of JSON is not Python's (true is not 1), so only the same type is accepted here."""
    if len(options) == 1 and isinstance(options[0], list) and all(type(one) is str for one in options[0]):
        return lambda x: type(x) is list and all(type(one) is str for one in x) and x == options[0]
    if not {type(option) for option in options} <= {str, int, bool, type(None)}:
        raise Unsupported("an enumeration of other than scalars")
    known = frozenset((type(option), option) for option in options)
    return lambda x: type(x) in (str, int, bool, type(None)) and (type(x), x) in known


def _string(schema: dict[str, Any]) -> Test:
    least, most = schema.get("minLength", 0), schema.get("maxLength", _INFINITY)
    search = re.compile(schema["pattern"]).search if "pattern" in schema else None
    return lambda x: type(x) is str and least <= len(x) <= most and (search is None or search(x) is not None)


def _number(types: tuple[type, ...], schema: dict[str, Any]) -> Test:
    least, most = schema.get("minimum", -_INFINITY), schema.get("maximum", _INFINITY)
    above, below = schema.get("exclusiveMinimum", -_INFINITY), schema.get("exclusiveMaximum", _INFINITY)
    return lambda x: type(x) in types and least <= x <= most and above < x < below
