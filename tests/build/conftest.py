"""Forged run folders and one package built of them, shared by the tests of the builder."""

from __future__ import annotations

from pathlib import Path

import pytest
from forged_world import World, make_world

from benchmarks.forged_runs import Shape
from evidence.build.package import Built


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A campaign with one comparison and nothing run."""
    return make_world(tmp_path)


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Built]:
    """A built package: a complete comparison run twice, a killed and an aborted one, attempts of several outcomes."""
    world = make_world(tmp_path_factory.mktemp("packed"), comparisons=2)
    world.compare("compare-1", 0)
    world.compare("compare-1", 1, Shape(seed=1))
    world.compare("compare-2", 2, Shape(killed_after=60))
    world.compare("compare-2", 3, Shape(aborted_after=200, seed=2))
    world.compare("compare-2", 4, Shape(ttft_ms=(100.0, 99.0), seed=3))
    world.attempt("one-rr-1", 10)
    world.attempt("one-native-1", 11)
    world.attempt("two-native-1", 12, reason="ACCESS_DENIED", outcome="BLOCKED_ACCESS", requests=0)
    return world, world.build()
