"""Tables of the page: real `<table>`s with captions and column headings, in boxes that scroll and take the focus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evidence.report.markup import Markup, element, join, text
from evidence.report.tables import Table, cell

_WORDS = {"holds", "qualified", "accepted", "ended", "fate", "outcome", "classification", "decision", "result"}
_WHOLE = {"attempt", "run", "SHA-256"}
_GOOD = {"yes", "SUCCESS", "candidate", "passed", "completed", "killed"}
_BAD = {"no", "failed", "timed-out", "FAILED", "BLIND", "NATIVE_FAILURE", "UPSTREAM_PARTIAL", "MALFORMED", "HTTP_ERROR"}


def grid(
    table: Table, name: str = "", key: str = "", drop: int = 0, row_data: Sequence[Mapping[str, Any]] = ()
) -> Markup:
    """The table, its first `drop` columns left out where the place says them already.

    `name` and `key` become data attributes, by which exports and filters know the table; `row_data` gives each
    row such attributes.
    """
    columns = table.columns[drop:]
    if not table.rows:
        return element("p", f"{table.title}: none.", class_="none", data_table=name or None, data_key=key or None)
    head = element("tr", *(element("th", column, scope="col") for column in columns))
    body = []
    for place, row in enumerate(table.rows):
        facts = {f"data_{label}": value for label, value in (row_data[place] if row_data else {}).items()}
        opening = element("tr", **facts).removesuffix("</tr>")
        # End tags of rows and cells may be left out, and a page with thousands of samples leaves them out.
        body.append(opening + "".join(_cell(column, value) for column, value in zip(columns, row[drop:], strict=True)))
    content = element("caption", table.title), element("thead", head), element("tbody", Markup("".join(body)))
    # Said once a column and not in every cell, of which a page has tens of thousands.
    numbers = [
        f"n{place}"
        for place, column in enumerate(zip(*table.rows, strict=True), 1 - drop)
        if place > 0 and _numeric(column)
    ]
    frame = element("table", *content, class_=" ".join(numbers) or None, data_table=name or None, data_key=key or None)
    return element("div", frame, class_="scroll", tabindex="0", role="region", aria_label=table.title)


def _numeric(column: Sequence[Any]) -> bool:
    known = [value for value in column if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _cell(column: str, value: Any) -> str:
    shown = cell(value)
    if column in _WORDS and shown in _GOOD | _BAD:
        return f'<td class="{"good" if shown in _GOOD else "bad"}">{text(shown)}'
    return f'<td class="w">{text(shown)}' if column in _WHOLE else f"<td>{text(shown)}"


def folded(summary: str, *content: object) -> Markup:
    """Content behind a line that opens it."""
    return element("details", element("summary", summary), *content)


def facts(rows: Sequence[tuple[str, object]]) -> Markup:
    """Names and their values."""
    return element(
        "dl", join(element("div", element("dt", name), element("dd", _plain(value))) for name, value in rows)
    )


def figure(drawing: Markup, caption: str, wide: bool = False) -> Markup:
    """A drawing with the sentence that says what to see in it."""
    return element(
        "figure",
        drawing,
        element("figcaption", caption),
        class_="wide" if wide else None,
        tabindex="0" if wide else None,
    )


def _plain(value: object) -> object:
    return value if isinstance(value, Markup) else cell(value)
