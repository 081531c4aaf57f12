"""Records, schemas and documented enums say the same thing: house.md, shapes are written once."""

import json
import types
import typing
from pathlib import Path

import pytest

from evidence import records

SCHEMAS = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in Path("schemas").glob("*.json")
}
TOP = {
    "attempt": records.Attempt,
    "comparison": records.Comparison,
    "controls": records.Controls,
    "converged-index": records.ConvergedIndex,
    "decision": records.Decision,
    "incomplete-comparison": records.IncompleteComparison,
    "incomplete-settings-index": records.IncompleteSettingsIndex,
    "ledger": records.Ledger,
    "lifecycle-index": records.LifecycleIndex,
    "manifest": records.Manifest,
    "model": records.Model,
    "model-identities": records.ModelIdentities,
    "offers": records.Offers,
    "pd-index": records.PrefillDecodeIndex,
    "recipes": records.Recipes,
    "registry": records.Registry,
    "rule": records.Rule,
    "runtime-matrix": records.RuntimeMatrix,
    "samples": records.Samples,
    "settings-index": records.SettingsIndex,
    "snapshots": records.Snapshots,
}
WITHOUT_RECORD = {"common", "lifecycle-record"}


def resolve(schema):
    while "$ref" in schema:
        schema = SCHEMAS["common"]["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "allOf" in schema:
        return resolve(schema["allOf"][0])
    return schema


def unwrap(hint):
    """(type without None, whether None was allowed)."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        return rest[0], len(rest) < len(typing.get_args(hint))
    return hint, False


def compare(kind, schema, where):
    schema = resolve(schema)
    hints = typing.get_type_hints(kind)
    fields = {records.key(field): hints[field] for field in kind._fields}
    assert records.keys(kind) == tuple(fields)
    assert fields.keys() == schema["properties"].keys(), where
    assert set(schema["required"]) == fields.keys(), where
    assert schema["additionalProperties"] is False, where
    for name, hint in fields.items():
        inner, nullable = unwrap(hint)
        branch = schema["properties"][name]
        alternatives = resolve(branch).get("anyOf", [branch])
        assert nullable == any(one.get("type") == "null" for one in alternatives), f"{where}.{name}"
        follow(inner, next(one for one in alternatives if one.get("type") != "null"), f"{where}.{name}")


def follow(hint, branch, where):
    if hasattr(hint, "_fields"):
        compare(hint, branch, where)
    elif typing.get_origin(hint) is not None and "items" in resolve(branch):
        follow(typing.get_args(hint)[0], resolve(branch)["items"], where + "[]")


def test_every_schema_has_its_record():
    assert SCHEMAS.keys() - WITHOUT_RECORD == TOP.keys()


@pytest.mark.parametrize("name", sorted(TOP))
def test_record_equals_schema(name):
    compare(TOP[name], SCHEMAS[name], name)


@pytest.mark.parametrize(
    ("definition", "values"),
    [
        ("outcome", records.OUTCOMES),
        ("classification", records.CLASSIFICATIONS),
        ("gate", records.GATES),
        ("abortReason", records.ABORT_REASONS),
        ("surface", records.SURFACES),
        ("topology", records.TOPOLOGIES),
        ("kind", tuple(records.KIND_GATES)),
    ],
)
def test_enums_equal_schema(definition, values):
    assert tuple(SCHEMAS["common"]["$defs"][definition]["enum"]) == values


def test_canonical_bytes():
    assert records.to_bytes(records.Body("0" * 64, 3)) == b'{\n  "bytes": 3,\n  "sha256": "' + b"0" * 64 + b'"\n}\n'


@pytest.mark.parametrize("nanoseconds", [0, 1, 999, 1_000_000_001, 123_456_789_012_345])
def test_seconds_keep_every_nanosecond(nanoseconds):
    from decimal import Decimal

    assert Decimal(repr(records.seconds(nanoseconds))) * 10**9 == nanoseconds
