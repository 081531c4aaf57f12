"""What this repository has published stands up to the check that a reader would type, and to a sceptic without it."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.report.drawn import read

ROOT = Path(__file__).resolve().parent.parent
ARCHIVES = sorted((ROOT / "archive").glob("*-evaluation.tgz"))
PAGES = {
    ROOT / "docs" / f"{archive.name.removesuffix('-evaluation.tgz')}.md": archive
    for archive in ARCHIVES
    if (ROOT / "docs" / f"{archive.name.removesuffix('-evaluation.tgz')}.md").exists()
}
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
        found = run(sys.executable, "-I", "-S", f"{verifier}.py", "--mutation-control=all", cwd=package)
        assert found.returncode == 0, f"{verifier}: {found.stdout}{found.stderr}"
    assert sorted(package.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_is_what_its_archive_says(page, tmp_path):
    """Made anew, the page has the same bytes, and its drawings say the same whichever release drew them."""
    command = ("evidence", "report", PAGES[page].relative_to(ROOT), "--output")
    found = run(sys.executable, "-m", *command, tmp_path / page.name)
    assert found.returncode == 0, found.stdout + found.stderr
    hint = f"run: {' '.join(map(str, command))} {page.relative_to(ROOT)}"
    assert page.read_text(encoding="utf-8") == (tmp_path / page.name).read_text(encoding="utf-8"), hint
    folders = [(place / page.stem) for place in (page.parent, tmp_path)]
    kept, fresh = ({one.name: one.read_text(encoding="utf-8") for one in folder.iterdir()} for folder in folders)
    assert kept.keys() == fresh.keys(), hint
    for name in kept:
        assert read(kept[name]).says_what(read(fresh[name])), f"{name}: {hint}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_a_page_tells_a_sceptic_to_type_works(page, tmp_path):
    for one in PAGES[page].parent.glob(f"{PAGES[page].name}*"):
        shutil.copy(one, tmp_path)
    commands = re.search(r"(?ms)^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"))[1]
    found = run("bash", "-e", "-c", commands, cwd=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.parent.name)
def test_lifecycle_records_follow_from_their_raw_events(record):
    evidence = record.parent / "evidence"
    script = ROOT / "verifiers" / "verify-lifecycle.py"
    found = run(sys.executable, "-I", "-B", "-S", script, record, "--evidence", evidence, "--mutation-control")
    assert found.returncode == 0, found.stdout + found.stderr
