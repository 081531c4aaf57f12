import pytest

from evidence.report.markup import Markup, element, join, text


def test_text_is_escaped_and_markup_is_not_escaped_twice():
    assert text('<b a="1">&\'') == "&lt;b a=&quot;1&quot;&gt;&amp;&#x27;"
    assert element("p", element("b", "<"), ">") == "<p><b>&lt;</b>&gt;</p>"
    assert join(["<", Markup("<br>")]) == "&lt;<br>"


def test_attributes_are_escaped_left_out_or_bare():
    assert element("a", "x", href='"><script>', hidden=True, title=None, class_="c") == (
        '<a href="&quot;&gt;&lt;script&gt;" hidden class="c">x</a>'
    )


@pytest.mark.parametrize("name", ["onclick", "onload", "style", "srcdoc"])
def test_no_attribute_that_could_run_or_draw_is_written(name):
    with pytest.raises(ValueError, match="ever written"):
        element("p", **{name: "x"})


def test_what_turns_text_round_or_hides_is_shown():
    assert text("a\u202eb\u200bc\x1b[0m") == "a\\u202eb\\u200bc\\u001b[0m"
    assert text("två\nrader") == "två\nrader"
