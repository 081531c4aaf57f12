"""Drawings as files: they stand alone, in both schemes, and are named after what they show."""

import re
from xml.etree import ElementTree

import pytest

from evidence.report.illustrations import Illustrations, palette
from evidence.report.plots import Dot, Plots
from tests.report.drawn import read
from tests.report.test_plots import DRAW, HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAW)
def test_a_file_brings_everything_that_it_needs(name):
    drawings = Illustrations("page")
    image = DRAW[name](Plots(drawings))
    [(file, content)] = drawings.files.items()
    assert f'src="page/{file}"' in image
    root = ElementTree.fromstring(content)
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title").text == HOSTILE
    width, height = (float(value) for value in root.get("viewBox").split()[2:])
    assert (int(root.get("width")), int(root.get("height"))) == (round(width * 96 / 72), round(height * 96 / 72))
    style = root.find(f"{SVG}style").text
    assert "var(" not in content
    assert not re.search(r"(?:href|src)=\"(?!#)|url\((?!#)|@import|<script|<foreignObject|\son\w+=", content)
    used = {one.get("class") for one in root.iter() if one.get("class")}
    assert used == set(re.findall(r"\.([a-z]+\d*)\{", style))
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    assert f"fill:{palette(False)['paper']}" in light
    assert f"fill:{palette(True)['paper']}" in dark


def test_both_palettes_have_the_same_names_and_other_colours():
    light, dark = palette(False), palette(True)
    assert light.keys() == dark.keys()
    assert all(light[name] != dark[name] for name in ("paper", "ink", "muted", "a", "b", "good", "bad", "warn", "grid"))


def test_a_name_is_fit_for_every_file_system_and_taken_once():
    drawings = Illustrations("a page")
    plots = Plots(drawings)
    for stem in ("../../etc/x", "..", "A b", "a b", "", "a%b\\c\x00"):
        plots.slopes([("p", 1.0, 2.0)], "s", "words", stem=stem)
    assert list(drawings.files) == ["etc-x.svg", "drawing.svg", "A-b.svg", "a-b-2.svg", "drawing-2.svg", "a-b-c.svg"]
    assert 'src="a%20page/x.svg"' in plots.slopes([("p", 1.0, 2.0)], "s", "words", stem="x")


def test_a_kept_drawing_is_known_by_its_words_and_by_where_its_marks_are():
    """The test of published pages compares drawings by this, since another release of matplotlib draws other bytes."""

    def drawn(y=1.0, words="all", tick="1."):
        drawings = Illustrations("page")
        dots = [Dot(0.0, y, "A", "first"), Dot(1.0, 2.0, "A", "second")]
        Plots(drawings).samples([(f"{tick} pair", dots)], "s", words)
        return drawings.files["samples.svg"]

    kept = read(drawn())
    assert kept.says_what(read(drawn().replace("stroke-width:0.6", "stroke-width:0.7")))
    assert not kept.says_what(read(drawn(y=1.1)))
    assert not kept.says_what(read(drawn(words="all of it")))
    assert not kept.says_what(read(drawn(tick="2.")))
