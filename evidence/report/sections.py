"""Sections of a report: overview, checks, matrix, incomplete comparisons, attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evidence import shipped
from evidence.report import comparisons, tables
from evidence.report.grids import facts, figure, folded, grid
from evidence.report.markup import Markup, element, join
from evidence.report.plots import Plots
from evidence.report.tables import Json, PackageView, Table
from evidence.verdict import Validation

OUTCOMES = {
    "SUCCESS": ("good", "\u2714"), "NATIVE_FAILURE": ("bad", "\u2716"), "EXACT_REJECTED": ("bad", "\u2260"),
    "EXACT_PARTIAL_ONE_PREFILL": ("warn", "\u00bd"), "BLOCKED_ACCESS": ("warn", "\u2298"), "MISSING_IMAGE": ("warn", "\u25cc"),
    "MISSING_STORAGE": ("warn", "\u25cb"), "USER_DEFERRED": ("idle", "\u2026"), "NOT_ATTEMPTED": ("idle", "\u2014"),
}  # fmt: skip
RESULTS = ("passed", "FAILED", "COULD NOT RUN", "BLIND")


SHOWS = {
    "digests": "the published digests are those of this file",
    "members": "nothing is in the archive but what its builder writes, and every byte of it is accounted for",
    "checksums": "SHA256SUMS lists exactly the files that are here, with their digests",
    "schemas": "every JSON file has the form that is published for it",
    "trusted": "verifiers, recorder and schemas in it are genuine",
    "inputs": "what files say of one another is true",
    "verify-results.py": "every percentile, gate and decision follows from samples, receipts and bodies",
    "verify-incomplete-results.py": "every request of what did not finish is accounted for, and nothing was decided from it",
    "verify-converged.py": "functional attempts, runtime matrix and recipes follow from bodies and receipts",
    "verify-lifecycle.py": "the figures of lifecycle records agree with one another",
}


def verdict(validation: Validation) -> tuple[str, str]:
    """The verdict in capitals with its sign, and a sentence on what ran, with the codes of what failed."""
    name, stages = Path(validation.path).name, validation.stages
    bad = [stage for stage in stages if stage.exit_code]
    if not validation.exit_code:
        digest = validation.facts.get("archive SHA-256")
        said = f"{len(stages)} of {len(stages)} checks passed: {', '.join(stage.name for stage in stages)}."
        return "\u2714 VERIFIED", f"{name}. {said}{f' SHA-256 {digest}' if digest else ''}"
    word = {1: "NOT VERIFIED", 2: "NOT VERIFIED, a check could not run", 3: "NOT VERIFIED, a verifier is blind"}[
        validation.exit_code
    ]
    failed = "; ".join(
        f"{stage.name} ({', '.join(sorted({one.code for one in stage.findings})[:6]) or f'{stage.verified} of {stage.expected}'})"
        for stage in bad
    )
    unrun = unreached(validation)
    rest = f" Not run: {', '.join(unrun)}." if unrun else ""
    return f"\u2716 {word}", f"{name}. Do not cite it. {len(bad)} of {len(stages)} checks failed: {failed}.{rest}"


def checks(validation: Validation, notes: bool = True) -> Markup:
    """Which checks ran and which failed with what codes, and which were never reached.

    Without `notes` nothing stands there that follows from the tools at hand and not from the package.
    """
    rows: list[list[object]] = [
        [stage.name, SHOWS.get(stage.name), RESULTS[stage.exit_code], stage.verified, stage.expected,
         ", ".join(sorted({one.code for one in stage.findings})) or None, stage.note or None]
        for stage in validation.stages
    ]  # fmt: skip
    rows += [
        [name, SHOWS.get(name), "NOT RUN", None, None, None, "an earlier check failed"]
        for name in unreached(validation)
    ]
    columns = ("check", "what it shows", "result", "verified", "expected", "codes", "note")
    kept = len(columns) if notes else -1
    found = [[one.code, one.place, one.found, one.expected] for one in validation.findings]
    shown = found[:500]
    killed = sum(row["verdict"] == "killed" for row in validation.mutations)
    inert = sum(row["verdict"] == "inert" for row in validation.mutations)
    aside = f" {inert} more found nothing of their kind to forge in this package." if inert else ""
    control = (
        f"Mutation controls: {killed} of {len(validation.mutations) - inert} forged copies were rejected with the expected code.{aside}"
        if validation.mutations
        else "Mutation controls (forged copies that the verifiers must reject) were not part of this run; "
        "ask for them with --mutation-control."
    )
    digests = [(name, value) for name, value in validation.facts.items()]
    return join((
        facts(digests) if digests and notes else "",
        grid(Table("Checks", columns[:kept], [row[:kept] for row in rows]), "checks"),
        grid(Table(f"Findings{'' if len(found) == len(shown) else f': the first {len(shown)} of {len(found)}'}",
                   ("code", "place", "found", "expected"), shown), "findings"),
        element("p", control),
    ))  # fmt: skip


def unreached(validation: Validation) -> list[str]:
    """Trusted verifiers that an earlier failure kept from running."""
    ran = {stage.name for stage in validation.stages}
    return [path.name for path in sorted(shipped.verifiers().glob("verify-*.py")) if path.name not in ran]


def measured(manifest: Json) -> str:
    """How much was measured, in one sentence."""
    counts = manifest["counts"]
    return (
        f"{_number(counts['profiles'], 'profile')} in {_number(counts['cases'], 'case')} on "
        f"{_number(len(manifest['engines']), 'engine build')}: {_number(counts['attempts'], 'functional attempt')}, "
        f"{_number(counts['comparisons'], 'complete paired comparison')} ({_number(counts['mainSamples'], 'main request')} and "
        f"{_number(counts['warmSamples'], 'warm-up')}), {counts['incompleteComparisons']} that did not finish, "
        f"{_number(counts['lifecycleRecords'], 'lifecycle record')}."
    )


def decided(view: PackageView) -> Markup:
    """What was decided in each complete comparison, and why."""
    lines = [
        element(
            "li",
            element("a", entry["id"], href=f"#comparison-{entry['id']}"),
            " (",
            element("code", comparisons.change(entry)),
            "): ",
            comparisons.reason(entry),
        )
        for entry in view.comparisons
    ]
    return element("ul", join(lines)) if lines else element("p", "No complete comparison.", class_="none")


def overview(view: PackageView) -> Markup:
    """What was measured, what was decided and why, in a minute's reading."""
    manifest = view.one("manifest.json")
    counts = manifest["counts"]
    reached: dict[str, int] = {}
    for row in view.matrix:
        reached[row["outcome"]] = reached.get(row["outcome"], 0) + 1
    outcomes = join(
        element("li", chip(outcome), f" {reached[outcome]}")
        for outcome in sorted(reached, key=lambda one: (-reached[one], one))
    )
    return join((
        statement(manifest),
        element("div",
            element("div", element("h3", "What was measured"), element("p", measured(manifest))),
            element("div", element("h3", "How the cases came out"), element("ul", outcomes, class_="chips")),
            class_="columns"),
        element("h3", "What was decided, and why"),
        decided(view),
        grid(tables.decision_table(view), "decisions"),
        facts([("status", manifest["status"]), ("synthetic runs", manifest["synthetic"]),
               *((spaced(name), count) for name, count in sorted(counts.items()))]),
    ))  # fmt: skip


def statement(manifest: Json) -> Markup:
    """What the package says that it is, and that it is no delivery where it is none."""
    state = "" if manifest["status"] == "FINAL" else element("p", "Status ", element("strong", manifest["status"]),
        ": a preparation artifact, not a result.", class_="callout bad")  # fmt: skip
    told = element("p", manifest["statement"], class_="callout warn" if manifest["synthetic"] != "none" else "lead")
    return join((told, state))


def spaced(name: str) -> str:
    """A key in small words."""
    return re.sub(r"(?=[A-Z])", " ", name).lower()


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def chip(outcome: str, *more: object) -> Markup:
    """An outcome in its colour, with its sign and its name."""
    hue, sign = OUTCOMES.get(outcome, ("bad", "?"))
    return element("span", element("span", sign, aria_hidden="true"), " ", outcome, *more, class_=f"chip {hue}")


def matrix(view: PackageView) -> Markup:
    """Profiles against engines and surfaces, every cell with its outcome in words; filters; the same as a flat table."""
    rows = view.matrix
    places = sorted({(row["engine"], row["surface"]) for row in rows})
    engines = sorted({engine for engine, _ in places})
    first = element("tr", element("th", "profile", scope="col", rowspan=2), *(
        element("th", engine, scope="colgroup", colspan=sum(one == engine for one, _ in places), data_engine=engine)
        for engine in engines
    ))  # fmt: skip
    second = element("tr", *(element("th", surface, scope="col", data_engine=engine) for engine, surface in places))
    body = []
    for profile in sorted({row["profile"] for row in rows}):
        cells = [
            element("td", *(
                element("div", chip(row["outcome"]), element("small", f"{row['case']}, {row['topology']}: {row['reason']}"),
                        element("small", row["blocker"], class_="blocker") if row["blocker"] else "",
                        data_profile=profile, data_engine=engine, data_outcome=row["outcome"], class_="case")
                for row in rows if (row["profile"], row["engine"], row["surface"]) == (profile, engine, surface)
            ), data_engine=engine)
            for engine, surface in places
        ]  # fmt: skip
        body.append(element("tr", element("th", profile, scope="row"), *cells, data_profile=profile))
    title = "Outcome of every case, profile by engine and surface"
    frame = element(
        "table",
        element("caption", title),
        element("thead", first, second),
        element("tbody", *body),
        class_="matrix",
        id="matrix",
    )
    flat = tables.matrix_table(view)
    keys = [{"profile": row["profile"], "engine": row["engine"], "outcome": row["outcome"]} for row in rows]
    return join((
        element("div", *(
            element("label", name, " ", element("select", element("option", "all", value=""), *(
                element("option", value, value=value) for value in sorted({row[name] for row in rows})
            ), data_filter=name))
            for name in ("profile", "engine", "outcome")
        ), element("output", f"{len(rows)} of {len(rows)} cases shown", id="shown", aria_live="polite"), class_="filters"),
        element("div", frame, class_="scroll", tabindex="0", role="region", aria_label=title),
        folded("The same as a flat table", grid(flat, "matrix", row_data=keys)),
    ))  # fmt: skip


def incomplete(view: PackageView, plots: Plots, whole: bool = True) -> Iterator[Markup]:
    """What did not finish: why, and what became of every offer; unless `whole`, counted and not one by one."""
    yield grid(tables.incomplete_table(view), "incomplete")
    for entry in view.incomplete:
        record, offers = (view.one(f"{entry['folder']}/{name}.json") for name in ("comparison", "offers"))
        fates: dict[str, dict[str, int]] = {}
        for offer in offers["offers"]:
            arm = fates.setdefault(f"pair {offer['repetition']}, {offer['arm']}", {})
            arm[offer["fate"]] = arm.get(offer["fate"], 0) + 1
        rows = [
            [one["offer"], one["worker"], one["fate"], one["sample"], _bytes(one["client"]), _bytes(one["upstream"])]
            for one in offers["offers"]
        ]
        columns = ("offer", "worker", "fate", "sample", "client bytes", "upstream bytes")
        spoken = "; ".join(
            f"{arm} {', '.join(f'{count} {fate}' for fate, count in ends.items())}" for arm, ends in fates.items()
        )
        said = f" {record['message'].rstrip('.')}." if record["message"] else ""
        yield element(
            "article",
            element("h3", entry["id"], " ", element("span", entry["reason"], class_="badge bad")),
            element("p", f"Aborted after {record['abortedSeconds']} s: {entry['reason']}.{said} {offers['counts']['offered']} of "
                    f"{offers['planned']} planned requests were offered. Nothing is ever selected from it.", class_="lead"),
            figure(plots.fates(list(fates.items()), f"Fates of the offers of {entry['id']} by arm: {spoken}.",
                                stem=f"{entry['id']}-fates"),
                   "What became of every request that was offered, by arm.", wide=True) if fates else "",
            folded(f"All {len(rows)} offers", grid(Table("Offers", columns, rows), "offers", entry["id"])) if whole else "",
            folded("Timeline and the client's own lateness", grid(comparisons.timeline_table(record["arms"])),
                   grid(comparisons.client_table(record["arms"]))),
            id=f"incomplete-{entry['id']}",
        )  # fmt: skip


def _bytes(side: Json | None) -> int | None:
    return None if side is None else side["bytes"]


def attempts(view: PackageView) -> Markup:
    """Every functional attempt, what exact admission showed, and the reviewed prefill/decode summaries."""
    exact = [
        [entry["id"], one["engagement"], one["tokenIdsEqual"], one["expectedTokenIds"], one["observedTokenIds"],
         [f"{worker} {count}" for worker, count in sorted(one["trafficPerWorker"].items())]]
        for entry in view.attempts if (one := entry["attemptFile"]["exact"]) is not None
    ]  # fmt: skip
    scopes = [
        [entry["id"], entry["attemptFile"]["scope"]["statement"], entry["attemptFile"]["message"]]
        for entry in view.attempts
    ]
    reviewed = [
        [
            one["id"],
            one["profile"],
            one["engine"],
            one["reviewed"],
            one["outcome"],
            one["reason"],
            one["completedChecks"],
        ]
        for one in view.one("results/pd-index.json")["cases"]
    ]
    return join((
        grid(tables.attempt_table(view), "attempts"),
        grid(Table("Exact admission", ("attempt", "engagement", "token ids equal", "expected", "observed", "traffic"), exact)),
        grid(Table("Prefill/decode, reviewed summaries", ("case", "profile", "engine", "reviewed", "outcome", "reason", "checks"), reviewed)),
        folded("What each attempt may be cited for", grid(Table("Scope", ("attempt", "scope", "message"), scopes))),
    ))  # fmt: skip
