"""Tables say what the package says, in every form, and refuse what is no package."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from pathlib import Path

import pytest

from benchmarks.forged_runs import Shape, forge_attempt, forge_comparison, write_campaign
from evidence.build.package import Built, build
from evidence.errors import EvidenceError
from evidence.report import tables


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("tables")
    runs = folder / "runs"
    profiles = {"one": "accessible", "two": "gated", "three": "deferred"}
    campaign = write_campaign(folder / "campaign", profiles=profiles, comparisons=2, tokens=24)
    forge_comparison(runs, campaign, "compare-1", 0, Shape(used_bytes=(1000, 690)))
    forge_comparison(runs, campaign, "compare-2", 1, Shape(killed_after=60))
    forge_attempt(runs, campaign, "one-rr-1", 2)
    forge_attempt(runs, campaign, "two-native-1", 3, reason="ACCESS_DENIED", outcome="BLOCKED_ACCESS", requests=0)
    return build(campaign.folder, runs, folder / "dist", quiet=True)


@pytest.fixture(scope="module")
def view(built: Built) -> tables.PackageView:
    return tables.read_package(built.archive)


def test_an_archive_and_its_unpacked_folder_show_the_same(
    built: Built, view: tables.PackageView, tmp_path: Path
) -> None:
    with tarfile.open(built.archive) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tables.read_package(tmp_path / "forged")
    for form in ("table", "markdown", "json"):
        assert tables.show(folder, form) == tables.show(view, form)


def test_json_has_every_table_as_rows(view: tables.PackageView) -> None:
    content = json.loads(tables.show(view, "json"))
    assert set(tables.TABLES) <= content.keys()
    assert len(content["comparisons"]) == 3
    gates = {(row["gate"], row["repetition"], row["device"]): row for row in content["gates"]}
    row = gates["memory-reduction", 2, "device-1"]
    assert (row["baseline"], row["candidate"], row["relative"], row["limit"], row["margin"], row["holds"]) == (
        1000, 690, "31.00 %", "at least 30 %", "+1.00", True,
    )  # fmt: skip
    [decision] = content["decisions"]
    assert (decision["decision"], decision["failed gates"]) == ("candidate", [])
    [aborted] = content["incomplete"]
    assert aborted["reason"] == "RUNNER_DIED"
    assert (
        aborted["offered"] == aborted["completed"] + aborted["timed out"] + aborted["failed"] + aborted["never started"]
    )


def test_text_and_markdown_hold_both_sides_and_the_decision(view: tables.PackageView) -> None:
    text, markdown = tables.show(view, "table"), tables.show(view, "markdown")
    assert "nothing here is a result of a GPU" in text
    for words in (
        "RUNTIME MATRIX",
        "--context-tokens 4096 -> 1024",
        "at least 30 %",
        "BLOCKED_ACCESS",
        "it was ACCESS_DENIED",
    ):
        assert words in text
    assert "## Gates" in markdown
    assert "| compare-1" in markdown


def test_the_matrix_is_filtered(view: tables.PackageView) -> None:
    rows = json.loads(tables.matrix(view, profile="two", outcome="BLOCKED_ACCESS", format="json"))["rows"]
    assert [row["case"] for row in rows] == ["two-native-1"]
    table = list(csv.DictReader(io.StringIO(tables.matrix(view, engine="synthetic-1", format="csv"))))
    assert len(table) == 6
    assert {row["outcome"] for row in table} == {"SUCCESS", "NOT_ATTEMPTED", "BLOCKED_ACCESS", "USER_DEFERRED"}
    assert "USER_DEFERRED" in tables.matrix(view, profile="three")
    assert json.loads(tables.matrix(view, outcome="MISSING_IMAGE", format="json"))["rows"] == []


@pytest.mark.parametrize("wrong", [{"profile": "nobody"}, {"engine": "none"}, {"outcome": "success"}])
def test_a_filter_that_names_nothing_is_refused(view: tables.PackageView, wrong: dict[str, str]) -> None:
    with pytest.raises(EvidenceError, match="expected one of"):
        tables.matrix(view, **wrong)  # type: ignore[arg-type]


def test_plot_data_has_a_line_a_sample(view: tables.PackageView) -> None:
    rows = list(csv.DictReader(io.StringIO(tables.render_csv(tables.sample_table(view)))))
    assert len(rows) == 252
    assert {row["comparison"] for row in rows} == {"compare-1"}
    assert sum(row["phase"] == "main" and row["ttftSeconds"] != "" for row in rows) == 144


def test_what_is_no_package_is_refused(built: Built, tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="found no results/settings-index"):
        tables.show(tables.read_package(built.retained), "table")
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(built.archive.read_bytes()[:5000])
    with pytest.raises(EvidenceError, match="gzip-truncated"):
        tables.read_package(cut)
    with pytest.raises(EvidenceError, match="cannot be read"):
        tables.read_package(tmp_path / "nothing.tgz")


def test_lifecycle_records_are_told_as_a_timeline() -> None:
    """The published record has three experiments; each of their events is a row, in text as in JSON."""
    record = json.loads((Path(__file__).parents[1] / "vectors/lifecycle/published-record.json").read_text())
    view = tables.PackageView(Path("package"))
    view.files["results/lifecycle-index.json"] = {"records": [{"path": "results/lifecycle/record.json"}]}
    view.files["results/lifecycle/record.json"] = record
    table = tables.lifecycle_table(view)
    assert {row[0] for row in table.rows} == {one["id"] for one in record["experiments"]}
    assert any("SIGKILL" in cell or "crash" in cell for row in table.rows for cell in row)
    assert tables.lifecycle_table(tables.PackageView(Path("package"))).rows == []


@pytest.mark.parametrize(
    ("text", "form", "shown"),
    [
        ("\x1b[2Jdone", "table", "\\u001b[2Jdone"),
        ("a\u202eb", "table", "a\\u202eb"),
        ("a\nb\tc", "table", "a b c"),
        ("a | b", "markdown", "a \\| b"),
        ("<script>[x](y)`", "markdown", "\\<script\\>\\[x\\](y)\\`"),
        ("\x1b[0m", "markdown", "\\\\u001b\\[0m"),
        ("r1-a_main 5 %", "markdown", "r1-a_main 5 %"),
    ],
)
def test_what_a_package_says_is_obeyed_by_no_terminal_and_opens_nothing_in_markdown(
    text: str, form: str, shown: str
) -> None:
    assert tables.words(text, form) == shown
    assert shown in tables.Table("One", ("cell",), [[text]]).render(form)
