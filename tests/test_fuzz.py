"""The fuzz targets hold on their seeds, on the kept corpus and on a few hundred mutations, in every run of the tests."""

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.archive.grammar import Refusal
from fuzz.__main__ import attempt, corpus_of, mutate, search
from fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_target_raises_nothing_but_refusals(target):
    chance, corpus = random.Random(1), corpus_of(target)
    assert corpus
    for data in [*corpus, *(mutate(chance, target, corpus) for _ in range(150))]:
        # Time is the business of `python -m fuzz`: here other tests share the machine.
        try:
            target.run(data)
        except Refusal:
            continue


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_target_takes_arbitrary_bytes(target):
    @settings(max_examples=50, deadline=None, database=None)
    @given(st.binary(max_size=600))
    def run(data):
        try:
            target.run(data)
        except Refusal:
            return

    run()


def test_a_fault_is_found_named_and_kept(tmp_path, monkeypatch):
    def fragile(data):
        if b"x" in data:
            raise KeyError("x")

    monkeypatch.setattr("fuzz.__main__.CORPUS", tmp_path)
    target = Target("fragile", fragile, (b"abc",), (b"x",))
    count, faults = search(target, 20, 0)
    assert count > 1
    assert len(faults) == 1
    assert "KeyError" in faults[0]
    kept = list((tmp_path / "fragile").iterdir())
    assert attempt(target, kept[0].read_bytes())


def test_the_command_prints_executions_of_every_target():
    ran = subprocess.run([sys.executable, "-m", "fuzz", "--seconds", "0.2"], capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [target.name for target in TARGETS]
    assert all(" executions in " in line and "0 faults" in line for line in lines[:-1])
