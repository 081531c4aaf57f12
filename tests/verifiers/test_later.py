"""What a verifier reads at its start: the rules of what it finds, and nothing that only a forger needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verifiers.kill_matrix import NAMES, forged

VERIFIERS = Path("verifiers").resolve()
PUBLISHED = Path("tests/vectors/lifecycle/published-record.json")
FORGERS = re.compile(r".*_(?:lies|damage)|.*\.(?:forgery|damage|control)")
RUN = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LIFECYCLE = "checking.rules.lifecycle_"


def read_by(name: str, *words: object) -> set[str]:
    """The modules of the verifiers that a run imported; it must have verified."""
    ran = subprocess.run(
        [sys.executable, "-S", "-c", RUN, VERIFIERS / f"{name}.py", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    read = {one for one in ran.stderr.split() if one.startswith("checking.")}
    assert "checking.command" in read
    return read


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The forged package, unpacked."""
    root = tmp_path_factory.mktemp("package")
    for name, data in forged().files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@pytest.mark.parametrize("name", [*NAMES, "verify-lifecycle"])
def test_a_plain_run_reads_nothing_that_only_a_forger_needs(name: str, package: Path) -> None:
    assert [one for one in read_by(name, package) if FORGERS.fullmatch(one)] == []


def test_a_mutation_control_reads_what_a_forger_needs(package: Path) -> None:
    read = read_by("verify-incomplete-results", package, "--mutation-control")
    assert {"checking.damage", "checking.control", "checking.rules.unfinished_lies"} <= read


def test_without_a_lifecycle_record_none_of_its_rules_is_read(package: Path) -> None:
    assert {one for one in read_by("verify-lifecycle", package) if one.startswith(LIFECYCLE)} == {
        LIFECYCLE + one for one in ("command", "index", "worth")
    }


@pytest.mark.parametrize(
    ("keeps", "module"),
    [("co_residency_rounds", "coresidency"), ("crashes", "crash"), ("churn_request_order", "lora")],
)
def test_a_record_of_one_kind_reads_the_rules_of_that_kind_alone(tmp_path: Path, keeps: str, module: str) -> None:
    record = json.loads(PUBLISHED.read_text())
    record["experiments"] = [one for one in record["experiments"] if keeps in one["protocol"]]
    (tmp_path / "record.json").write_text(json.dumps(record))
    read = {one for one in read_by("verify-lifecycle", tmp_path / "record.json") if one.startswith(LIFECYCLE)}
    assert read == {LIFECYCLE + one for one in ("command", "figures", "index", "record", "shape", "worth", module)}


def test_raw_evidence_is_read_where_it_is_given() -> None:
    record, evidence = Path("archive/lifecycle-cpu/record.json"), Path("archive/lifecycle-cpu/evidence")
    more = read_by("verify-lifecycle", record, "--evidence", evidence) - read_by("verify-lifecycle", record)
    assert more == {LIFECYCLE + one for one in ("derive", "events", "raw", "selection_events")}
