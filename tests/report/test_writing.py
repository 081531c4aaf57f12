"""A report on disk: whole or not there, and in the place of nothing but a report that was made here."""

import pytest

from evidence.errors import EvidenceError
from evidence.report import page, sheet, writing
from evidence.report.illustrations import OPENING
from evidence.report.writing import write_report
from evidence.verdict import Stage, Validation

GOOD = Validation("p.tgz", [Stage("members", 1, 1)])
PAGE = f"# A\n\n{sheet.MADE}\n"
HTML = f"<!DOCTYPE html>{page.MADE}"
SVG = f"{OPENING}></svg>\n"


@pytest.fixture
def drawn(monkeypatch):
    """What the page and its drawings will be; a test may alter it, and nothing is verified or drawn."""
    result = [PAGE, {"one.svg": SVG, "two.svg": SVG}]
    monkeypatch.setattr("evidence.validate.verify", lambda *_, **__: GOOD)
    monkeypatch.setattr("evidence.report.writing.read_package", lambda _: None)
    monkeypatch.setattr("evidence.report.sheet.render", lambda *_, **__: tuple(result))
    monkeypatch.setattr("evidence.report.page.render", lambda *_, **__: HTML)
    return result


def laid(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_a_page_and_the_folder_of_its_name(drawn, tmp_path):
    assert write_report(tmp_path, tmp_path / "a.md") is GOOD
    assert laid(tmp_path) == {"a.md": PAGE, "a/one.svg": SVG, "a/two.svg": SVG}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.*")} == {0o644}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_its_own_page_and_folder_are_replaced(drawn, tmp_path):
    write_report(tmp_path, tmp_path / "a.md")
    drawn[:] = [f"{PAGE}more\n", {"three.svg": SVG}]
    write_report(tmp_path, tmp_path / "a.md")
    assert laid(tmp_path) == {"a.md": f"{PAGE}more\n", "a/three.svg": SVG}
    drawn[1] = {}
    write_report(tmp_path, tmp_path / "a.md")
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize("name", ["a.txt", "a", "a.HTML", "a.markdown"])
def test_another_suffix_is_one_error_that_names_both(drawn, tmp_path, name):
    with pytest.raises(EvidenceError, match=r"expected a file name that ends in \.html or \.md"):
        write_report(tmp_path, tmp_path / name)
    assert laid(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "# mine\n"),
        ("a/notes.txt", "mine"),
        ("a/mine.svg", "<svg></svg>"),
        ("a/deep/one.svg", SVG),
        ("a", "mine"),
    ],
)
def test_what_was_not_made_here_stays(drawn, tmp_path, name, content):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(content)
    before = laid(tmp_path)
    with pytest.raises(EvidenceError, match=r"found (a file that was not made by this command|no folder)"):
        write_report(tmp_path, tmp_path / "a.md")
    assert laid(tmp_path) == before


@pytest.mark.parametrize("name", ["a.md", "a", "a/one.svg"])
def test_a_link_is_not_followed(drawn, tmp_path, name):
    other = tmp_path / "other"
    (other / "folder").mkdir(parents=True)
    (other / "file").write_text(PAGE if name == "a.md" else SVG)
    folder = tmp_path / "here"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(other / ("folder" if name == "a" else "file"))
    with pytest.raises(EvidenceError, match="expected"):
        write_report(tmp_path, folder / "a.md")
    assert (folder / name).is_symlink()


@pytest.mark.parametrize("broken", ["page", "drawing"])
def test_a_failure_leaves_everything_as_it_was(drawn, tmp_path, broken):
    write_report(tmp_path, tmp_path / "a.md")
    before = laid(tmp_path)
    if broken == "page":
        drawn[:] = ["\ud800", {"three.svg": SVG}]
    else:
        drawn[:] = [PAGE, {"three.svg": "\ud800"}]
    with pytest.raises(UnicodeEncodeError):
        write_report(tmp_path, tmp_path / "a.md")
    assert laid(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.md"]


def test_a_first_page_that_fails_leaves_nothing(drawn, tmp_path):
    drawn[0] = "\ud800"
    with pytest.raises(UnicodeEncodeError):
        write_report(tmp_path, tmp_path / "a.md")
    assert list(tmp_path.iterdir()) == []


def test_an_html_page_is_whole_or_not_there(drawn, tmp_path, monkeypatch):
    with pytest.raises(EvidenceError, match="no such folder"):
        write_report(tmp_path, tmp_path / "missing" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(EvidenceError, match="expected a file name"):
        write_report(tmp_path, tmp_path / "folder.html")
    output = tmp_path / "report.html"
    write_report(tmp_path, output)
    monkeypatch.setattr("evidence.report.page.render", lambda *_, **__: "\ud800")
    with pytest.raises(UnicodeEncodeError):
        write_report(tmp_path, output)
    assert output.read_text() == HTML
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder.html", "report.html"]


def test_an_html_page_takes_the_place_of_its_own_alone(drawn, tmp_path):
    output = tmp_path / "report.html"
    output.write_text("<p>mine</p>")
    with pytest.raises(EvidenceError, match="not made by this command"):
        write_report(tmp_path, output)
    assert output.read_text() == "<p>mine</p>"
    output.write_text(f"an older page. {page.MADE}")
    write_report(tmp_path, output)
    assert output.read_text() == HTML
    (tmp_path / "link.html").symlink_to(output)
    with pytest.raises(EvidenceError, match="not made by this command"):
        write_report(tmp_path, tmp_path / "link.html")


def test_nothing_is_verified_before_the_place_is_known_to_be_free(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr("evidence.validate.verify", lambda *_, **__: pytest.fail("verified"))
    (tmp_path / "a.md").write_text("mine")
    with pytest.raises(EvidenceError):
        writing.write_report(tmp_path, tmp_path / "a.md")
