"""What this repository has published stands up to the check that a reader would type, and to a sceptic without it."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ARCHIVES = sorted((ROOT / "archive").glob("*-evaluation.tgz"))
RECORDS = sorted((ROOT / "archive").glob("*/record.json"))
VERIFIERS = ("verify-results", "verify-incomplete-results", "verify-converged", "verify-lifecycle")


def run(*command, cwd=ROOT):
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )


def named(path):
    return path.name


def test_something_is_published():
    assert ARCHIVES
    assert RECORDS


def test_the_top_level_checksums_hold():
    found = run("sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS")
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=named)
def test_the_maintenance_check_holds(archive):
    retained = archive.with_name(archive.name.removesuffix("-evaluation.tgz"))
    found = run(sys.executable, "-m", "evidence", "validate", archive, "--source-root", retained, "--verify-results")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "killed" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES, ids=named)
def test_a_sceptic_verifies_it_with_python_alone(archive, tmp_path):
    assert run("sha256sum", "--check", "--strict", f"{archive.name}.sha256", cwd=archive.parent).returncode == 0
    with tarfile.open(archive) as bundle:
        bundle.extractall(tmp_path, filter="data")
    (package,) = tmp_path.iterdir()
    before = sorted(package.rglob("*"))
    assert run("sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS", cwd=package).returncode == 0
    for verifier in VERIFIERS:
        found = run(sys.executable, "-I", "-S", f"{verifier}.py", "--mutation-control", cwd=package)
        assert found.returncode == 0, f"{verifier}: {found.stdout}{found.stderr}"
    assert sorted(package.rglob("*")) == before


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.parent.name)
def test_lifecycle_records_follow_from_their_raw_events(record):
    evidence = record.parent / "evidence"
    script = ROOT / "verifiers" / "verify-lifecycle.py"
    found = run(sys.executable, "-I", "-B", "-S", script, record, "--evidence", evidence, "--mutation-control")
    assert found.returncode == 0, found.stdout + found.stderr
