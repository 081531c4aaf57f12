"""What a package says, as tables: matrix, comparisons with pairs, gates with margins, decisions, fates, attempts.

Reads JSON of a package and prints it; it judges nothing. Numbers stand as they were written; relative values
and margins are exact fractions until they are rounded for the eye.
"""

from __future__ import annotations

import csv
import functools
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tabulate import tabulate

from evidence import records
from evidence.archive import reader
from evidence.archive.folder import read_folder
from evidence.archive.strictjson import parse
from evidence.errors import EvidenceError
from evidence.lifecycle import timeline
from evidence.verdict import as_json
from evidence.visible import visible

Json = dict[str, Any]
_MARKUP = re.compile(r"[\\`|<>\[\]&]")
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)  # the last four are the full-width ones
LIMITS = {
    "token-volume": Fraction(1, 20),
    "memory-reduction": Fraction(3, 10),
    "latency-regression": Fraction(1, 20),
    "latency-improvement": Fraction(0),
    "median-improvement": Fraction(1, 10),
}
AT_MOST = ("token-volume", "latency-regression")
_NAMES = ("manifest.json", "runtime-matrix.json", "model-identities.json", "recipes.json")
_FILES = ("comparison.json", "decision.json", "samples.json", "snapshots.json", "offers.json", "attempt.json")


# What reading a file that is not in its form can raise; anything else is a fault of this program and is not hidden.
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)
_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass
class PackageView:
    """The JSON files of a package that a report needs, by path; bodies and ledgers stay where they are."""

    path: Path
    files: dict[str, Json] = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)  # every file of the package -> its digest
    archive_sha256: str | None = None

    def one(self, name: str) -> Json:
        """The file at this path; refused when the package lacks it."""
        if name not in self.files:
            raise EvidenceError(
                f"{self.path}: found no {name}, expected a complete package",
                "name the folder that holds manifest.json, or the .tgz"
                if name == "manifest.json"
                else "the folder that a repository retains has no results; take the archive",
            )
        return self.files[name]

    @property
    def matrix(self) -> Sequence[Json]:
        return list(self.one("runtime-matrix.json")["rows"])

    @property
    def comparisons(self) -> Sequence[Json]:
        """Index entries of the complete comparisons, each with its `comparisonFile` and `decisionFile` beside it."""
        return [
            entry
            | {
                "comparisonFile": self.one(f"{entry['folder']}/comparison.json"),
                "decisionFile": self.one(f"{entry['folder']}/decision.json"),
            }
            for entry in self.one("results/settings-index.json")["comparisons"]
        ]

    @property
    def incomplete(self) -> Sequence[Json]:
        return list(self.one("results/incomplete-settings-index.json")["comparisons"])

    @property
    def attempts(self) -> Sequence[Json]:
        """Index entries of the attempts, each with its `attemptFile`."""
        return [
            entry | {"attemptFile": self.one(f"{entry['folder']}/attempt.json")}
            for entry in self.one("results/converged-index.json")["attempts"]
        ]


def read_package(path: Path) -> PackageView:
    """Read a package folder or archive. Raises EvidenceError for what is no package or is out of form."""
    view = PackageView(path)

    def take(name: str, content: bytes) -> None:
        view.files[name] = parse(content, name)

    if path.is_dir():
        if not os.path.lexists(path / "manifest.json"):
            view.one("manifest.json")  # which nothing has: before anything in some folder is looked at
        reading = read_folder(path, examine=take, wanted=_wanted)
    else:
        handle = reader.open_archive(path)
        try:
            reading = reader.read_archive(handle, path.name, examine=take, wanted=_wanted)
        finally:
            os.close(handle)
    if reading.findings:
        raise EvidenceError(
            f"{path}: {reading.findings[0]}", f"`evidence verify {path}` says all that is wrong with it", code=1
        )
    view.members = reading.members
    view.archive_sha256 = reading.tgz_sha256 or None
    view.one("manifest.json")
    return view


def in_form(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """What is made of packages, or EvidenceError with the first thing that is out of form in a file of theirs."""

    @functools.wraps(make)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return make(*args, **kwargs)
        except MALFORMED as error:
            views = [one for one in (*args, *kwargs.values()) if isinstance(one, PackageView)]
            raise next((found for view in views for found in _faults(view)), _misread(views[0], error)) from None

    return guarded


def _faults(view: PackageView) -> Iterator[EvidenceError]:
    from evidence.examining import faults  # here: it is there for what is wrong

    for name, content in view.files.items():
        for fault in faults(name, records.to_bytes(content)):
            yield _misread(view, fault)


def _misread(view: PackageView, why: object) -> EvidenceError:
    said = f"files that do not fit together ({why!r})" if isinstance(why, Exception) else why
    return EvidenceError(
        f"{view.path}: {said}", f"`evidence verify {view.path}` says all that is wrong with it", code=1
    )


def _wanted(name: bytes) -> bool:
    below = name.decode("ascii", "replace").partition("/")[2]
    parts = below.split("/")
    return (
        below in _NAMES
        or (len(parts) in (2, 3) and parts[0] == "results" and below.endswith(".json"))
        or (len(parts) == 4 and parts[0] == "results" and parts[3] in _FILES)
    )


MEASURED = ("experiment", "figure", "value")


@dataclass(frozen=True)
class Table:
    """One table: its title, columns, and rows of plain values."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def render(self, form: str) -> str:
        """As text for a terminal (`table`) or as Markdown."""
        shown = [[words(cell(value), form) for value in row] for row in self.rows]
        style = "github" if form == "markdown" else "simple"
        # Digests, versions and aliases are text, and a number that was written with zeros keeps them.
        text = tabulate(shown, headers=self.columns, tablefmt=style, disable_numparse=True)
        heading = f"## {self.title}" if form == "markdown" else self.title.upper()
        return f"{heading}\n\n{text if self.rows else 'none'}\n"

    def plain(self) -> list[Json]:
        """A list of objects, keyed by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def cell(value: Any) -> str:
    """A value as it stands in every table: `-` for what is not known, yes and no, lists with commas, numbers in full."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "-"
    return str(value)


def words(text: object, form: str) -> str:
    """What a package says, on one line: no terminal obeys it, and in Markdown it opens neither cell, markup nor link."""
    line = visible(re.sub(r"\s+", " ", str(text)))
    return _MARKUP.sub(r"\\\g<0>", line) if form == "markdown" else line


@in_form
def show(view: PackageView, format: str) -> str:
    """Everything of the package as `table`, `markdown` or `json`."""
    tables = {name: build(view) for name, build in TABLES.items()}
    manifest = view.one("manifest.json")
    if format == "json":
        head = {key: manifest[key] for key in ("campaign", "title", "status", "synthetic", "statement", "counts")}
        return as_json(head | {name: table.plain() for name, table in tables.items()})
    heading = "# " if format == "markdown" else ""
    head_lines = [heading + words(manifest["title"], format), "", words(manifest["statement"], format), ""]
    return "\n".join([*head_lines, *(table.render(format) for table in tables.values())]).rstrip("\n")


def record_tables(record: Json) -> dict[str, Table]:
    """The tables of a lifecycle record that stands alone, by name."""
    return {
        "claims": Table(
            "Claims", ("experiment", "claim"), [[one["id"], one["claim"]] for one in record["experiments"]]
        ),
        "timeline": Table("Timeline", timeline.HEADINGS, timeline.timeline(record)),
        "measurements": Table("Measurements", MEASURED, timeline.measurements(record)),
        "limitations": Table(
            "Limits that the record states",
            ("experiment", "limit"),
            [[one["id"], text] for one in record["experiments"] for text in one["limitations"]],
        ),
    }


def show_record(record: Json, format: str) -> str:
    """A lifecycle record that stands alone, as `table`, `markdown` or `json`."""
    parts = record_tables(record)
    if format == "json":
        head = {key: record[key] for key in ("title", "measured_on", "scope")}
        return as_json(head | {name: table.plain() for name, table in parts.items()})
    title = ("# " if format == "markdown" else "") + words(record["title"], format)
    return "\n".join(
        [title, "", words(record["scope"], format), "", *(one.render(format) for one in parts.values())]
    ).rstrip("\n")


@in_form
def matrix(
    view: PackageView,
    profile: str | None = None,
    engine: str | None = None,
    outcome: str | None = None,
    format: str = "table",
) -> str:
    """The runtime matrix, filtered, as `table`, `markdown`, `json` or `csv`.

    A filter that names nothing in the matrix is refused: an empty table would look like an answer.
    """
    table = matrix_table(view)
    wanted = {"profile": profile, "engine": engine, "outcome": outcome}
    rows = list(table.rows)
    for column, value in wanted.items():
        if value is None:
            continue
        place = table.columns.index(column)
        known = sorted(
            {str(row[place]) for row in table.rows} | (set(records.OUTCOMES) if column == "outcome" else set())
        )
        if value not in known:
            raise EvidenceError(f"--{column}: found {value!r}, expected one of {', '.join(known)}")
        rows = [row for row in rows if row[place] == value]
    kept = Table(table.title, table.columns, rows)
    if format == "json":
        return as_json({"rows": kept.plain()})
    if format == "csv":
        return render_csv(kept).rstrip("\n")
    return kept.render(format).rstrip("\n")


def sample_table(view: PackageView) -> Table:
    """What the plots are drawn from: one line a sample of every complete comparison."""
    columns = (
        "comparison", "offer", "repetition", "arm", "phase", "worker", "classification", "startedSeconds", "ttftSeconds",
        "totalSeconds", "completionTokens",
    )  # fmt: skip
    rows = [
        [entry["id"], *(sample[column] for column in columns[1:])]
        for entry in view.comparisons
        for sample in view.one(f"{entry['folder']}/samples.json")["samples"]
    ]
    return Table("Samples", columns, rows)


def render_csv(table: Table) -> str:
    """The table as CSV. A text that a spreadsheet would run as a formula gets a quote before it; numbers stay as they are.

    Controls are shown and not obeyed, as in every table.
    """
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([[_field(value) for value in row] for row in table.rows])
    return output.getvalue()


def _field(value: Any) -> str:
    shown = "" if value is None else visible(cell(value))
    number = isinstance(value, int | float)
    formula = not number and shown.startswith(_FORMULA) and not _signed(shown)
    return f"'{shown}" if formula else shown


def _signed(text: str) -> bool:
    return text == "-" or text[1:].replace(".", "", 1).removesuffix(" %").isdecimal()


def matrix_table(view: PackageView) -> Table:
    """One row a case."""
    columns = (
        "case",
        "profile",
        "engine",
        "topology",
        "surface",
        "outcome",
        "reason",
        "synthetic",
        "attempts",
        "blocker",
    )
    rows = [[*(row[column] for column in columns[:8]), len(row["attempts"]), row["blocker"]] for row in view.matrix]
    return Table("Runtime matrix", columns, rows)


def comparison_table(view: PackageView) -> Table:
    """One row a pair: both arms' p95 TTFT, tokens, wall time and memory."""
    columns = (
        "comparison", "setting", "repetition", "baseline p95 TTFT s", "candidate p95 TTFT s", "baseline tokens",
        "candidate tokens", "baseline wall s", "candidate wall s", "baseline bytes", "candidate bytes",
    )  # fmt: skip
    rows = []
    for entry in view.comparisons:
        setting = entry["comparisonFile"]["setting"]
        change = f"{setting['argument']} {setting['baseline']} -> {setting['candidate']}"
        for pair in entry["decisionFile"]["pairs"]:
            sides = pair["baseline"], pair["candidate"]
            rows.append(
                [entry["id"], change, pair["repetition"]]
                + [side[key] for key in ("p95TtftSeconds", "completionTokens", "wallSeconds") for side in sides]
                + [_memory(side["devices"]) for side in sides]
            )
    return Table("Comparisons: pairs", columns, rows)


def _memory(devices: Mapping[str, int | None]) -> str:
    return ", ".join("unknown" if used is None else str(used) for _, used in sorted(devices.items()))


def gate_table(view: PackageView) -> Table:
    """One row a gate and repetition (and device): both sides, the relative difference, its limit, and the margin."""
    columns = (
        "comparison", "gate", "repetition", "device", "baseline", "candidate", "relative", "limit", "margin", "holds",
    )  # fmt: skip
    rows = []
    for entry in view.comparisons:
        for gate in entry["decisionFile"]["gates"]:
            for row in gate["rows"]:
                limit, margin = _margin(gate["gate"], row["relative"])
                rows.append(
                    [
                        entry["id"],
                        gate["gate"],
                        row["repetition"],
                        row["device"],
                        row["baseline"],
                        row["candidate"],
                        row["relative"] and percent(Fraction(row["relative"]), LIMITS[gate["gate"]]),
                        limit,
                        margin,
                        row["holds"],
                    ]
                )
    return Table("Gates", columns, rows)


def _margin(gate: str, relative: str | None) -> tuple[str, str | None]:
    """The limit in words, and by how many percentage points the value holds (+) or misses (-) it."""
    limit = LIMITS[gate]
    if relative is None:
        return asked(gate), None
    value = Fraction(relative)
    points = limit - value if gate in AT_MOST else value - limit
    return asked(gate), percent(points, Fraction(0), "+").removesuffix(" %")


def asked(gate: str) -> str:
    """The limit of a gate in words."""
    limit = LIMITS[gate]
    return "above 0 %" if not limit else f"{'at most' if gate in AT_MOST else 'at least'} {int(limit * 100)} %"


def percent(value: Fraction, limit: Fraction, sign: str = "-") -> str:
    """The value with two digits, or with as many as it takes not to look like the limit that it misses or holds."""
    points, edge = float(value * 100), float(limit * 100)
    digits = next((digits for digits in range(2, 12) if value == limit or round(points, digits) != edge), 12)
    return f"{points:{sign}.{digits}f} %"


def decision_table(view: PackageView) -> Table:
    """One row a comparison: what stands, and why."""
    columns = (
        "comparison",
        "kind",
        "decision",
        "qualified",
        "failed gates",
        "disqualifications",
        "requalification",
        "synthetic",
    )
    rows = [
        [
            entry["id"],
            entry["kind"],
            entry["decision"],
            entry["performanceComparisonQualified"],
            entry["failedGates"],
            [f"{one['code']} ({one['detail']})" for one in entry["decisionFile"]["disqualifications"]],
            entry["decisionFile"]["requalification"],
            entry["synthetic"],
        ]
        for entry in view.comparisons
    ]
    return Table("Decisions", columns, rows)


def incomplete_table(view: PackageView) -> Table:
    """One row a comparison that did not finish, with the fates of its offers."""
    columns = ("run", "comparison", "reason", "offered", "completed", "timed out", "failed", "never started")
    keys = ("offered", "completed", "timedOut", "failed", "neverStarted")
    rows = [
        [entry["id"], entry["comparison"], entry["reason"], *(entry["counts"][key] for key in keys)]
        for entry in view.incomplete
    ]
    return Table("Incomplete comparisons", columns, rows)


def attempt_table(view: PackageView) -> Table:
    """One row a functional attempt."""
    columns = ("attempt", "surface", "outcome", "reason", "requests", "answers", "accepted", "ended")
    rows = []
    for entry in view.attempts:
        attempt = entry["attemptFile"]
        answers = [f"{name} {count}" for name, count in sorted(attempt["counts"].items())]
        rows.append([entry["id"], *(entry[key] for key in ("surface", "outcome", "reason")), attempt["requests"], answers, entry["accepted"], entry["ended"]])  # fmt: skip
    return Table("Functional attempts", columns, rows)


def lifecycle_table(view: PackageView) -> Table:
    """What happened when in every experiment of the lifecycle records; the page shows it one table an experiment."""
    index = view.files.get("results/lifecycle-index.json", {"records": []})
    rows = [row for entry in index["records"] for row in timeline.timeline(view.one(entry["path"]))]
    return Table("Lifecycle: timeline", timeline.HEADINGS, rows)


def lifecycle_figures(view: PackageView) -> Table:
    """Every measured figure of every experiment of the lifecycle records."""
    index = view.files.get("results/lifecycle-index.json", {"records": []})
    rows = [row for entry in index["records"] for row in timeline.measurements(view.one(entry["path"]))]
    return Table("Lifecycle: measurements", MEASURED, rows)


TABLES: dict[str, Callable[[PackageView], Table]] = {
    "matrix": matrix_table,
    "comparisons": comparison_table,
    "gates": gate_table,
    "decisions": decision_table,
    "incomplete": incomplete_table,
    "attempts": attempt_table,
    "lifecycle": lifecycle_table,
    "lifecycleMeasurements": lifecycle_figures,
}
