"""Makes a plotting library's SVG fit for the page: small, themed, without inline styles, and named for a reader.

Colours are drawn as stand-ins and become CSS variables, so that one drawing is right in light and in dark; every
distinct style becomes one class, so that the page needs no inline style and its policy can forbid them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from evidence.report.markup import Markup, text

COLOURS = {
    "ink": "#010203", "muted": "#010204", "grid": "#010205", "a": "#010206", "b": "#010207", "bad": "#010208",
    "good": "#010209", "paper": "#01020a", "warn": "#01020b",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_SPACE = re.compile(r"\s*([MLCQz])\s*")
_ROTATION = re.compile(r"rotate\(-?0[ .)]")
_IDLE = {("fill-opacity", "1"), ("stroke-linejoin", "miter"), ("stroke-linecap", "square"), ("stroke", "#000000")}
# Nothing is drawn beyond its axes, so that no clipping is needed.
_DROPPED = {"metadata", "title", "desc", "style", "clipPath"}
_KEPT = {"d", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "transform", "patternUnits"}


class Drawings:
    """The drawings of one page: they share their style classes and never an identifier."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}
        self._count = 0

    def take(self, svg: bytes, label: str, titles: Mapping[str, Sequence[str]], stem: str = "drawing") -> Markup:
        """The drawing as an element of the page, read out as `label`; `stem` names it on pages that keep drawings as files.

        `titles` gives, for the group of that id, the words that a pointer shows over each of its marks in turn.
        """
        box, body = self.body(svg, titles)
        return Markup(f'<svg class="plot" viewBox="{box}" role="img" aria-label="{text(label)}">{body}</svg>')

    def body(self, svg: bytes, titles: Mapping[str, Sequence[str]]) -> tuple[str, str]:
        """The view box of the drawing and the elements in it."""
        self._count += 1
        # The input is the plotting library's own output.
        root = ElementTree.fromstring(svg)  # noqa: S314
        names: dict[str, str] = {}
        body = "".join(self._render(child, names, titles) for child in root)
        return _short(root.get("viewBox", "0 0 1 1")), body

    def css(self) -> str:
        """The rules of every class that the drawings use."""
        return "".join(f".plot .{name}{{{style}}}\n" for name, style in self.rules())

    def rules(self) -> list[tuple[str, str]]:
        """(class, style) of everything drawn; colours are variables of the page."""
        return [(name, style) for style, name in self._classes.items()]

    def _render(
        self,
        one: ElementTree.Element,
        names: dict[str, str],
        titles: Mapping[str, Sequence[str]],
        tip: str | None = None,
    ) -> str:
        tag = one.tag.rpartition("}")[2]
        if tag in _DROPPED:
            return ""
        words = [tag]
        style, pattern = _themed(one)
        if pattern:
            words.append(f'fill="url(#{self._name(pattern, names)})"')
        if style and tip is None:
            words.append(f'class="{self._class(style)}"')
        if tag in ("path", "pattern") and one.get("id"):
            words.append(f'id="{self._name(one.get("id", ""), names)}"')
        for key, value in one.attrib.items():
            plain = key.rpartition("}")[2]
            if plain == "href":
                words.append(f'href="#{self._name(value[1:], names)}"')
            elif plain in _KEPT and not _ROTATION.match(value):
                words.append(f'{plain}="{text(_short(value))}"')
        inner = [text(one.text.strip())] if tag in ("text", "tspan") and one.text else []
        if tip is not None:
            inner.append(Markup(f"<title>{text(tip)}</title>"))
        if one.get("id", "") in titles:
            marks = [child for child in one.iter() if child.tag.endswith("}use")]
            shared, _ = _themed(marks[0])
            words.append(f'class="{self._class(shared)}"')
            inner += [Markup(self._render(child, names, {})) for child in one.iter() if child.tag.endswith("}defs")]
            inner += [
                Markup(self._render(mark, names, {}, tip))
                for mark, tip in zip(marks, titles[one.get("id", "")], strict=True)
            ]
        else:
            inner += [Markup(self._render(child, names, titles)) for child in one]
        content = "".join(inner)
        if tag == "g" and len(words) == 1:
            return content
        if tag in ("g", "defs") and not content:
            return ""
        return f"<{' '.join(words)}>{content}</{tag}>" if content else f"<{' '.join(words)}/>"

    def _class(self, style: str) -> str:
        return self._classes.setdefault(style, f"p{len(self._classes)}")

    def _name(self, name: str, names: dict[str, str]) -> str:
        return names.setdefault(name, f"d{self._count}-{len(names)}")


def _short(value: str) -> str:
    """Tenths of a point are below what any screen or printer shows."""
    value = _SPACE.sub(r"\1", value)
    return _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".rstrip("0").rstrip("."), value).strip()


def _themed(one: ElementTree.Element) -> tuple[str, str]:
    """The style in the page's own terms, and the name of the pattern that fills the shape, if one does."""
    style, pattern = one.get("style", ""), ""
    for key in ("fill", "stroke"):
        if one.get(key):
            style += f";{key}:{one.get(key)}"
    parts = []
    for part in filter(None, (piece.strip() for piece in style.split(";"))):
        key, _, value = (piece.strip() for piece in part.partition(":"))
        if value.startswith("url(#"):
            pattern = value[5:-1]
            continue
        if key == "font-family":
            value = "var(--sans)"
        for name, stand_in in COLOURS.items():
            value = value.replace(stand_in, f"var(--{name})")
        if (key, value) not in _IDLE:
            parts.append(f"{key}:{_short(value)}")
    return ";".join(parts), pattern
