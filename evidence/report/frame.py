"""What the HTML page and the Markdown page share: parts that may fail without the rest, and the title."""

from __future__ import annotations

from collections.abc import Callable

from evidence.errors import EvidenceError
from evidence.report import tables
from evidence.report.markup import Markup, element
from evidence.report.tables import Json, PackageView

MALFORMED = (EvidenceError, *tables.MALFORMED)


def guarded(title: str, make: Callable[[], Markup]) -> Markup:
    """The part, or a sentence that it cannot be shown because a file is out of form."""
    try:
        return make()
    except MALFORMED as error:
        said = f"{title} cannot be shown: a file that it needs is missing or out of form ({type(error).__name__})."
        return element("p", said, class_="callout bad")


def entries(read: Callable[[], list[Json]]) -> list[Json]:
    """What `read` gives, or nothing where its file is out of form."""
    try:
        return read()
    except MALFORMED:
        return []


def nothing() -> Markup:
    """In place of a part that this package lacks."""
    return element("p", "None in this package.", class_="none")


def title(view: PackageView | None) -> str:
    """The package's own title, if it can be read."""
    manifest: object = None if view is None else view.files["manifest.json"]
    found = manifest.get("title") if isinstance(manifest, dict) else None
    return found if isinstance(found, str) else "An evidence package"
