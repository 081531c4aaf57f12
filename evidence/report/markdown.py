"""Pieces of a page as GitHub-style Markdown: the same markup that the HTML page is made of, written in another way.

    headings, paragraphs, lists, links, code   as CommonMark has them
    tables                                     pipes, the caption above in bold, numbers to the right
    figures                                    an image with its words, the caption below
    details                                    stay HTML, the only HTML there is

What comes from a package is text: every character that could mean something to Markdown is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

from evidence.report.markup import VOID, Markup

_BLOCKS = {"section", "article", "div", "header", "main", "figure", "p", "ul", "ol", "dl", "table", "details", "pre",
           "figcaption", "h1", "h2", "h3", "h4"}  # fmt: skip
_SPECIAL = re.compile(
    r"[\\`*\[\]<|~$]|&(?=#?\w+;)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.", re.IGNORECASE
)
_START = re.compile(r"^([-#+=>]|\d+(?=[.)]))")
_SLUG = re.compile(r"[^\w\- ]")


@dataclass
class Node:
    """One element, with its text and elements in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def words(self) -> str:
        """All text within, as one line."""
        parts = (one if isinstance(one, str) else one.words() for one in self.children)
        return " ".join("".join(parts).split())

    def find(self, *tags: str) -> Iterator[Node]:
        """Elements of these names within, in order."""
        for one in self.children:
            if isinstance(one, Node):
                if one.tag in tags:
                    yield one
                yield from one.find(*tags)


class _Tree(HTMLParser):
    """Markup made by this package as nodes; cells and rows may lack their end tags."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("div")
        self.open = [self.root]
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th", "tr"):
            self._end({"td", "th"} if tag != "tr" else {"td", "th", "tr"})
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        while len(self.open) > 1 and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def _end(self, tags: set[str]) -> None:
        while self.open[-1].tag in tags:
            self.open.pop()


class Writer:
    """Collects a page block by block; links to an id lead to the heading that follows it, as web views name it."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._anchors: dict[str, str] = {}
        self._waiting: list[str] = []
        self._slugs: dict[str, int] = {}
        self._heading = ""

    def add(self, markup: Markup) -> None:
        """Markup of this package."""
        self._blocks += self._written(_Tree(markup).root)

    def markdown(self, source: str) -> None:
        """Markdown that this project wrote itself, as it is."""
        self._blocks.append(source.strip("\n"))

    def text(self) -> str:
        """The page."""
        page = "\n\n".join(block for block in self._blocks if block)
        return re.sub(r"\]\(\x00([^\x00]*)\x00\)", lambda found: f"](#{self._anchors.get(found[1], '')})", page) + "\n"

    def _written(self, node: Node) -> list[str]:
        """The blocks of an element's content; text between blocks is a paragraph of its own."""
        blocks: list[str] = []
        loose: list[Node | str] = []
        for one in node.children:
            if isinstance(one, Node) and one.tag in _BLOCKS:
                blocks += [_paragraph(loose), *self._block(one)]
                loose = []
            else:
                loose.append(one)
        return [*blocks, _paragraph(loose)]

    def _block(self, node: Node) -> list[str]:
        if node.attributes.get("id"):
            self._waiting.append(node.attributes["id"])
        if node.tag in ("h1", "h2", "h3", "h4"):
            self._name(node.words())
            return [f"{'#' * int(node.tag[1])} {_line(node.children)}"]
        if node.tag == "table":
            return self._table(node)
        if node.tag in ("ul", "ol"):
            items = [one for one in node.children if isinstance(one, Node)]
            return [
                "\n".join(
                    f"{f'{at}.' if node.tag == 'ol' else '*'} {_paragraph(one.children)}"
                    for at, one in enumerate(items, 1)
                )
            ]
        if node.tag == "dl":
            return _facts(node)
        if node.tag == "pre":
            return [_fence(node)]
        if node.tag == "figcaption":
            return [f"*{_line(node.children)}*"]
        if node.tag == "details":
            return self._details(node)
        if node.tag == "p":
            words = _paragraph(node.children)
            return [f"> {words}" if "callout" in node.attributes.get("class", "") else words]
        return self._written(node)

    def _table(self, node: Node) -> list[str]:
        captions = [f"**{_line(one.children)}**" for one in node.find("caption") if one.words() != self._heading]
        return [*captions, _table(node)]

    def _details(self, node: Node) -> list[str]:
        summary = next(node.find("summary"))
        rest = Node("div", {}, [one for one in node.children if one is not summary])
        return [
            f"<details>\n<summary>{escape(summary.words(), quote=False)}</summary>",
            *self._written(rest),
            "</details>",
        ]

    def _name(self, heading: str) -> None:
        """Note how a web view will call this heading: small letters, hyphens for spaces, a number when it repeats."""
        self._heading = heading
        slug = _SLUG.sub("", heading.lower()).replace(" ", "-")
        count = self._slugs.get(slug, 0)
        self._slugs[slug] = count + 1
        for name in self._waiting:
            self._anchors[name] = f"{slug}-{count}" if count else slug
        self._waiting.clear()


def plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", re.sub(r"\s+", " ", text.replace("\x00", "")))


def _paragraph(children: Sequence[Node | str]) -> str:
    """One paragraph; what it begins with is not taken for a list or a heading."""
    line = _line(children)
    return _START.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", line)


def _line(children: Sequence[Node | str]) -> str:
    return "".join(_inline(one) for one in children).strip()


def _inline(one: Node | str) -> str:
    if isinstance(one, str):
        return plain(one)
    if one.tag == "img":
        return f"![{plain(one.attributes['alt'])}]({one.attributes['src']})"
    if one.tag == "code":
        return _code(one.words())
    inner = _line(one.children)
    if one.tag == "strong" and inner:
        return f"**{inner}**"
    if one.tag == "a":
        href = one.attributes["href"]
        return f"[{inner}](\x00{href[1:]}\x00)" if href.startswith("#") else f"[{inner}]({href})"
    return "".join(_inline(child) for child in one.children)


def _code(words: str) -> str:
    ticks = "`" * (max((len(run) for run in re.findall("`+", words)), default=0) + 1)
    pad = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{pad}{words}{pad}{ticks}" if words else ""


def _fence(node: Node) -> str:
    content = "".join(one if isinstance(one, str) else one.words() for one in node.children).strip("\n")
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", content)), default=0) + 1)
    return f"{ticks}{node.attributes.get('data-language', '')}\n{content}\n{ticks}"


def _facts(node: Node) -> list[str]:
    """Names and values as a list; a value that is a block stands below its name."""
    names, values = list(node.find("dt")), list(node.find("dd"))
    blocks: list[str] = []
    lines = []
    for name, value in zip(names, values, strict=True):
        inner = next(value.find("pre"), None)
        if inner is not None:
            blocks += [f"**{_line(name.children)}**", _fence(inner)]
        else:
            lines.append(f"* {_line(name.children)}: {_line(value.children)}")
    return ["\n".join(lines), *blocks]


def _table(node: Node) -> str:
    head = [_cell(one) for one in next(node.find("thead")).find("th")]
    right = {int(found) for found in re.findall(r"\bn(\d+)\b", node.attributes.get("class", ""))}
    rule = ["---:" if place in right else "---" for place in range(1, len(head) + 1)]
    rows = [[_cell(one) for one in row.find("td", "th")] for row in next(node.find("tbody")).find("tr")]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
    return "\n".join(lines)


def _cell(node: Node) -> str:
    parts = [
        _code(one.words()).replace("|", "\\|") if isinstance(one, Node) and one.tag == "code" else _inline(one)
        for one in node.children
    ]
    return "".join(parts).strip()
