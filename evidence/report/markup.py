"""HTML as values: what is text is escaped, and only what was made here is markup.

Everything that comes from a package is hostile until it has gone through `element` or `text`; there is no other
way for a string to become part of a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from evidence.visible import visible

VOID = {"br", "hr", "meta", "link", "col", "img"}


class Markup(str):
    """A piece of HTML made by this package, safe to stand in a page as it is."""

    __slots__ = ()


def text(value: object) -> Markup:
    """The value as text of a page; what is markup already stays as it is."""
    return value if isinstance(value, Markup) else Markup(escape(visible(str(value)), quote=True))


def join(parts: Iterable[object]) -> Markup:
    """Pieces, one after another."""
    return Markup("".join(text(part) for part in parts))


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """`<name attributes>content</name>`: a trailing `_` of a keyword is dropped and other `_` are hyphens.

    An attribute that is None or False is left out, one that is True stands without a value. Event handlers and
    styles are refused: the page's policy would not run them, and no data may ask for them.
    """
    words = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if label.startswith("on") or label in ("style", "srcdoc"):
            raise ValueError(f"{label}: no such attribute is ever written")
        if value is True:
            words.append(label)
        elif value is not None and value is not False:
            words.append(f'{label}="{text(value)}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening if name in VOID else f"{opening}{join(content)}</{name}>")
