"""Drawings as SVG files of their own, for a page that shows them as images.

A file needs nothing around it: it brings its colours for light and for dark, and a ground of its own, so that it is
readable also where the viewer's scheme and the page's differ.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from urllib.parse import quote

from evidence.report.drawing import Drawings
from evidence.report.markup import Markup, element, text

OPENING = '<svg xmlns="http://www.w3.org/2000/svg" data-made-by="evidence report"'
# The plotting library counts in points, of which an inch has 72, and a browser in pixels, of which it has 96.
PIXELS = 96 / 72
LONGEST = 120  # characters of a file's name before its suffix
_STRANGE = re.compile(r"[^A-Za-z0-9._+-]+")
_VARIABLE = re.compile(r"var\(--([a-z]+)\)")


class Illustrations(Drawings):
    """The drawings of one page as `files`, by name; the page refers to them in the folder of that name beside it."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder
        self.files: dict[str, str] = {}

    def take(self, svg: bytes, label: str, titles: Mapping[str, Sequence[str]], stem: str = "drawing") -> Markup:
        """The drawing as an image of the page; its file is named by `stem`, and by a number if that is taken."""
        alone = Drawings()
        box, body = alone.body(svg, titles)
        name = self._free(_STRANGE.sub("-", stem)[:LONGEST].strip(".-") or "drawing")
        self.files[name] = _standing(box, body, label, alone.rules())
        return element("img", src=quote(f"{self.folder}/{name}", safe="/+"), alt=label)

    def _free(self, stem: str) -> str:
        # Some file systems do not tell capitals from small letters.
        taken, count, name = {one.lower() for one in self.files}, 1, f"{stem}.svg"
        while name.lower() in taken:
            count += 1
            name = f"{stem}-{count}.svg"
        return name


def _standing(box: str, body: str, label: str, rules: Sequence[tuple[str, str]]) -> str:
    width, height = (float(value) * PIXELS for value in box.split()[2:])
    rules = [("ground", "fill:var(--paper)"), *rules]
    light = "".join(f".{name}{{{_coloured(style, False)}}}" for name, style in rules)
    dark = "".join(f".{name}{{{_coloured(style, True)}}}" for name, style in rules if "var(" in style)
    style = f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    ground = '<rect class="ground" width="100%" height="100%"/>'
    return (
        f'{OPENING} viewBox="{box}" width="{width:.0f}" height="{height:.0f}" role="img">'
        f"<title>{text(label)}</title><style>{style}</style>{ground}{body}</svg>\n"
    )


def _coloured(style: str, dark: bool) -> str:
    return _VARIABLE.sub(lambda found: palette(dark)[found[1]], style)


@functools.cache
def palette(dark: bool) -> dict[str, str]:
    """The colours of the HTML page and its typeface, by the names that drawings use; the style sheet is their one place."""
    sheet = (resources.files("evidence.report") / "assets" / "page.css").read_text(encoding="utf-8")
    light_rule, dark_rule = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]
    words = light_rule + (dark_rule if dark else "")
    # In an attribute-free style element quotes need no escape, but angle brackets and ampersands would: there are none.
    return {name: value.strip() for name, value in re.findall(r"--([a-z]+):([^;]+);", words)}
