"""Schemas made into Python: a quick proof that a value fits, for the many values that do.

`acceptor` compiles the JSON Schema (2020-12) keywords that `schemas/` uses into one function. True means that
jsonschema would find nothing; False means only that jsonschema must be asked, so its verdict stands in every case.
Why: a package has tens of thousands of samples and receipts, and jsonschema takes most of a minute for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TYPES = {
    "string": "type({0}) is str",
    "integer": "type({0}) is int",
    "number": "(type({0}) is int or type({0}) is float)",
    "boolean": "type({0}) is bool",
    "null": "{0} is None",
    "object": "type({0}) is dict",
    "array": "type({0}) is list",
}
_SILENT = {"$id", "$schema", "$defs", "$comment", "title", "description"}
_STRING = {"minLength", "maxLength", "pattern"}
_NUMBER = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_ARRAY = {"items", "minItems", "maxItems", "uniqueItems"}
_OBJECT = {"properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties"}


_SCALAR = _SILENT | _STRING | _NUMBER | {"type", "enum", "const"}


class Unsupported(Exception):
    """A schema uses a keyword, or uses it in a way, that is left to jsonschema."""


def acceptor(schemas: Mapping[str, Any], name: str) -> Callable[[Any], bool] | None:
    """Return the function for `schemas[name]` (keys are the `$id`s), or None when only jsonschema can judge it."""
    return Acceptors(schemas).find(name)


class Acceptors:
    """The functions for a set of schemas, each compiled when first asked for; what they share is compiled once."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._known: dict[str, str] = {}
        self._lines: list[str] = []
        self._values: dict[str, Any] = {}

    def find(self, name: str) -> Callable[[Any], bool] | None:
        """Return the function for the schema of this name, as `acceptor` does."""
        try:
            entry = self._reference(f"{name}#")
        except Unsupported:
            # What was compiled half-way must not be taken for known.
            self._known, self._lines, self._values = {}, [], {}
            return None
        exec("\n".join(self._lines), self._values)  # noqa: S102  # made of this project's pinned schemas alone
        self._lines = []
        test: Callable[[Any], bool] = self._values[entry]

        def accept(value: Any) -> bool:
            try:
                return test(value)
            except KeyError:  # a required key is missing
                return False

        return accept

    def _keep(self, value: Any) -> str:
        name = f"k{len(self._values)}"
        self._values[name] = value
        return name

    def _reference(self, reference: str) -> str:
        """Return the name of the function for `file#/pointer`."""
        if reference in self._known:
            return self._known[reference]
        file = reference.partition("#")[0]
        schema = self._schema(reference)
        name = self._known[reference] = f"f{len(self._known)}"
        test = self._test(schema, "x", file)
        self._lines.append(f"def {name}(x):\n    return {test}")
        return name

    def _schema(self, reference: str) -> Any:
        file, _, pointer = reference.partition("#")
        schema = self._schemas.get(file)
        for part in pointer.strip("/").split("/") if pointer else ():
            schema = schema.get(part) if isinstance(schema, dict) else None
        if schema is None:
            raise Unsupported(reference)
        return schema

    def _test(self, schema: Any, x: str, file: str) -> str:
        """Return an expression that is true only for values of the variable `x` that fit the schema."""
        if schema is True or schema == {}:
            return "True"
        if not isinstance(schema, dict):
            raise Unsupported("a schema that is no object")
        keys = set(schema) - _SILENT
        tests: list[str] = []
        for key in sorted(keys & {"$ref", "const", "enum", "anyOf", "allOf"}):
            tests.append(self._combine(key, schema[key], x, file))
            keys.discard(key)
        kinds = schema.get("type")
        if kinds is not None:
            keys.discard("type")
            rows, judged = [], set[str]()
            for kind in [kinds] if isinstance(kinds, str) else kinds:
                if kind not in _TYPES:
                    raise Unsupported(kind)
                parts = [_TYPES[kind].format(x)]
                for group, build in self._groups(kind):
                    used = {key: schema[key] for key in sorted(keys & group)}
                    if used:
                        parts += build(used, x, file)
                    judged |= group
                rows.append(f"({' and '.join(parts)})")
            keys -= judged
            tests.append(rows[0] if len(rows) == 1 else f"({' or '.join(rows)})")
        for kind in ("string", "number", "array", "object") if kinds is None else ():
            for group, build in self._groups(kind):
                used = {key: schema[key] for key in sorted(keys & group)}
                keys -= group
                if used:  # without a type, a keyword speaks only of the values that it fits
                    tests.append(f"(not {_TYPES[kind].format(x)} or {' and '.join(build(used, x, file)) or 'True'})")
        if keys:
            raise Unsupported(", ".join(sorted(keys)))
        return " and ".join(tests) or "True"

    def _groups(self, kind: str) -> list[tuple[set[str], Callable[[dict[str, Any], str, str], list[str]]]]:
        if kind == "string":
            return [(_STRING, self._string)]
        if kind in ("integer", "number"):
            return [(_NUMBER, self._number)]
        if kind == "array":
            return [(_ARRAY, self._array)]
        return [(_OBJECT, self._object)] if kind == "object" else []

    def _combine(self, key: str, value: Any, x: str, file: str) -> str:
        if key == "$ref":
            target = value if not value.startswith("#") else file + value
            schema = self._schema(target)
            if isinstance(schema, dict) and schema.keys() <= _SCALAR:
                return f"({self._test(schema, x, target.partition('#')[0])})"  # a call would cost more than the test
            return f"{self._reference(target)}({x})"
        if key in ("const", "enum"):
            # Equality of JSON is not Python's (true is not 1), so only the same type is accepted here.
            options = [value] if key == "const" else value
            if key == "const" and isinstance(value, list) and all(type(one) is str for one in value):
                return f"(type({x}) is list and {x} == {self._keep(value)})"
            rows = []
            for kind in {type(option) for option in options}:
                if kind not in (str, int, bool, type(None)):
                    raise Unsupported("an enumeration of other than scalars")
                same = frozenset(option for option in options if type(option) is kind)
                rows.append(f"(type({x}) is {self._keep(kind)} and {x} in {self._keep(same)})")
            return f"({' or '.join(sorted(rows))})"
        if key == "anyOf" and sum(self._is_object(one, file) for one in value) > 1:
            raise Unsupported("one of several objects")  # a key that the first of them lacks would end the test
        joint = " or " if key == "anyOf" else " and "
        return f"({joint.join(f'({self._test(one, x, file)})' for one in value)})"

    def _is_object(self, schema: Any, file: str) -> bool:
        if "$ref" in schema:
            target = schema["$ref"]
            return self._is_object(self._schema(target if not target.startswith("#") else file + target), file)
        return bool(schema.get("type") == "object" or schema.keys() & _OBJECT)

    def _string(self, used: dict[str, Any], x: str, file: str) -> list[str]:
        tests = []
        if "minLength" in used:
            tests.append(f"len({x}) >= {int(used['minLength'])}")
        if "maxLength" in used:
            tests.append(f"len({x}) <= {int(used['maxLength'])}")
        if "pattern" in used:
            tests.append(f"{self._keep(re.compile(used['pattern']).search)}({x}) is not None")
        return tests

    def _number(self, used: dict[str, Any], x: str, file: str) -> list[str]:
        signs = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
        return [f"{x} {signs[key]} {value!r}" for key, value in used.items()]

    def _array(self, used: dict[str, Any], x: str, file: str) -> list[str]:
        tests = []
        if "minItems" in used:
            tests.append(f"len({x}) >= {int(used['minItems'])}")
        if "maxItems" in used:
            tests.append(f"len({x}) <= {int(used['maxItems'])}")
        if "items" in used:
            item = self._function(used["items"], file)
            tests.append(f"all(map({item}, {x}))")
        if used.get("uniqueItems"):
            tests.append(f"all(type(i) is str for i in {x}) and len(set({x})) == len({x})")
        return tests

    def _function(self, schema: Any, file: str) -> str:
        if isinstance(schema, dict) and schema.keys() == {"$ref"}:
            return self._reference(schema["$ref"] if not schema["$ref"].startswith("#") else file + schema["$ref"])
        name = self._keep(None)
        test = self._test(schema, "x", file)
        self._lines.append(f"def {name}(x):\n    return {test}")
        return name

    def _object(self, used: dict[str, Any], x: str, file: str) -> list[str]:
        if x != "x":
            # Properties are named by their own variables; a function of its own keeps them apart.
            return [f"{self._function({**used, 'type': 'object'}, file)}({x})"]
        properties = used.get("properties", {})
        required = set(used.get("required", ()))
        rest = used.get("additionalProperties", True)
        tests = []
        if "minProperties" in used:
            tests.append(f"len(x) >= {int(used['minProperties'])}")
        if "maxProperties" in used:
            tests.append(f"len(x) <= {int(used['maxProperties'])}")
        if rest is False and required == set(properties):
            tests.append(f"len(x) == {len(properties)}")
        elif rest is False:
            tests.append(f"x.keys() <= {self._keep(frozenset(properties))}")
        elif rest is not True:
            if properties:
                known = self._keep(frozenset(properties))
                tests.append(f"all({self._function(rest, file)}(v) for k, v in x.items() if k not in {known})")
            else:
                tests.append(f"all(map({self._function(rest, file)}, x.values()))")
        if "propertyNames" in used:
            tests.append(f"all(map({self._function(used['propertyNames'], file)}, x))")
        if not required <= set(properties):
            tests.insert(0, f"{self._keep(frozenset(required - set(properties)))} <= x.keys()")
        for key, schema in properties.items():
            v = self._keep(None)
            test = self._test(schema, v, file)
            tests.append(
                f"(({v} := x[{key!r}]) is {v} and {test})"
                if key in required
                else f"({key!r} not in x or (({v} := x[{key!r}]) is {v} and {test}))"
            )
        return tests
