"""JSON judged in a process of its own gives what it gives in this one."""

import os
import signal
from pathlib import Path

import pytest

from evidence import validate
from evidence.archive import reader
from evidence.errors import EvidenceError
from evidence.examining import Aside, Examined
from tests.archive.packages import base, make, publish

CASES = [case for case in make.read_cases() if case.group in ("json", "sums")]


def learned(examined, files):
    with examined:
        for name, data in files.items():
            examined.take(name, data)
        examined.close(files)
    stage = examined.stage
    return stage.expected, stage.verified, stage.findings, examined.kept, examined.sums, examined.guide


def test_a_whole_package_and_broken_ones():
    whole = base.full()
    cut = {
        **whole,
        "manifest.json": whole["manifest.json"][:-3],
        "results/settings/a/samples.json": b'{"a": 1, "a": 2}',
    }
    large = {**whole, "recipes.json": whole["recipes.json"] + b" " * (3 << 20)}
    for files in (whole, cut, large, {}):
        assert learned(Aside(), files) == learned(Examined(), files)
    assert learned(Aside(), cut)[2]


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.name)
def test_the_suite_says_the_same_beside(case, tmp_path, monkeypatch):
    path = case.build().write(tmp_path / "case")
    here = validate.validate(path)
    monkeypatch.setattr(reader, "pays", lambda size: True)
    beside = validate.validate(path)
    assert beside.render("json") == here.render("json")
    assert {finding.code for finding in beside.findings} == case.say


def test_a_child_that_was_killed_is_one_clear_error(tmp_path, monkeypatch):
    path = publish(base.full(), tmp_path)
    made = []

    class Killed(Aside):
        def __init__(self):
            super().__init__()
            made.append(self._child)
            os.kill(self._child, signal.SIGKILL)

    monkeypatch.setattr(reader, "pays", lambda size: True)
    monkeypatch.setattr(validate, "Aside", Killed)
    with pytest.raises(EvidenceError, match="ended early"):
        validate.validate(path)
    with pytest.raises(ProcessLookupError):
        os.kill(made[0], 0)


def test_no_process_and_no_descriptor_stays_behind():
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Aside() as aside:
        aside.take("manifest.json", b"{}")
        child = aside._child
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
