import re
from xml.etree import ElementTree

import pytest

from evidence.report.drawing import Drawings
from evidence.report.plots import Bar, Dot, Limit, Plots

HOSTILE = '<script>alert("1")</script> $x^2$ & é'
DRAW = {
    "slopes": lambda plots: plots.slopes([(HOSTILE, 0.4, 0.2), ("pair 2", 0.4, 0.4), ("pair 3", 0.0, 0.1)], "s", HOSTILE),
    "ecdf": lambda plots: plots.ecdf([("r1", "A", [0.1, 0.2]), ("r1", "B", [])], "s", HOSTILE),
    "samples": lambda plots: plots.samples([("1.", [Dot(0, 1, "A", HOSTILE), Dot(1, 2, "failed", "f")]), ("2.", [])], "s", HOSTILE),
    "bars": lambda plots: plots.bars([Bar(HOSTILE, 3, None), Bar("r2", 0, 0)], "GiB", HOSTILE, share=0.7),
    "limits": lambda plots: plots.limits([Limit(HOSTILE, 17, 30, False, False), Limit("b", 1, 5, True, True)], HOSTILE),
    "fates": lambda plots: plots.fates([(HOSTILE, {"completed": 42, "failed": 1})], HOSTILE),
    "residency": lambda plots: plots.residency(["one", HOSTILE], {HOSTILE: [True, False]}, HOSTILE),
    "events": lambda plots: plots.events([(0.0, HOSTILE)], [("w", 0.0, 0.0)], "s", HOSTILE),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAW)
def test_drawings_are_named_themed_and_without_inline_styles_or_scripts(name):
    drawings = Drawings()
    drawn = DRAW[name](Plots(drawings))
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label") == HOSTILE
    assert not [one for one in root.iter() if one.get("style") or one.tag == "script"]
    assert not re.search(r"#[0-9a-f]{6}", drawn + drawings.css())
    used = set(re.findall(r'class="(p\d+)"', drawn))
    assert used == set(re.findall(r"\.(p\d+)\{", drawings.css()))
    assert "var(--ink)" in drawings.css()


def test_text_of_a_drawing_stands_as_it_is():
    drawn = DRAW["limits"](Plots(Drawings()))
    assert HOSTILE in {one.text for one in ElementTree.fromstring(drawn).iter("text")}


def test_drawings_of_one_page_share_no_identifier_and_use_none_that_is_not_there():
    plots = Plots(Drawings())
    page = ElementTree.fromstring(f"<div>{''.join(draw(plots) for draw in [*DRAW.values(), *DRAW.values()])}</div>")
    names = [one.get("id") for one in page.iter() if one.get("id")]
    assert len(names) == len(set(names))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', ElementTree.tostring(page, encoding="unicode"))
    assert used
    assert set(used) <= set(names)


def test_every_sample_is_a_mark_with_its_words():
    dots = [
        Dot(place, place % 7, kind, f"{kind} {place}")
        for place, kind in enumerate(["A", "B", "warm", "unstreamed", "failed"] * 9)
    ]
    drawn = ElementTree.fromstring(Plots(Drawings()).samples([("1.", dots)], "s", "all"))
    assert sorted(one.text for one in drawn.iter("title")) == sorted(dot.title for dot in dots)
    assert all(one.find("title") is not None for one in drawn.iter("use") if len(one))


def test_the_same_numbers_draw_the_same_bytes():
    first, second = (DRAW["samples"](Plots(Drawings())) for _ in range(2))
    assert first == second
