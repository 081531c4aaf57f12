"""The `evidence` command: click parses, one function is called, its answer is printed.

How commands behave, and their exit codes, is in `evidence/manners.py`.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from evidence import __version__
from evidence.errors import EvidenceError
from evidence.manners import EXITS, Command, Group, complain, example, is_quiet


class Place(click.Path):
    """A path. An empty word, as an unset variable leaves it, is none: `Path("")` would be the folder one stands in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("found an empty path, expected a file or folder; was a variable unset?", param, ctx)
        return super().convert(value, param, ctx)


HERE = Place(path_type=Path)
TABLES = click.Choice(["table", "markdown", "json"])
MATRIX = click.Choice(["table", "markdown", "json", "csv"])
VERDICTS = click.Choice(["text", "json", "junit", "github"])

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(cls=Group, epilog=EXITS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evidence")
@example(
    "evidence init my-evaluation",
    "evidence verify dist/demo-evaluation.tgz",
    'eval "$(_EVIDENCE_COMPLETE=bash_source evidence)"',
)
def main() -> None:
    """Capture runs of LLM serving, build checkable packages of them, and verify such packages.

    The last example completes commands and options in bash; zsh_source and fish_source do so there.
    """


@main.command()
@click.argument("folder", type=HERE)
@example("evidence init my-evaluation")
def init(folder: Path) -> None:
    """Write a commented campaign to begin with, and its README."""
    from evidence import starting

    starting.init(folder)
    click.echo(f"wrote {folder}; edit {folder / 'campaign.toml'}, then run: evidence check {shlex.quote(str(folder))}")


@main.command()
@click.argument("folder", type=HERE)
@as_json
@example("evidence check my-evaluation")
def check(folder: Path, as_json: bool) -> None:
    """Say what a campaign lacks before anyone spends GPU time."""
    from evidence import starting

    missing = starting.check(folder)
    if as_json:
        _print_json({"campaign": str(folder), "missing": missing})
    else:
        for line in missing or ["nothing is missing"]:
            click.echo(line)
    sys.exit(bool(missing))


@main.command()
@click.argument("campaign", type=HERE)
@click.option("--case", "names", multiple=True, help="A comparison, case or lifecycle entry; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Every comparison, case and lifecycle entry, in file order.")
@click.option("--runs", type=HERE, required=True, help="The folder in which each run's own folder is made.")
@as_json
@example("evidence capture campaigns/demo/campaign.toml --case demo-memory --runs runs")
def capture(campaign: Path, names: tuple[str, ...], everything: bool, runs: Path, as_json: bool) -> None:
    """Carry out comparisons, cases or lifecycle protocols."""
    from evidence.campaign import read_campaign
    from evidence.capture.session import capture as carry_out

    if everything == bool(names):
        raise EvidenceError(
            "found neither or both of --case and --all, expected one of them",
            "--all captures everything in the campaign, --case NAME one part of it; see `evidence capture --help`",
        )
    results = []
    for name in read_campaign(campaign).names() if everything else names:
        result = carry_out(campaign, name, runs, quiet=is_quiet() or as_json)
        results.append(result)
        if not as_json:
            why = f" ({result.message})" if result.complete and result.message else ""
            words = [name, "complete" if result.complete else "incomplete", result.outcome, result.reason]
            click.echo(f"{': '.join(word for word in words if word)}{why}: {result.run}")
        if not result.complete:
            complain(
                f"{name}: {result.message or result.reason}",
                f"{result.run} holds what was recorded; `evidence build` packages it as incomplete",
            )
        if result.reason == "OPERATOR":
            break
    if as_json:
        rows = [
            {
                "run": str(one.run),
                "complete": one.complete,
                "reason": one.reason,
                "outcome": one.outcome,
                "message": one.message,
            }
            for one in results
        ]
        _print_json({"runs": rows})
    if any(not one.complete for one in results):
        sys.exit(130 if results[-1].reason == "OPERATOR" else 4)


@main.command()
@click.argument("campaign_dir", type=HERE)
@click.option("--runs", type=HERE, required=True, help="The folder that holds the campaign's run folders.")
@click.option("--output", type=HERE, required=True, help="Where archive, checksum and retained folder go.")
@click.option("--preparation", is_flag=True, help="Build a marked preparation artifact from an unfinished campaign.")
@as_json
@example("evidence build campaigns/demo --runs runs --output dist")
def build(campaign_dir: Path, runs: Path, output: Path, preparation: bool, as_json: bool) -> None:
    """Assemble runs into a package, its archive and retained part."""
    from evidence.build.package import build as assemble

    built = assemble(campaign_dir, runs, output, preparation=preparation, quiet=is_quiet() or as_json)
    facts = {
        "archive": str(built.archive),
        "archiveSha256": built.archive_sha256,
        "tarSha256": built.tar_sha256,
        "members": built.members,
        "payloadBytes": built.payload_bytes,
        "archiveBytes": built.archive_bytes,
        "sha256File": str(built.sha256_file),
        "retained": str(built.retained),
    }
    if as_json:
        _print_json(facts)
    else:
        for label, value in facts.items():
            click.echo(f"{label}: {value}")


MUTATION = click.option(
    "--mutation-control",
    is_flag=False,
    flag_value="plain",
    default=None,
    type=click.Choice(["plain", "all"]),
    help="Also show that forged copies are rejected: one receipt, or one mutation of every code (=all).",
)


class Judging(Command):
    """A command whose help says what its verdict does not mean."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The heads of the page on that, then what every command has."""
        from evidence import shipped

        page = (shipped.root() / "docs" / "what-this-does-not-prove.md").read_text(encoding="utf-8")
        with formatter.section("What a verified package does not prove"):
            for number, head in re.findall(r"(?m)^(\d+)\. \*\*(.+?)\*\*", page):
                formatter.write_text(f"{number:>2}. {head}")
        super().format_epilog(ctx, formatter)


@main.command(cls=Judging)
@click.argument("path", type=HERE)
@MUTATION
@click.option("--format", "form", type=VERDICTS, default="text", show_default=True, help="How to print the verdict.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@example("evidence verify dist/demo-evaluation.tgz --mutation-control=all")
def verify(path: Path, mutation_control: str | None, form: str) -> None:
    """Verify a package folder or archive with the trusted verifiers.

    Above all, a run that was invented as a whole and is coherent in itself looks like a run that took place; the list
    below is explained in docs/what-this-does-not-prove.md.
    """
    from evidence import validate as checks

    _finish(checks.verify(path, mutation_control=mutation_control, quiet=is_quiet()), form)


@main.command()
@click.argument("archive", type=HERE)
@click.option("--source-root", type=HERE, help="The folder in which this repository retains the campaign's files.")
@click.option("--verify-results", is_flag=True, help="Also run the trusted verifiers with mutation controls.")
@click.option(
    "--mutation-control",
    type=click.Choice(["plain", "all"]),
    default="plain",
    show_default=True,
    help="Which forged copies the verifiers must reject: one, or one of every code.",
)
@click.option("--format", "form", type=VERDICTS, default="text", show_default=True, help="How to print the verdict.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@example("evidence validate dist/demo-evaluation.tgz --source-root dist/demo --verify-results")
def validate(archive: Path, source_root: Path | None, verify_results: bool, mutation_control: str, form: str) -> None:
    """Check an archive, its digests and its retained folder.

    The maintenance check of a repository: digests, members, checksums, schemas, tools, retained files, then the verifiers.
    """
    from evidence import validate as checks

    _finish(
        checks.validate(
            archive,
            source_root=source_root,
            verify_results=verify_results,
            mutation_control=mutation_control,
            quiet=is_quiet(),
        ),
        form,
    )


@main.command()
@click.argument("path", type=HERE)
@click.option("--format", "form", type=TABLES, default="table", show_default=True, help="How to print it.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option(
    "--export", "folder", type=HERE,
    help="Write every table, sample and offer as CSV into this folder instead; its own files of before are replaced, others refused.",
)  # fmt: skip
@example(
    "evidence show dist/demo-evaluation.tgz --format markdown", "evidence show dist/demo-evaluation.tgz --export csv"
)
def show(path: Path, form: str, folder: Path | None) -> None:
    """Print what a package or a lifecycle record says, as tables.

    Of a package: matrix, comparisons with pairs, gates with both sides and margin, decisions, attempts. Of a record
    (record.json, or the folder that holds it): what it claims, its timeline, figures and limits.
    """
    from evidence.lifecycle.timeline import find_record, read_record
    from evidence.report import exports, tables

    record = find_record(path)
    if folder is not None:
        content = (
            exports.package_tables(tables.read_package(path))
            if record is None
            else tables.record_tables(read_record(record))
        )
        for written in exports.export(content, folder):
            click.echo(written)
    elif record is None:
        click.echo(tables.show(tables.read_package(path), form))
    else:
        click.echo(tables.show_record(read_record(record), form))


@main.command()
@click.argument("path", type=HERE)
@click.option("--profile", help="Only rows of this profile.")
@click.option("--engine", help="Only rows of this engine.")
@click.option("--outcome", help="Only rows with this outcome.")
@click.option("--format", "form", type=MATRIX, default="table", show_default=True, help="How to print it.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@example("evidence matrix dist/demo-evaluation.tgz --outcome SUCCESS --format csv")
def matrix(path: Path, profile: str | None, engine: str | None, outcome: str | None, form: str) -> None:
    """Print the runtime matrix, filtered."""
    from evidence.report import tables

    view = tables.read_package(path)
    click.echo(tables.matrix(view, profile=profile, engine=engine, outcome=outcome, format=form))


@main.command()
@click.argument("path", type=HERE)
@click.option("--output", type=HERE, required=True, help="The page to write: .html, or .md with drawings beside it.")
@MUTATION
@example(
    "evidence report dist/demo-evaluation.tgz --output report.html",
    "evidence report dist/demo-evaluation.tgz --output docs/demo.md",
)
def report(path: Path, output: Path, mutation_control: str | None) -> None:
    """Verify a package and draw it as an HTML or Markdown page.

    A .html file is self-contained. Beside docs/demo.md its drawings are SVG files in docs/demo/; a page and a folder that
    this command made are replaced, others refused. The page is written whatever the verdict and carries it on every screen; the exit code is that of `evidence verify`.
    """
    from evidence.report.writing import write_report

    validation = write_report(path, output, mutation_control=mutation_control, quiet=is_quiet())
    click.echo(f"{output}: {validation.verdict}, {output.stat().st_size} bytes")
    sys.exit(validation.exit_code)


@main.command()
@click.argument("old", type=HERE)
@click.argument("new", type=HERE)
@click.option("--format", "form", type=TABLES, default="table", show_default=True, help="How to print it.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@example("evidence diff published/demo-evaluation.tgz dist/demo-evaluation.tgz --format markdown")
def diff(old: Path, new: Path, form: str) -> None:
    """Say what changed between two packages.

    Outcomes, decisions, gates, settings, versions and files. The exit code is 0 whether they differ or not.
    """
    from evidence.diff import diff as compare

    click.echo(compare(old, new, form))


@main.group(epilog=EXITS)
@example("evidence lifecycle summarize runs/cpu-crash-20261130t085731.298220z --output record")
def lifecycle() -> None:
    """Carry out lifecycle protocols, derive and print records."""


@lifecycle.command("run")
@click.argument("file", type=HERE)
@click.option(
    "--runs", "--run", "runs", type=HERE, required=True, help="The folder in which each run's own folder is made."
)
@click.option(
    "--case", "names", multiple=True, help="Only this [[lifecycle]] of the file; may be given more than once."
)
@example("evidence lifecycle run campaigns/lifecycle/lifecycle-cpu.toml --runs runs")
def lifecycle_run(file: Path, runs: Path, names: tuple[str, ...]) -> None:
    """Carry out the co-residency, crash and lora protocols of a file."""
    from evidence.lifecycle.run import run_file

    sys.exit(run_file(file, runs, names, click.echo))


@lifecycle.command("summarize")
@click.argument("runs", nargs=-1, required=True, type=HERE)
@click.option("--output", type=HERE, required=True, help="A new folder for record.json and its evidence.")
@click.option("--title", default="", help="The record's title (default: from the protocols).")
@example("evidence lifecycle summarize runs/cpu-crash-20261130t085731.298220z --output record")
def summarize(runs: tuple[Path, ...], output: Path, title: str) -> None:
    """Derive one sanitised record from the raw events of runs."""
    from evidence.lifecycle.bundle import summarize as derive

    click.echo(derive(runs, output, title))


@lifecycle.command("timeline")
@click.argument("record", type=HERE)
@example("evidence lifecycle timeline archive/lifecycle-cpu/record.json")
def lifecycle_timeline(record: Path) -> None:
    """Print what happened when, from a record or its folder."""
    from evidence.lifecycle.timeline import find_record, read_record, render_timeline

    click.echo(render_timeline(read_record(find_record(record) or record)))


@main.command()
@click.argument("config", type=HERE)
@click.option("--logs", type=HERE, help="Folder of the engines' output (default: a temporary one).")
@example("evidence serve campaigns/lifecycle/supervisor-cpu.toml")
def serve(config: Path, logs: Path | None) -> None:
    """Host several engines on one device behind one address.

    It runs until it is interrupted.
    """
    from evidence.supervisor.__main__ import main as run

    sys.exit(run([str(config), *(["--logs", str(logs)] if logs else [])]))


@main.group(epilog=EXITS)
@example("evidence weights check smollm2-135m ~/models/smollm2 --package archive/h200-smollm2")
def weights() -> None:
    """Compare model folders with the checksums of a package."""


@weights.command("check")
@click.argument("profile")
@click.argument("folder", type=HERE)
@click.option(
    "--package", "package", type=HERE, required=True, help="A package folder, an archive, or a retained folder."
)
@as_json
@example("evidence weights check smollm2-135m ~/models/smollm2 --package archive/h200-smollm2")
def weights_check(profile: str, folder: Path, package: Path, as_json: bool) -> None:
    """Check the files of a model folder against weights/<profile>.sha256."""
    from evidence.build.identities import check_weights

    rows = check_weights(profile, folder, package, quiet=is_quiet() or as_json)
    if as_json:
        _print_json([{"path": row.path, "expected": row.expected, "found": row.found} for row in rows])
    else:
        for row in rows:
            verdict = "OK" if row.found == row.expected else f"FAILED, found {row.found or 'no file'}"
            click.echo(f"{row.path}: {verdict}")
    sys.exit(any(row.found != row.expected for row in rows))


def _finish(validation: Any, form: str) -> None:
    click.echo(validation.render(form))
    sys.exit(validation.exit_code)


def _print_json(value: Any) -> None:
    from evidence.verdict import as_json

    click.echo(as_json(value))
