"""Records as tables: of the published one, of our own, and of what is none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evidence.cli import main
from evidence.errors import EvidenceError
from evidence.lifecycle.timeline import find_record, measurements, read_record, timeline
from evidence.report import lifecycles, tables
from evidence.report.drawing import Drawings
from evidence.report.markup import join
from evidence.report.plots import Plots

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "tests/vectors/lifecycle/published-record.json"
OWN = ROOT / "archive/lifecycle-cpu"
ADAPTERS = ROOT / "archive/lifecycle-adapters-cpu"


def details(path, event):
    return [row[4] for row in timeline(read_record(path)) if row[2] == event]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    "path", [PUBLISHED, OWN / "record.json", ADAPTERS / "record.json"], ids=lambda p: p.parent.name
)
def test_every_experiment_has_rows_and_figures(path):
    record = read_record(path)
    ids = {one["id"] for one in record["experiments"]}
    assert {row[0] for row in timeline(record)} == ids == {row[0] for row in measurements(record)}
    assert not [row for row in measurements(record) if row[2] in ("True", "False", "None", "")]


def test_crash_is_told_in_order_with_what_callers_saw():
    rows = [row for row in timeline(read_record(OWN / "record.json")) if row[0] == "cpu-crash"]
    assert [row[2] for row in rows] == [
        "killed",
        "first healthy request",
        "listed as gone",
        "request ended",
        "request ended",
        "recovered",
        "last healthy response",
    ]
    assert details(OWN / "record.json", "request ended") == ["statuses 502", "statuses 503 503 200"]
    assert [float(row[1]) for row in rows] == sorted(float(row[1]) for row in rows)


def test_adapters_come_and_go():
    assert details(OWN / "record.json", "generation churn_0") == ["ready b, c, pin (c came, a went)"]
    assert details(OWN / "record.json", "generation churn_6") == ["ready c, d, pin"]
    (turn, *_) = details(ADAPTERS / "record.json", "turn 2")
    assert turn.startswith("statuses 200; ")
    assert "resident b, c (c came, a went)" in details(ADAPTERS / "record.json", "turn 2")[1]


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
@pytest.mark.parametrize("path", [OWN, OWN / "record.json"], ids=["folder", "file"])
def test_show_prints_a_record_with_its_limits(path, form):
    ran = run("show", path, "--format", form)
    assert ran.exit_code == 0, ran.output
    assert "The three models are one checkpoint served three times." in ran.stdout
    assert "detection_after_crash_s" in ran.stdout
    if form == "json":
        said = json.loads(ran.stdout)
        assert {"claims", "timeline", "measurements", "limitations"} <= set(said)
        assert said["timeline"][0]["event"] == "round 0"


def test_timeline_takes_the_folder_too():
    assert run("lifecycle", "timeline", OWN).stdout == run("lifecycle", "timeline", OWN / "record.json").stdout


def test_a_package_is_no_record(tmp_path):
    (tmp_path / "record.json").write_text("{}")
    (tmp_path / "manifest.json").write_text("{}")
    assert find_record(tmp_path) is None
    assert find_record(tmp_path / "none") is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"experiments": 1}', '{"experiments": [{"protocol": {}}]}', "\ufeff{}"]
)
@pytest.mark.parametrize("command", [["show"], ["lifecycle", "timeline"]], ids=" ".join)
def test_what_is_no_record_is_refused_without_a_traceback(text, command, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(EvidenceError, match="expected a lifecycle record"):
        read_record(tmp_path / "r.json")
    ran = run(*command, tmp_path / "r.json")
    assert isinstance(ran.exception, (EvidenceError, SystemExit)), ran.exception


def test_the_page_draws_who_was_resident_after_each_turn():
    view = tables.PackageView(Path("package"))
    path = "results/lifecycle/record.json"
    view.files["results/lifecycle-index.json"] = {"records": [{"id": "adapters", "path": path, "sha256": "0" * 64}]}
    view.files[path] = json.loads((ADAPTERS / "record.json").read_text())
    text = str(join(lifecycles.sections(view, Plots(Drawings()))))
    assert text.count("Adapters resident after each turn") >= 2
    assert "An undeclared adapter is not refused" in text
    assert "effect_vs_warm_base.a" in text


def test_a_package_shows_the_figures_of_its_records():
    view = tables.PackageView(Path("package"))
    view.files["results/lifecycle-index.json"] = {"records": [{"path": "results/lifecycle/record.json"}]}
    view.files["results/lifecycle/record.json"] = json.loads((OWN / "record.json").read_text())
    rows = tables.lifecycle_figures(view).rows
    assert ("cpu-crash", "phase_counts.during", "13") in rows
    assert tables.lifecycle_figures(tables.PackageView(Path("package"))).rows == []
