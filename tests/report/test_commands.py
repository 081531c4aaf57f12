import json

from click.testing import CliRunner

from evidence.cli import main


def test_report_writes_the_page_and_ends_with_the_verdict(tmp_path):
    (tmp_path / "package" / "results").mkdir(parents=True)
    (tmp_path / "package" / "manifest.json").write_text("{}\n")
    output = tmp_path / "report.html"
    ran = CliRunner().invoke(main, ["report", str(tmp_path / "package"), "--output", str(output)])
    assert ran.exit_code == 1
    assert "rejected" in ran.output
    assert output.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_report_of_nothing_is_an_error_without_a_page(tmp_path):
    output = tmp_path / "report.html"
    ran = CliRunner().invoke(main, ["report", str(tmp_path / "missing"), "--output", str(output)])
    assert ran.exit_code == 2
    assert not output.exists()


def test_show_exports(package, tmp_path):
    ran = CliRunner().invoke(main, ["show", str(package), "--export", str(tmp_path / "csv")])
    assert ran.exit_code == 0, ran.output
    assert len(ran.output.splitlines()) == len(list((tmp_path / "csv").iterdir()))


def test_show_prints_markdown_for_a_pull_request_and_json(package):
    ran = CliRunner().invoke(main, ["show", str(package), "--format", "markdown"])
    assert "| memory-half" in ran.output
    assert json.loads(CliRunner().invoke(main, ["show", str(package), "--json"]).output)["gates"]
