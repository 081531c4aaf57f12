"""What a drawing says, whichever release of the plotting library drew it: words, figures, and where its marks are.

Paths, ticks and the order of styles differ between releases; what a reader takes from the drawing may not.
"""

import re
from dataclasses import dataclass
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Drawn:
    """The drawing's words and those of every mark in turn, the words drawn in it, its box, and the places of the marks."""

    titles: list[str | None]
    words: list[str]
    box: str | None
    places: list[float]

    def says_what(self, other: "Drawn") -> bool:
        """Whether both say the same; marks may lie half a point apart."""
        same = (self.titles, self.words, self.box) == (other.titles, other.words, other.box)
        apart = [abs(one - another) for one, another in zip(self.places, other.places, strict=False)]
        return same and len(self.places) == len(other.places) and max(apart, default=0) <= 0.5


def read(svg: str) -> Drawn:
    root = ElementTree.fromstring(svg)
    # A text of figures alone is a tick, or stands in the words of the drawing.
    words = sorted(one.text for one in root.iter(f"{SVG}text") if one.text and re.search(r"[^\W\d]|%", one.text))
    marks = [one for one in root.iter(f"{SVG}use") if one.find(f"{SVG}title") is not None]
    places = [float(mark.get(axis, "0")) for mark in marks for axis in "xy"]
    return Drawn([one.text for one in root.iter(f"{SVG}title")], words, root.get("viewBox"), places)
