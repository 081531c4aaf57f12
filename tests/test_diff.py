"""What `evidence diff` says of two packages."""

import json
import shutil
from fractions import Fraction

import pytest
from click.testing import CliRunner

from evidence.cli import main
from evidence.diff import diff
from evidence.errors import EvidenceError
from tests.verifiers.forged_package import lay, sealed


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return lay(sealed(), tmp_path_factory.mktemp("old") / "forged")


@pytest.fixture
def new(old, tmp_path):
    return shutil.copytree(old, tmp_path / "new")


def alter(package, name, change):
    path = package / name
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def said(old, new):
    return json.loads(diff(old, new, "json"))


def test_equal_packages_are_called_equal_in_every_form(old, new):
    files = len([path for path in old.rglob("*") if path.is_file()])
    for form in ("table", "markdown"):
        assert f"equal: all {files} files have the same digests" in diff(old, new, form)
    facts = said(old, new)
    assert facts["equal"] is True
    assert not any(value for key, value in facts.items() if isinstance(value, list))


def test_an_outcome_and_a_count_that_changed(old, new):
    def fail(matrix):
        matrix["rows"][0]["outcome"] = "NATIVE_FAILURE"

    alter(new, "runtime-matrix.json", fail)
    alter(new, "manifest.json", lambda manifest: manifest["counts"].update(attempts=99))
    facts = said(old, new)
    before = json.loads((old / "runtime-matrix.json").read_text())["rows"][0]
    assert facts["outcomes"] == [
        {"id": before["case"], "what": "outcome", "old": before["outcome"], "new": "NATIVE_FAILURE"}
    ]
    assert [(row["what"], row["new"]) for row in facts["counts"]] == [("attempts", 99)]
    assert [(row["path"], row["change"]) for row in facts["files"]] == [
        ("manifest.json", "changed"),
        ("runtime-matrix.json", "changed"),
    ]
    assert "NATIVE_FAILURE" in diff(old, new)


def test_a_gate_that_moved_shows_both_margins_and_that_it_flipped(old, new):
    def slower(decision):
        gate = next(one for one in decision["gates"] if one["gate"] == "latency-regression")
        gate["rows"][1] |= {"candidate": 0.2, "relative": "1/5", "holds": False}
        gate["rows"][2] |= {"relative": "1/25"}
        decision["decision"] = "baseline"

    alter(new, "results/settings/memory-half/decision.json", slower)
    alter(
        new,
        "results/settings-index.json",
        lambda index: index["comparisons"][0].update(decision="baseline", failedGates=["latency-regression"]),
    )
    facts = said(old, new)
    rows = [
        (row["repetition"], row["old margin"], row["new margin"], row["new holds"], row["flipped"])
        for row in facts["gates"]
    ]
    gates = json.loads((old / "results/settings/memory-half/decision.json").read_text())["gates"]
    was = [Fraction(row["relative"]) for gate in gates if gate["gate"] == "latency-regression" for row in gate["rows"]]
    margins = [f"{float((Fraction(1, 20) - value) * 100):+.2f}" for value in was]
    assert rows == [(2, margins[1], "-15.00", False, True), (3, margins[2], "+1.00", True, False)]
    assert [(row["what"], row["old"], row["new"]) for row in facts["decisions"]] == [
        ("decision", "candidate", "baseline"),
        ("failed gates", "none", "latency-regression"),
    ]
    assert "-15.00" in diff(old, new, "markdown")


def test_a_version_a_setting_and_a_model_that_changed(old, new):
    alter(new, "manifest.json", lambda manifest: manifest["engines"][0].update(version="9.9"))
    alter(new, "results/settings/seqs-four/comparison.json", lambda one: one["setting"].update(candidate="64"))
    alter(new, "model-identities.json", lambda one: one["profiles"][0].update(revision="f" * 40))
    facts = said(old, new)
    assert [(row["what"], row["new"]) for row in facts["versions"]] == [("version", "9.9"), ("revision", "f" * 40)]
    setting = next(row for row in facts["settings"] if row["what"] == "setting")
    assert setting["id"] == "comparison seqs-four"
    assert setting["new"].endswith("-> 64")


def test_a_comparison_that_is_only_in_one_of_them(old, new):
    alter(new, "results/settings-index.json", lambda index: index["comparisons"].pop(0))
    facts = said(old, new)
    assert [(row["id"], row["what"], row["old"]) for row in facts["decisions"]] == [
        ("memory-half", "removed", "candidate")
    ]
    assert {row["comparison"] for row in facts["gates"]} == {"memory-half"}
    assert [row["what"] for row in said(new, old)["decisions"]] == ["added"]


def test_files_that_came_went_or_changed_are_named_and_bodies_are_counted(old, new):
    (new / "added.txt").write_text("x")
    (new / "receipt-proxy.py").unlink()
    folder = new / "results/settings/memory-half/bodies"
    for path in sorted(folder.iterdir())[:3]:
        path.write_bytes(b"other")
    files = {row["path"]: row["change"] for row in said(old, new)["files"]}
    assert files["added.txt"] == "added"
    assert files["receipt-proxy.py"] == "removed"
    assert len(files) == 5
    text = diff(old, new)
    assert "files: 1 added, 1 removed, 3 changed" in text
    assert "results/settings/memory-half/bodies/ (3 files)" in text


def test_what_is_no_package_is_refused(old, tmp_path):
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "file").write_text("x")
    with pytest.raises(EvidenceError, match=r"manifest\.json"):
        diff(old, tmp_path / "no")
    ran = CliRunner().invoke(main, ["diff", str(old), str(tmp_path / "missing")])
    assert ran.exit_code == 2
    assert "Traceback" not in ran.output


def test_the_command_reads_and_says(old, new):
    alter(new, "manifest.json", lambda manifest: manifest.update(title="Another title"))
    ran = CliRunner().invoke(main, ["diff", str(old), str(new), "--format", "markdown"])
    assert ran.exit_code == 0, ran.output
    assert "Another title" in ran.output
    ran = CliRunner().invoke(main, ["diff", str(old), str(old)])
    assert "equal: " in ran.output


def test_a_row_that_went_is_told_by_the_first_thing_known_of_it(old, new):
    gone = json.loads((old / "model-identities.json").read_text())["profiles"][-1]
    for package in (old, new):
        alter(package, "model-identities.json", lambda one: one["profiles"][-1].update(revision=None))
    try:
        alter(new, "model-identities.json", lambda one: one["profiles"].pop())
        [row] = [row for row in said(old, new)["versions"] if row["what"] == "removed"]
        assert row["old"] == gone["repository"]
    finally:
        alter(old, "model-identities.json", lambda one: one["profiles"][-1].update(revision=gone["revision"]))
