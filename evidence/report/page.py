"""One HTML file of a package, made after verifying it: no network, no script but its own, readable as it prints.

What is in the package is shown, and what the verification said is shown above it, always. A part whose files are
out of form is replaced by a sentence that says so; the rest is still shown.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from evidence import __version__
from evidence.progress import Progress
from evidence.report import comparisons, lifecycles, provenance, sections
from evidence.report.drawing import Drawings
from evidence.report.frame import entries, guarded, nothing, title
from evidence.report.markup import Markup, element, join
from evidence.report.plots import Plots
from evidence.report.tables import PackageView
from evidence.verdict import Validation

MADE = "This file loads nothing and sends nothing."


def render(validation: Validation, view: PackageView | None, *, quiet: bool = True) -> str:
    """The page as text. Without `view` it holds what the verification said, and what no package proves."""
    drawings = Drawings()
    plots = Plots(drawings)
    verified = validation.exit_code == 0
    parts: list[tuple[str, str, Markup]] = []

    def add(anchor: str, heading: str, make: Callable[[], Markup]) -> None:
        parts.append((anchor, heading, guarded(heading, make)))

    if view is not None:
        package = view
        found = entries(lambda: list(package.comparisons))
        with Progress(len(found) + 1, unit="section", quiet=quiet, title="report") as progress:
            add("overview", "In a minute", lambda: sections.overview(package))
            add("checks", "What was checked", lambda: sections.checks(validation))
            add("matrix-section", "Runtime matrix", lambda: sections.matrix(package))
            pieces = []
            for entry in found:
                make = functools.partial(comparisons.section, package, plots, entry)
                pieces.append(guarded(str(entry.get("id")), make))
                progress.advance()
            add("comparisons", "Comparisons", lambda: join(pieces) if pieces else nothing())
            add("incomplete", "Incomplete comparisons", lambda: join(sections.incomplete(package, plots)))
            add("attempts", "Functional attempts", lambda: sections.attempts(package))
            add("lifecycle", "Lifecycle", lambda: join(lifecycles.sections(package, plots)) or nothing())
            add("provenance", "Provenance", lambda: provenance.provenance(package))
            progress.advance()
    else:
        add("checks", "What was checked", lambda: sections.checks(validation))
        parts.append(
            (
                "unread",
                "The package",
                element("p", "The package could not be read, so nothing of it is shown.", class_="callout bad"),
            )
        )
    add("limits", "What this does not prove", lambda: provenance.limits(view))
    mark = "" if verified else element("span", "not verified", class_="badge bad")
    body = join(
        element(
            "section",
            element("h2", heading, " ", mark, id=f"{anchor}-title"),
            content,
            id=anchor,
            aria_labelledby=f"{anchor}-title",
        )
        for anchor, heading, content in parts
    )
    name = title(view)
    nav = element("nav", element("ul", *(element("li", element("a", label, href=f"#{anchor}")) for anchor, label, _ in parts)),
                  aria_label="Sections")  # fmt: skip
    header = element("header", element("p", "Evidence report", class_="kicker"), element("h1", name), nav)
    foot = element(
        "footer",
        f"Made by evidence {__version__} from {Path(validation.path).name}. {MADE}",
    )
    content = join((
        element("a", "Skip to the content", href="#main", class_="skip"), _banner(validation), header, element("main", body, id="main"), foot,
    ))  # fmt: skip
    return _document(f"{'' if verified else 'NOT VERIFIED: '}{name}", content, drawings.css(), verified)


def _banner(validation: Validation) -> Markup:
    """The strip that stays in sight: the verdict, how many checks, and the codes of what failed."""
    word, said = sections.verdict(validation)
    hue, role = ("bad", "alert") if validation.exit_code else ("good", "status")
    return element("div", element("strong", word), element("span", f" {said}"), class_=f"banner {hue}", role=role)


def _document(title: str, body: Markup, plot_css: str, verified: bool) -> str:
    assets = resources.files("evidence.report") / "assets"
    style = (assets / "page.css").read_text(encoding="utf-8") + plot_css
    script = (assets / "page.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = join((
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(style)),
    ))  # fmt: skip
    code = element("script", Markup(script))
    page = element(
        "html",
        element("head", head),
        element("body", body, code, class_="verified" if verified else "unverified"),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{page}\n"


def _digest(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
