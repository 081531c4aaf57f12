"""One Markdown page of a package, for a repository's web view: what a reader needs to judge it, in words, tables and plots.

It is made of the same tables, sentences and drawings as the HTML page; every sample and every offer one by one are left
to that page and to `evidence show --export`. Nothing on it comes from the day, the machine or the release that made it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from evidence.build import readme
from evidence.progress import Progress
from evidence.report import comparisons, lifecycles, provenance, sections, tables
from evidence.report.frame import entries, guarded, nothing, title
from evidence.report.grids import folded, grid
from evidence.report.illustrations import Illustrations
from evidence.report.markdown import Writer
from evidence.report.markup import Markup, element, join
from evidence.report.plots import Plots
from evidence.report.tables import Json, PackageView
from evidence.verdict import Validation

MADE = "This page was made by `evidence report`, and no number on it was typed by hand."
_PLAIN = re.compile(r"[A-Za-z0-9._+-]+")


def render(
    validation: Validation, view: PackageView | None, name: str, *, quiet: bool = True
) -> tuple[str, dict[str, str]]:
    """The page `<name>.md` as text, and its drawings: file name in the folder `name` beside it -> SVG."""
    drawings, page = Illustrations(name), Writer()
    plots = Plots(drawings)
    mark = " (not verified)" if validation.exit_code else ""

    def add(heading: str, make: Callable[[], Markup]) -> None:
        page.add(join((element("h2", heading, mark), guarded(heading, make))))

    def checked() -> Markup:
        return sections.checks(validation, notes=False)

    page.add(join((
        element("h1", "NOT VERIFIED: " if validation.exit_code else "", title(view)), *_verdict(validation),
        "" if view is None else guarded("The statement", lambda: _opening(view)),
    )))  # fmt: skip
    if view is None:
        add("What was checked", checked)
        page.add(element("p", "The package could not be read, so nothing of it is shown.", class_="callout bad"))
    else:
        package, found = view, entries(lambda: list(view.comparisons))
        with Progress(len(found) + 1, unit="section", quiet=quiet, title="report") as progress:
            add("Verify it yourself", lambda: _verifying(package))
            add("What was checked", checked)
            add("Where it comes from", lambda: provenance.origin(package))
            add("Hardware and software", lambda: _equipment(package))
            add("Protocol", lambda: _protocol(package))
            page.markdown(readme.READING)
            add("Runtime matrix", lambda: grid(tables.matrix_table(package)))
            add("Comparisons", lambda: grid(tables.decision_table(package)))
            for entry in found:
                page.add(guarded(str(entry.get("id")), functools.partial(_comparison, package, plots, entry)))
                progress.advance()
            add("Incomplete comparisons", lambda: join(sections.incomplete(package, plots, whole=False)))
            add("Functional attempts", lambda: sections.attempts(package))
            add("Lifecycle", lambda: join(lifecycles.sections(package, plots)) or nothing())
            add("What this does not show", lambda: provenance.boundaries(package))
            progress.advance()
        page.markdown(readme.DISCLAIMED)
        page.add(element("p", "What not even a verified package proves is told item by item in the page ",
            element("code", "docs/what-this-does-not-prove.md"), " of the project that made this one."))  # fmt: skip
        add("Reproduce it", lambda: _reproducing(package, name))
    page.add(element("hr"))
    page.markdown(f"{MADE} It is of {readable(Path(validation.path).name)}.")
    text = page.text()
    return text, {file: content for file, content in drawings.files.items() if f"/{file})" in text}


def readable(name: str) -> str:
    """A file's name as code, where it is a plain one."""
    return f"`{name}`" if _PLAIN.fullmatch(name) else "a file of another name"


def _verdict(validation: Validation) -> Iterator[Markup]:
    word, said = sections.verdict(validation)
    yield element("p", element("strong", word), f" {said}", class_="callout")


def _opening(view: PackageView) -> Markup:
    manifest = view.one("manifest.json")
    return join((
        sections.statement(manifest),
        element("p", sections.measured(manifest)),
        sections.decided(view),
    ))  # fmt: skip


def _names(view: PackageView) -> tuple[str, str]:
    """The campaign and the archive of it, fit to stand in a command."""
    manifest = view.one("manifest.json")
    names = manifest["campaign"], manifest["distribution"]["archive"]
    if not all(_PLAIN.fullmatch(one) for one in names):
        raise ValueError("a name with characters that a shell would read")
    return names


def _commands(*lines: str) -> Markup:
    return element("pre", "\n".join(lines), data_language="sh")


def _verifying(view: PackageView) -> Markup:
    campaign, archive = _names(view)
    return join((
        element("p", "The verdict above is that of the program which made this page, on the day when it did. You need ", element("code", archive),
                ", its ", element("code", ".sha256"), ", Python 3.8 or newer and coreutils, and nothing of this project:"),
        _commands(readme.unpacking(campaign, archive), readme.verification()),
        element("p", "Compare the digest with one that was published elsewhere. The verifiers in an archive came with it; those of the project "
                "are run by ", element("code", f"evidence verify {archive} --mutation-control=all"), ", which also forges a copy for every "
                "code that they know and demands that it is rejected."),
    ))  # fmt: skip


def _equipment(view: PackageView) -> Markup:
    machines = provenance.machine_table(view)
    return join((
        grid(provenance.device_table(view)),
        element("p", "Snapshots record which device was read, by what, and its total; the name of a product, where one stands on this page, "
                "is the publisher's word or that of a lifecycle record."),
        grid(machines) if machines.rows else "",
        grid(provenance.engine_table(view)),
        grid(provenance.gateway_table(view)),
        grid(provenance.model_table(view)),
        folded("Recipes: what may be used, and whether it needs a requalification", grid(provenance.recipe_table(view))),
        folded("Launch arguments of the functional attempts", provenance.attempt_launches(view)),
    ))  # fmt: skip


def _protocol(view: PackageView) -> Markup:
    """What the records say of the protocol; how to read them is told by the guide that packages carry."""
    found: dict[str, list[str]] = {}
    for entry in view.comparisons:
        record = entry["comparisonFile"]
        arms = sorted(record["arms"], key=lambda one: one["sequence"])
        said = {**record["protocol"], "workers": len(record["workers"]), "order": " ".join(arm["arm"] for arm in arms)}
        words = "; ".join(f"{sections.spaced(key)} {tables.cell(value)}" for key, value in sorted(said.items()))
        found.setdefault(words, []).append(str(entry["id"]))
    lines = [element("p", element("strong", ", ".join(names)), f": {words}.") for words, names in found.items()]
    return join(lines) if lines else nothing()


def _comparison(view: PackageView, plots: Plots, entry: Json) -> Markup:
    name = entry["id"]
    samples = view.one(f"{entry['folder']}/samples.json")["samples"]
    memory = comparisons.memory(view, plots, entry) if entry["kind"] == "memory" else ""
    qualified = "qualified" if entry["performanceComparisonQualified"] else "not qualified"
    taken = "candidate accepted" if entry["decision"] == "candidate" else "baseline kept"
    return element(
        "article",
        element("h3", name),
        element("p", element("strong", f"{taken}, {qualified}", ", synthetic" if entry["synthetic"] else ""), ". One setting changed: ",
                element("code", comparisons.change(entry)), f" for {entry['profile']} on {entry['engine']}. ", comparisons.reason(entry)),
        comparisons.rows_of(name, tables.comparison_table(view), "comparisons", drop=2),
        comparisons.rows_of(name, tables.gate_table(view), "gates"),
        comparisons.gates(plots, entry),
        comparisons.p95(plots, entry),
        memory,
        comparisons.dots(plots, entry, samples),
        folded("How it was run: gateway, launches, timeline, the client's own lateness", comparisons.running(entry)),
        id=f"comparison-{name}",
    )  # fmt: skip


def _reproducing(view: PackageView, name: str) -> Markup:
    manifest = view.one("manifest.json")
    campaign, archive = _names(view)
    flag = " --preparation" if manifest["distribution"]["preparation"] else ""
    kept = archive.removesuffix("-evaluation.tgz")
    page = name if _PLAIN.fullmatch(name) else "page"
    return join((
        element("p", "With the folder of the campaign ", element("code", campaign), " in place of CAMPAIGN:"),
        _commands("evidence check CAMPAIGN", "evidence capture CAMPAIGN/campaign.toml --all --runs runs",
                  f"evidence build CAMPAIGN --runs runs --output dist{flag}",
                  f"evidence validate dist/{archive} --source-root dist/{kept} --verify-results",
                  f"evidence report dist/{archive} --output {page}.md"),
        element("p", "A capture is a new measurement: other times and bytes, held to the same gates. From the run folders behind this "
                f"page, {manifest['builder']['name']} {manifest['builder']['version']} builds the archive of the digest above, byte for "
                "byte, and the last command makes this page of it. ", element("code", "evidence show --export"), " gives every table, sample "
                "and offer as CSV."),
    ))  # fmt: skip
