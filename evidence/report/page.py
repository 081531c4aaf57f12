"""One HTML file of a package, made after verifying it: no network, no script but its own, readable as it prints.

What is in the package is shown, and what the verification said is shown above it, always. A part whose files are
out of form is replaced by a sentence that says so; the rest is still shown.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from evidence import __version__, validate
from evidence.errors import EvidenceError
from evidence.progress import Progress
from evidence.report import comparisons, lifecycles, provenance, sections
from evidence.report.drawing import Drawings
from evidence.report.markup import Markup, element, join
from evidence.report.plots import Plots
from evidence.report.tables import PackageView, read_package
from evidence.verdict import Validation

# What reading a file that is not in its form can raise; anything else is a fault of this program and is not hidden.
MALFORMED = (EvidenceError, KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)


def write_report(path: Path, output: Path, *, mutation_control: str | None = None, quiet: bool = False) -> Validation:
    """Verify the package at `path`, write its page to `output`, and return what the verification said.

    The page is written whatever the verdict, and says it. Raises EvidenceError when there is nothing to read, when the
    output's folder is missing, or when the package changed between verification and reading.
    """
    if not output.parent.is_dir():
        raise EvidenceError(f"{output.parent}: no such folder, expected one for the report", f"mkdir {output.parent}")
    if output.is_dir():
        raise EvidenceError(f"{output}: a folder, expected a file name for the report")
    validation = validate.verify(path, mutation_control=mutation_control)
    view = None
    try:
        view = read_package(path)
    except EvidenceError:
        if not validation.exit_code:
            raise
    verified = validation.facts.get("archive SHA-256")
    if view is not None and verified not in (None, view.archive_sha256):
        raise EvidenceError(
            f"{path}: found SHA-256 {view.archive_sha256}, expected {verified} as verified",
            "it changed meanwhile; try again",
        )
    page = render(validation, view, quiet=quiet)
    handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
        Path(name).chmod(0o644)
        Path(name).replace(output)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return validation


def render(validation: Validation, view: PackageView | None, *, quiet: bool = True) -> str:
    """The page as text. Without `view` it holds what the verification said, and what no package proves."""
    drawings = Drawings()
    plots = Plots(drawings)
    verified = validation.exit_code == 0
    parts: list[tuple[str, str, Markup]] = []

    def add(anchor: str, title: str, make: Callable[[], Markup]) -> None:
        parts.append((anchor, title, _guarded(title, make)))

    if view is not None:
        package = view
        entries = _entries(lambda: list(package.comparisons))
        with Progress(len(entries) + 1, unit="section", quiet=quiet, title="report") as progress:
            add("overview", "In a minute", lambda: sections.overview(package))
            add("checks", "What was checked", lambda: sections.checks(validation))
            add("matrix-section", "Runtime matrix", lambda: sections.matrix(package))
            pieces = []
            for entry in entries:
                make = functools.partial(comparisons.section, package, plots, entry)
                pieces.append(_guarded(str(entry.get("id")), make))
                progress.advance()
            add("comparisons", "Comparisons", lambda: join(pieces) if pieces else _nothing())
            add("incomplete", "Incomplete comparisons", lambda: join(sections.incomplete(package, plots)))
            add("attempts", "Functional attempts", lambda: sections.attempts(package))
            add("lifecycle", "Lifecycle", lambda: join(lifecycles.sections(package, plots)) or _nothing())
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
            element("h2", title, " ", mark, id=f"{anchor}-title"),
            content,
            id=anchor,
            aria_labelledby=f"{anchor}-title",
        )
        for anchor, title, content in parts
    )
    title = _title(view)
    nav = element("nav", element("ul", *(element("li", element("a", label, href=f"#{anchor}")) for anchor, label, _ in parts)),
                  aria_label="Sections")  # fmt: skip
    header = element("header", element("p", "Evidence report", class_="kicker"), element("h1", title), nav)
    foot = element(
        "footer",
        f"Made by evidence {__version__} from {Path(validation.path).name}. This file loads nothing and sends nothing.",
    )
    content = join((
        element("a", "Skip to the content", href="#main", class_="skip"), _banner(validation), header, element("main", body, id="main"), foot,
    ))  # fmt: skip
    return _document(f"{'' if verified else 'NOT VERIFIED: '}{title}", content, drawings.css(), verified)


def _banner(validation: Validation) -> Markup:
    """The strip that stays in sight: the verdict, how many checks, and the codes of what failed."""
    name, stages = Path(validation.path).name, validation.stages
    bad = [stage for stage in stages if stage.exit_code]
    if not validation.exit_code:
        digest = validation.facts.get("archive SHA-256")
        said = f"{len(stages)} of {len(stages)} checks passed: {', '.join(stage.name for stage in stages)}."
        more = f" SHA-256 {digest}" if digest else ""
        return element(
            "div",
            element("strong", "\u2714 VERIFIED"),
            element("span", f" {name}. {said}{more}"),
            class_="banner good",
            role="status",
        )
    word = {1: "NOT VERIFIED", 2: "NOT VERIFIED, a check could not run", 3: "NOT VERIFIED, a verifier is blind"}[
        validation.exit_code
    ]
    failed = "; ".join(
        f"{stage.name} ({', '.join(sorted({one.code for one in stage.findings})[:6]) or f'{stage.verified} of {stage.expected}'})"
        for stage in bad
    )
    unrun = sections.unreached(validation)
    rest = f" Not run: {', '.join(unrun)}." if unrun else ""
    said = f" {name}. Do not cite it. {len(bad)} of {len(stages)} checks failed: {failed}.{rest}"
    return element("div", element("strong", f"\u2716 {word}"), element("span", said), class_="banner bad", role="alert")


def _guarded(title: str, make: Callable[[], Markup]) -> Markup:
    try:
        return make()
    except MALFORMED as error:
        said = f"{title} cannot be shown: a file that it needs is missing or out of form ({type(error).__name__})."
        return element("p", said, class_="callout bad")


def _entries(read: Callable[[], list[dict[str, object]]]) -> list[dict[str, object]]:
    try:
        return read()
    except MALFORMED:
        return []


def _nothing() -> Markup:
    return element("p", "None in this package.", class_="none")


def _title(view: PackageView | None) -> str:
    title = None if view is None else view.files["manifest.json"].get("title")
    return title if isinstance(title, str) else "An evidence package"


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
