"""Markup as GitHub-style Markdown: what a reader sees is what the package says, and nothing in it is obeyed."""

import pytest

from evidence.report.grids import facts, figure, folded, grid
from evidence.report.markdown import Writer, plain
from evidence.report.markup import Markup, element, join
from evidence.report.tables import Table


def written(*markup):
    writer = Writer()
    for one in markup:
        writer.add(one)
    return writer.text()


def test_a_table_has_its_caption_and_numbers_to_the_right():
    table = Table("Pairs", ("name", "size", "note"), [["a", 1, None], ["b | c", 22, "x"]])
    assert written(grid(table)) == (
        "**Pairs**\n\n| name | size | note |\n| --- | ---: | --- |\n| a | 1 | - |\n| b \\| c | 22 | x |\n"
    )


def test_a_table_without_rows_and_a_caption_that_the_heading_says_are_short():
    assert written(grid(Table("Pairs", ("name",), []))) == "Pairs: none.\n"
    assert "**Pairs**" not in written(join((element("h2", "Pairs"), grid(Table("Pairs", ("name",), [["a"]])))))


def test_a_figure_is_an_image_with_words_and_a_caption():
    drawing = element("img", src="page/a.svg", alt="one [two]")
    assert written(figure(drawing, "What it is.")) == "![one \\[two\\]](page/a.svg)\n\n*What it is.*\n"


def test_details_are_the_only_html_and_hold_markdown():
    page = written(folded("More & more", element("p", "inside"), grid(Table("T", ("a",), [[1]]))))
    assert page == (
        "<details>\n<summary>More &amp; more</summary>\n\ninside\n\n**T**\n\n| a |\n| ---: |\n| 1 |\n\n</details>\n"
    )


def test_lists_facts_code_and_blocks():
    assert written(element("ul", element("li", "one"), element("li", "2. two"))) == "* one\n* 2\\. two\n"
    assert written(facts([("name", "value"), ("none", None)])) == "* name: value\n* none: -\n"
    assert written(facts([("record", element("pre", '{"a": "``` b"}'))])).endswith(
        '**record**\n\n````\n{"a": "``` b"}\n````\n'
    )
    assert written(element("p", element("code", "a`b|c"), " ", element("strong", "d"))) == "``a`b|c`` **d**\n"
    assert "| `a\\|b` |" in written(Markup("<table><thead><tr><th>h<tbody><tr><td><code>a|b</code></tbody></table>"))
    assert written(element("pre", "a\nb", data_language="sh")) == "```sh\na\nb\n```\n"
    assert written(element("p", "note", class_="callout bad")) == "> note\n"


def test_links_lead_to_headings_as_web_views_name_them():
    page = written(
        element("p", *(element("a", name, href=f"#at-{name}") for name in ("x.1", "Two words", "again"))),
        *(element("article", element("h3", name), id=f"at-{name}") for name in ("again", "x.1", "Two words")),
        element("h3", "again"),
    )
    assert page.startswith("[x.1](#x1)[Two words](#two-words)[again](#again)\n")


def test_a_heading_that_repeats_has_a_number():
    page = written(
        element("h3", "same"),
        element("article", element("h3", "same"), id="second"),
        element("p", element("a", "there", href="#second")),
    )
    assert "[there](#same-1)" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>", "\\<script>"), ("a_b __c__ d_", "a_b \\_\\_c\\_\\_ d\\_"), ("*x*", "\\*x\\*"), ("$x$", "\\$x\\$"), ("~x~", "\\~x\\~"),
        ("![i](j)", "!\\[i\\](j)"), ("&lt; & b", "\\&lt; & b"), ("\\", "\\\\"), ("`", "\\`"), ("a\n\n# b", "a # b"),
        ("http://a", "http\\://a"), ("www.a", "www\\.a"),
    ],
)  # fmt: skip
def test_text_stands_as_it_is(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize("start", ["# a", "- a", "+ a", "> a", "= a"])
def test_a_paragraph_is_no_heading_list_or_quotation(start):
    assert written(element("p", start)) == f"\\{start}\n"
