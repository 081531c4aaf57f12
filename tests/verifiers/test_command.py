"""The scripts as a sceptic runs them: interpreters, exit codes, output, and a folder left as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verifiers.forged_package import ROOT, lay, sealed

SCRIPTS = ("verify-results.py", "verify-incomplete-results.py", "verify-converged.py")
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """A Python of that version: on the path, or installed by pyenv."""
    for found in [
        shutil.which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")),
    ]:
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    return None


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forged") / "forged"
    return lay(sealed(), folder)


def run(script: str, *arguments: str, python: str = sys.executable, flags: tuple[str, ...] = ("-I", "-S"), **options):
    command = [python, *flags, str(ROOT / "verifiers" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime_ns,
                                        hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in sorted(folder.rglob("*"))
    }  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_every_interpreter_verifies_from_inside_the_package(package: Path, version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no python {version} on this machine")
    before = state(package)
    own = sys.version.startswith(version + ".")
    for script in SCRIPTS:
        # Each script begins alike: of another version one is asked both ways.
        for flags in ((), ("-I", "-S"))[: 2 if own or script == SCRIPTS[1] else 1]:
            command = [python, *flags, str(package / script), "--json"]
            environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
            ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
            assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout[-2000:]
            said = json.loads(ran.stdout)
            assert said["verdict"] == "verified"
            assert said["findings"] == []
            assert said["counts"]["files"] >= 1
    assert state(package) == before


@pytest.mark.parametrize("script", SCRIPTS)
def test_plain_control_alters_a_copy_and_the_real_verifier_rejects_it(package: Path, script: str) -> None:
    before = state(package)
    ran = run(script, str(package), "--mutation-control", "--json")
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    (outcome,) = json.loads(ran.stdout)["mutations"]
    assert outcome["verdict"] == "killed"
    assert outcome["expected"] in outcome["observed"]
    assert state(package) == before


def test_incomplete_control_alters_actual_partial_bytes(package: Path) -> None:
    said = json.loads(run("verify-incomplete-results.py", str(package), "--mutation-control", "--json").stdout)
    assert "/partials/" in said["mutations"][0]["altered"]
    assert said["mutations"][0]["expected"] == "partial-digest"


def test_a_blind_verifier_exits_3(package: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "verifiers", tmp_path / "v", ignore=shutil.ignore_patterns("__pycache__"))
    rule = tmp_path / "v" / "checking" / "rules" / "receipts.py"
    text = rule.read_text()
    assert "            unmatched = []\n" in text or "unmatched = []" in text
    rule.write_text(
        text.replace("def hold_matched(", "def hold_matched(subject):\n    return iter(())\n\n\ndef once(", 1)
    )
    command = [sys.executable, "-I", str(tmp_path / "v" / "verify-results.py"), str(package), "--mutation-control"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "survived" in ran.stdout
    assert "blind" in ran.stdout + ran.stderr


def test_rejection_prints_a_line_a_finding(tmp_path: Path) -> None:
    files = sealed()
    files["README.md"] += b"more\n"
    ran = run("verify-results.py", str(lay(files, tmp_path / "p")))
    assert ran.returncode == 1
    assert ran.stdout.startswith("sums-mismatch README.md: found sha256 ")


@pytest.mark.parametrize("kind", ["link", "folder-link", "fifo", "extra", "missing", "empty-folder"])
def test_what_is_no_listed_regular_file_is_refused_and_never_opened(tmp_path: Path, kind: str) -> None:
    folder = lay(sealed(), tmp_path / "p")
    expected = {"link": "type-link", "folder-link": "type-link", "fifo": "type-special", "extra": "sums-unlisted",
                "missing": "sums-missing", "empty-folder": "type-folder"}[kind]  # fmt: skip
    if kind == "link":
        (folder / "README.md").unlink()
        (folder / "README.md").symlink_to("/etc/hostname")
    elif kind == "folder-link":
        (folder / "elsewhere").symlink_to(tmp_path)
    elif kind == "fifo":
        (folder / "README.md").unlink()
        os.mkfifo(folder / "README.md")
    elif kind == "extra":
        (folder / "results" / "extra.json").write_text("{}\n")
    elif kind == "missing":
        (folder / "README.md").unlink()
    else:
        (folder / "results" / "nothing").mkdir()
    ran = run("verify-results.py", str(folder), "--json")
    assert ran.returncode == 1
    assert expected in {finding["code"] for finding in json.loads(ran.stdout)["findings"]}


def test_what_cannot_be_run_exits_2(tmp_path: Path, package: Path) -> None:
    assert run("verify-results.py", str(tmp_path / "nowhere")).returncode == 2
    assert run("verify-results.py", str(tmp_path)).returncode == 2
    assert run("verify-results.py", "--mutation-control=some").returncode == 2
    (tmp_path / "file").write_text("x")
    assert run("verify-results.py", str(tmp_path / "file")).returncode == 2
    (tmp_path / "link").symlink_to(package)
    assert run("verify-results.py", str(tmp_path / "link")).returncode == 2


def test_the_retained_part_refuses_and_says_where_the_archive_is(tmp_path: Path) -> None:
    files = {name: data for name, data in sealed().items() if not name.startswith("results/")}
    ran = run("verify-results.py", str(lay(files, tmp_path / "p")))
    assert ran.returncode == 2
    assert "-evaluation.tgz" in ran.stderr


@pytest.mark.parametrize("options", [["-I", "-S"], []])
def test_a_shadowing_module_in_the_package_is_never_imported(tmp_path: Path, options: list[str]) -> None:
    files = sealed()
    folder = lay(files, tmp_path / "p")
    (folder / "json.py").write_text("raise SystemExit(0)\n")
    ran = subprocess.run(
        [sys.executable, *options, str(folder / "verify-results.py")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "sums-unlisted json.py" in ran.stdout


def test_help_says_what_is_not_proved_and_the_page_says_the_same() -> None:
    told = " ".join(run("verify-results.py", "--help").stdout.split())
    page = (ROOT / "docs" / "what-this-does-not-prove.md").read_text()
    titles = [line.split("**")[1] for line in page.splitlines() if line[:1].isdigit() and "**" in line]
    assert len(titles) >= 10
    for title in titles:
        assert title in told


def test_no_socket_is_opened_and_nothing_outside_the_standard_library_is_imported() -> None:
    allowed = set(sys.stdlib_module_names) | {"checking", "__future__"}
    forbidden = {"socket", "ssl", "http", "urllib", "asyncio", "selectors", "socketserver", "ftplib"}
    import ast

    for path in [*(ROOT / "verifiers" / "checking").rglob("*.py"), *(ROOT / "verifiers").glob("verify-*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in allowed, path
                assert name.split(".")[0] not in forbidden, path


@pytest.mark.parametrize("script", [*SCRIPTS, "verify-lifecycle.py"])
def test_a_script_without_its_rules_says_so_and_gives_no_verdict(script: str, package: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "verifiers" / script, tmp_path)
    ran = subprocess.run(
        [sys.executable, str(tmp_path / script), str(package)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"{script.removesuffix('.py')}: needs Python 3.8 or newer (this is 3.")
    assert ran.stderr.endswith(" and the folder checking beside this file\n")
