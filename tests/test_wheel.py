"""A wheel works outside the checkout: built once, installed into a bare environment, used from another folder."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHIPPED = [path for room in ("schemas", "verifiers") for path in (ROOT / room).rglob("*") if path.is_file()]
INSIDE = [*(ROOT / "evidence/templates").rglob("*"), *(ROOT / "evidence/report/assets").rglob("*")]


def call(*words: str | Path, where: Path, expected: int = 0) -> str:
    """Standard output of a command that knows nothing of the checkout."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(where), "MPLCONFIGDIR": str(where), "LC_ALL": "C.UTF-8"}
    ran = subprocess.run(
        [str(word) for word in words],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == expected, f"{words}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network where hatchling is there, else by pip."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    folder = tmp_path_factory.mktemp("wheels")
    isolated = [] if importlib.util.find_spec("hatchling") is None else ["--no-build-isolation"]
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *isolated, "--wheel-dir", str(folder), str(ROOT)],
        capture_output=True, text=True, check=False, timeout=240, cwd=folder,
    )  # fmt: skip
    if ran.returncode and not isolated:
        pytest.skip(f"the wheel's builder cannot be had here: {ran.stderr.strip()[-200:]}")
    assert ran.returncode == 0, ran.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `evidence` of an environment that has the wheel and borrows its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    target = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(target, check=True, timeout=120, cwd=folder)
    borrowed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    # Behind the wheel, and as plain folders: the .pth of an editable install in there is not followed.
    (site / "borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
    launcher = folder / "bin/evidence"
    launcher.write_text(f"#!{folder}/bin/python -I\nfrom evidence.cli import main\n\nmain(prog_name='evidence')\n")
    launcher.chmod(0o755)
    return launcher


def test_the_wheel_holds_what_the_command_needs_and_no_other_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    cached = {"__pycache__", ".mypy_cache", ".ruff_cache"}
    for path in SHIPPED:
        if not cached.intersection(path.parts):
            assert f"evidence/_shipped/{path.relative_to(ROOT).as_posix()}" in names
    assert "evidence/_shipped/SHA256SUMS" in names
    assert INSIDE
    for path in INSIDE:
        if path.is_file():
            assert path.relative_to(ROOT).as_posix() in names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"evidence"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_no_general_name_becomes_importable(program: Path, tmp_path: Path) -> None:
    ask = "import importlib.util as u, evidence, json; print(json.dumps([evidence.__file__, " + ", ".join(
        f"u.find_spec({name!r}) is None" for name in ("schemas", "verifiers", "archive", "checking")
    ) + "]))"  # fmt: skip
    said = json.loads(call(program.parent / "python", "-I", "-c", ask, where=tmp_path))
    assert Path(said[0]).is_relative_to(program.parents[1])
    assert said[1:] == [True] * 4


@pytest.mark.slow
def test_the_installed_command_goes_the_whole_way(program: Path, tmp_path: Path) -> None:
    assert call(program, "--version", where=tmp_path).startswith("evidence, version ")
    call(program, "init", "mine", where=tmp_path)
    assert "MY_GATED_MODEL" in call(program, "check", "mine", where=tmp_path, expected=1)
    said = json.loads(
        call(
            program,
            "capture",
            "mine/campaign.toml",
            "--case",
            "my-model-native",
            "--runs",
            "runs",
            "--json",
            where=tmp_path,
        )
    )
    assert [run["outcome"] for run in said["runs"]] == ["SUCCESS"]
    built = json.loads(
        call(program, "build", "mine", "--runs", "runs", "--output", "dist", "--preparation", "--json", where=tmp_path)
    )
    verdict = json.loads(
        call(
            program,
            "validate",
            built["archive"],
            "--source-root",
            built["retained"],
            "--verify-results",
            "--json",
            where=tmp_path,
        )
    )
    assert verdict["verdict"] == "verified"
    call(program, "report", built["archive"], "--output", "report.html", where=tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
