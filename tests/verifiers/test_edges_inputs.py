"""Registries, recipes and what requalifies them, at their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from checking.damage import Bench

from tests.verifiers.edges import CONVERGED, RESULTS, only, told

REGISTRY = "registry-synthetic/manifest.json"


def with_engine(**values: Any) -> Callable[[Bench], None]:
    def change(bench: Bench) -> None:
        with bench.edit("manifest.json") as data:
            # An engine without a registry, and one of another registry, stand before it.
            first = {**data["engines"][0], "id": "a-first", "registry": None}
            second = {**data["engines"][0], "id": "a-second", "registry": "registry-elsewhere"}
            data["engines"] = [first, second, {**data["engines"][0], **values}]

    return change


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({}, []),
        ({"version": "2"}, []),  # a version that the engine reported need not be the registry's
        ({"version": "2", "source": "declared"}, ["#/version: found 1, expected that of manifest.json: 2"]),
        ({"adapter": "another"}, ["#/adapter: found synthetic, expected that of manifest.json: another"]),
        ({"id": "another"}, ["#/engine: found synthetic, expected that of manifest.json: another"]),
    ],
)
def test_a_registry_is_of_the_engine_that_names_it(values: dict[str, str], lines: list[str]) -> None:
    found = told(CONVERGED, "registry", with_engine(**values))
    missing = "registry manifest.json#/engines/a-second: found registry-elsewhere, expected a registry that is there"
    assert found == [f"registry {REGISTRY}{line}" for line in lines] + [missing]


def requalifying(*values: str | None, **attempt: Any) -> Callable[[Bench], None]:
    """An accepted attempt that ran with these values, one a worker (None: without the argument)."""

    def change(bench: Bench) -> None:
        desk = only(bench, "converged", "a03-rr")
        with desk.edit("attempt.json") as data:
            data["startedAt"] = "2026-11-30T05:00:00.000000Z"
            for launch, value in zip(data["launches"], values, strict=True):
                launch["arguments"] += [] if value is None else ["--gpu-memory", value]
            if not values:
                data["launches"] = []
            scope = attempt.pop("accepted", None)
            data.update(attempt)
            if scope is not None:
                data["scope"]["accepted"] = scope

    return change


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (requalifying("0.5", "0.5"), True),
        (requalifying("0.4", "0.4"), False),
        (requalifying("0.9", "0.9"), False),
        (requalifying("0.5", "0.9"), False),
        (requalifying("0.5", None), False),
        (requalifying("0.5", "0.5", startedAt="2026-11-30T01:00:00.000000Z"), False),  # with the comparison itself
        (requalifying("0.5", "0.5", startedAt="2026-11-30T01:00:00.000001Z"), True),
        (requalifying("0.5", "0.5", accepted=False), False),
        (requalifying("0.5", "0.5", ended=False), False),
        (requalifying("0.5", "0.5", outcome="NATIVE_FAILURE"), False),
        (requalifying("0.5", "0.5", profile="tiny-b"), False),
        (requalifying("0.5", "0.5", topology="single"), False),
        (requalifying("0.5", "0.5", engine="another"), False),
    ],
)
def test_a_candidate_is_requalified_by_a_later_attempt_with_its_value_alone(change: Any, again: bool) -> None:
    lines = told(RESULTS, "decision-requalification", change)
    at = "decision-requalification results/settings/memory-half/decision.json#/requalification"
    right = "not-required: by the attempts that are there"
    assert lines == ([f"{at}: found required, expected {right}"] if again else [])
