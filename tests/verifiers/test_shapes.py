"""The tables of shapes against schemas/: the same keys, the same verdict on forged and damaged documents."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from checking.reading import read_json
from checking.rules import (
    shapes,
    shapes_attempt,
    shapes_comparison,
    shapes_decision,
    shapes_incomplete,
    shapes_inputs,
    shapes_manifest,
)
from checking.shape import Keys, ListOf, MapOf, Maybe, Shape, faults
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.verifiers.forged_package import ROOT, sealed

TABLE = {
    "comparison": shapes_comparison.COMPARISON,
    "incomplete-comparison": shapes_incomplete.INCOMPLETE_COMPARISON,
    "samples": shapes.SAMPLES,
    "ledger": shapes.LEDGER,
    "snapshots": shapes_comparison.SNAPSHOTS,
    "decision": shapes_decision.DECISION,
    "settings-index": shapes_decision.SETTINGS_INDEX,
    "offers": shapes_incomplete.OFFERS,
    "incomplete-settings-index": shapes_incomplete.INCOMPLETE_INDEX,
    "attempt": shapes_attempt.ATTEMPT,
    "controls": shapes_attempt.CONTROLS,
    "converged-index": shapes_attempt.CONVERGED_INDEX,
    "model-identities": shapes_inputs.MODEL_IDENTITIES,
    "model": shapes_inputs.MODEL,
    "registry": shapes_inputs.REGISTRY,
    "recipes": shapes_inputs.RECIPES,
    "rule": shapes_inputs.RULE,
    "runtime-matrix": shapes_inputs.MATRIX,
    "manifest": shapes_manifest.MANIFEST,
    "pd-index": shapes_inputs.PD_INDEX,
    "lifecycle-index": shapes_inputs.LIFECYCLE_INDEX,
}
SCHEMAS = {path.name: json.loads(path.read_text()) for path in (ROOT / "schemas").glob("*.schema.json")}
REGISTRY = Registry().with_resources([(name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()])


def schema_of(name: str) -> str:
    last = name.rsplit("/", 1)[-1]
    if name.startswith("results/incomplete/") and last == "comparison.json":
        return "incomplete-comparison"
    for start, kind in (("models/", "model"), ("rules/", "rule"), ("registry-", "registry")):
        if name.startswith(start) and "/probes/" not in name:
            return kind
    if "/ledgers/" in name:
        return "ledger"
    return last[: -len(".json")]


@pytest.fixture(scope="module")
def documents() -> dict[str, tuple[str, bytes]]:
    """One forged document of each kind: schema -> (name, bytes)."""
    made: dict[str, tuple[str, bytes]] = {}
    for name, data in sealed().items():
        if (
            name.endswith(".json")
            and not name.startswith("schemas/")
            and "/probes/" not in name
            and "/bodies/" not in name
        ):
            made.setdefault(schema_of(name), (name, data))
    return made


def test_every_schema_has_a_table_and_every_table_a_forged_document(documents: dict) -> None:
    named = {name[: -len(".schema.json")] for name in SCHEMAS} - {"common", "lifecycle-record"}
    assert named == set(TABLE) == set(documents)


def resolve(schema: dict) -> dict:
    while "$ref" in schema:
        file, _, pointer = schema["$ref"].partition("#/$defs/")
        schema = SCHEMAS[file or "common.schema.json"]["$defs"][pointer]
    for key in ("allOf", "anyOf"):
        options = [resolve(one) for one in schema.get(key, []) if one != {"type": "null"}]
        if options and "properties" in options[0] | {} and "required" not in schema:
            return options[0]
        if options and key == "anyOf":
            return options[0]
    return schema


def compare(shape: Shape, schema: dict, at: str) -> None:
    schema = resolve(schema)
    if isinstance(shape, Maybe):
        compare(shape.shape, schema, at)
    elif isinstance(shape, Keys):
        assert set(shape.fields) == set(schema["properties"]) == set(schema["required"]), at
        assert schema.get("additionalProperties") is False, at
        for key, inner in shape.fields.items():
            compare(inner, schema["properties"][key], f"{at}/{key}")
    elif isinstance(shape, ListOf):
        assert schema["type"] == "array", at
        compare(shape.shape, schema["items"], at + "/*")
    elif isinstance(shape, MapOf):
        assert schema["type"] == "object", at


@pytest.mark.parametrize("name", sorted(TABLE))
def test_tables_have_the_keys_of_the_schema(name: str) -> None:
    compare(TABLE[name], SCHEMAS[f"{name}.schema.json"], name)


def damages(value: Any) -> list[tuple[str, Any]]:
    """Small damages of a document: a key dropped, added, or of another type, at every object, once a path shape."""
    made: list[tuple[str, Any]] = []
    seen: set[str] = set()

    def walk(node: Any, steps: tuple) -> None:
        key = "/".join("*" if isinstance(step, int) else step for step in steps)
        if isinstance(node, dict):
            if key not in seen:
                seen.add(key)
                for name in sorted(node):
                    for label, change in (
                        ("drop", None),
                        ("type", ["wrong"]),
                        ("negative", -1),
                        ("text", "NO such thing"),
                    ):
                        copied = copy.deepcopy(value)
                        spot = copied
                        for step in steps:
                            spot = spot[step]
                        if label == "drop":
                            del spot[name]
                        else:
                            spot[name] = change
                        made.append((f"{label} {key}/{name}", copied))
            for name, inner in node.items():
                walk(inner, (*steps, name))
        elif isinstance(node, list):
            for number, inner in enumerate(node[:2]):
                walk(inner, (*steps, number))

    walk(value, ())
    return made


@pytest.mark.parametrize("name", sorted(TABLE))
def test_table_and_schema_give_the_same_verdict(name: str, documents: dict) -> None:
    _, data = documents[name]
    value = json.loads(data)
    for key in ("samples", "receipts", "arms", "snapshots", "offers", "controls", "attempts"):
        if isinstance(value.get(key), list) and name not in ("comparison",):
            value[key] = value[key][:2]
    validator = Draft202012Validator(SCHEMAS[f"{name}.schema.json"], registry=REGISTRY)
    assert validator.is_valid(value)
    assert faults(read_json(json.dumps(value).encode()), TABLE[name]) == []
    for label, damaged in damages(value):
        mine = not faults(read_json(json.dumps(damaged).encode()), TABLE[name])
        assert mine == validator.is_valid(damaged), (name, label)
