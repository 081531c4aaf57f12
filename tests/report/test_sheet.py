"""The Markdown page: every part is there, the numbers are those of the package, and its data is text whatever it holds."""

import re
from pathlib import Path

import pytest

from evidence.report import sheet, tables
from evidence.report.tables import read_package
from evidence.verdict import Finding, Stage, Validation
from tests.report.test_page import GOOD, poisoned

POISON = '"></td><script>alert(1)</script> | ![i](http://x) [l](http://y) `c` **b** <!-- \n\n# h\n```\n&lt; \u202e'
# What Markdown reads as one: an escaped character, a code span.
QUIET = re.compile(r"\\[!-/:-@\[-`{-~]|(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
HEADINGS = [
    "Verify it yourself", "What was checked", "Where it comes from", "Hardware and software", "Protocol", "Runtime matrix",
    "Comparisons", "Incomplete comparisons", "Functional attempts", "Lifecycle", "What this does not show", "Reproduce it",
]  # fmt: skip


@pytest.fixture(scope="module")
def made(package):
    return sheet.render(GOOD, read_package(package), "forged")


def bare(page):
    """The page without code blocks, code spans and escaped characters: all that Markdown could act on."""
    return QUIET.sub("", re.sub(r"(?ms)^(`{3,})\w*$.*?^\1$", "", page))


def test_every_part_is_there_once_and_in_order(made):
    page, _ = made
    assert "cannot be shown" not in page
    assert re.findall(r"(?m)^## (.*)$", page) == HEADINGS
    assert "\u2714 VERIFIED" in page


def test_every_drawing_is_shown_and_says_its_figures(made, package):
    page, drawings = made
    shown = re.findall(r"!\[((?:[^\[\]\\]|\\.)+)\]\(forged/([^)]+)\)", page)
    assert sorted(name for _, name in shown) == sorted(drawings)
    for entry in read_package(package).comparisons:
        words = {name: text for text, name in shown}
        for part in ("gates", "p95-ttft", "samples"):
            assert re.search(r"\d", words[f"{entry['id']}-{part}.svg"])
        assert (f"{entry['id']}-memory.svg" in words) is (entry["kind"] == "memory")


def test_the_numbers_are_those_of_show(made, package):
    page, _ = made
    view = read_package(package)
    rows = {
        tuple(one.strip() for one in line.strip("|").split("|")) for line in page.splitlines() if line.startswith("| ")
    }
    for name, drop in (
        ("matrix", 0),
        ("decisions", 0),
        ("gates", 1),
        ("comparisons", 2),
        ("incomplete", 0),
        ("attempts", 0),
    ):
        table = tables.TABLES[name](view)
        assert table.rows
        for row in table.rows:
            assert tuple(tables.cell(value) for value in row[drop:]) in rows, name


def test_a_lifecycle_record_is_told_with_its_timeline_and_drawings(view):
    page, drawings = sheet.render(GOOD, view, "forged")
    for row in tables.lifecycle_table(view).rows:
        assert f"### {row[0]}" in page
        assert f"| {row[2]} |" in page.replace("\\", "")
    assert any(name.endswith("-events.svg") for name in drawings)
    assert any(name.endswith("-residency.svg") for name in drawings)
    assert "Hardware and software of the lifecycle records" in page


def test_the_same_package_gives_the_same_bytes_and_no_path(made, package):
    again = sheet.render(GOOD, read_package(package), "forged")
    assert again == made
    assert str(Path(package).parent) not in made[0] + "".join(made[1].values())


def test_what_follows_from_the_tools_and_not_from_the_package_is_left_out(package):
    """A page that was published stays the page of its archive when the tools beside it have changed since."""
    stage = Stage("trusted", 1, 1, note="tools as published by some release")
    page, _ = sheet.render(Validation("p", [stage]), read_package(package), "forged")
    assert "some release" not in page


def test_commands_follow_from_the_manifest(made):
    page, _ = made
    assert "sha256sum -c forged-evaluation.tgz.sha256 || exit 1" in page
    assert "evidence report dist/forged-evaluation.tgz --output forged.md" in page
    assert "--preparation" not in page


def test_a_preparation_artifact_is_built_and_named_as_one(lean):
    manifest = lean.files["manifest.json"]
    manifest["distribution"] = {
        "archive": "forged-preparation-evaluation.tgz",
        "topFolder": "forged",
        "preparation": True,
    }
    manifest["status"] = "IN_PROGRESS_NOT_FINAL"
    page, _ = sheet.render(GOOD, lean, "x")
    assert "evidence build CAMPAIGN --runs runs --output dist --preparation\n" in page
    assert "--source-root dist/forged-preparation " in page
    assert "> Status **IN_PROGRESS_NOT_FINAL**" in page


def test_a_name_that_a_shell_would_read_gives_no_command(lean):
    lean.files["manifest.json"]["distribution"]["archive"] = "x; rm -r ."
    page, _ = sheet.render(GOOD, lean, "x")
    assert "rm -r" not in "".join(re.findall(r"(?s)```sh\n.*?```", page))
    assert "Verify it yourself cannot be shown" in page


def test_a_package_that_does_not_verify_says_so_at_every_heading(lean):
    bad = Validation("p.tgz", [Stage("members", 1, 0, [Finding("SOME-CODE", "place", "a", "b")])])
    page, _ = sheet.render(bad, lean, "x")
    assert page.startswith("# NOT VERIFIED: ")
    assert "\u2716 NOT VERIFIED" in page.split("##")[0]
    assert "SOME-CODE" in page.split("##")[0]
    assert re.findall(r"(?m)^## (.*)$", page) == [f"{heading} (not verified)" for heading in HEADINGS]


def test_a_package_that_cannot_be_read_still_gets_a_page():
    bad = Validation("p.tgz", [Stage("members", 1, 0, [Finding("SOME-CODE", "place", "a", "b")])])
    page, drawings = sheet.render(bad, None, "x")
    assert "could not be read" in page
    assert "SOME-CODE" in page
    assert drawings == {}


def test_a_part_out_of_form_does_not_take_the_rest_with_it(lean):
    del lean.files["results/settings/memory-half/samples.json"]
    page, drawings = sheet.render(GOOD, lean, "x")
    assert "memory-half cannot be shown" in page
    assert "## Functional attempts" in page
    assert [name for name in drawings if name.startswith("memory-half")] == []


def test_no_data_becomes_markup(package, monkeypatch):
    monkeypatch.setattr("tests.report.test_page.POISON", POISON)
    view = read_package(package)
    view.files = {name: poisoned(content) for name, content in view.files.items()}
    stages = [Stage(POISON, 1, 0, [Finding(POISON, POISON, POISON, POISON)], POISON)]
    page, drawings = sheet.render(Validation(POISON, stages, {POISON: POISON}, [{"verdict": POISON}]), view, "x")
    acts = bare(page)
    assert page.count("alert(1)") > 300
    assert "\u202e" not in page
    assert set(re.findall(r"</?[a-z!].*", acts)) == {
        "<details>", "</details>", *re.findall(r"(?m)^<summary>[^<>]*</summary>$", acts)
    }  # fmt: skip
    assert {target.partition("/")[0][:1] for target in re.findall(r"\]\(([^)]*)\)", acts)} == {"x", "#"}
    assert set(re.findall(r"(?m)^#+ (.)", acts)) >= {"N", "V"}
    width = 0
    for line in acts.splitlines():
        pipes = line.count("|")
        assert not width or not pipes or pipes == width, line
        width = pipes
    assert all(re.fullmatch(r"[A-Za-z0-9._+-]{1,130}\.svg", name) for name in drawings)
