"""`python -m evidence.lifecycle run|summarize|timeline`: what `evidence lifecycle` runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evidence.errors import EvidenceError
from evidence.lifecycle.bundle import summarize
from evidence.lifecycle.run import run_section
from evidence.lifecycle.timeline import find_record, read_record, render_timeline

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def run(options: argparse.Namespace) -> int:
    """Carry out the sections of a file; gives the exit code."""
    try:
        listed = tomllib.loads(options.file.read_text(encoding="utf-8")).get("lifecycle")
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{options.file}: cannot be read: {error}", "name a TOML file with [[lifecycle]]") from None
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise EvidenceError(f"{options.file}: lifecycle: found {listed!r:.60}, expected at least one [[lifecycle]]")
    unknown = sorted(set(options.case) - {str(one.get("id")) for one in listed})
    if unknown:
        raise EvidenceError(f"{options.file}: --case {', '.join(unknown)}: found no such [[lifecycle]]")
    code = 0
    for section in listed:
        identifier, protocol = section.pop("id", ""), section.pop("protocol", "")
        if options.case and identifier not in options.case:
            continue
        outcome = run_section(identifier, protocol, section, options.file.parent, options.runs)
        print(f"{identifier}: {'complete' if outcome.complete else 'incomplete'}: {outcome.run}")
        for fault, text in outcome.faults:
            print(f"  {fault}: {text}")
        if not outcome.complete:
            code = 4
    return code


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evidence.lifecycle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="carry out the lifecycle sections of a file")
    one.add_argument("file", type=Path)
    one.add_argument("--runs", type=Path, required=True)
    one.add_argument("--case", action="append", default=[])
    one = commands.add_parser("summarize", help="derive a record and its evidence from finished runs")
    one.add_argument("run", type=Path, nargs="+")
    one.add_argument("--output", type=Path, required=True)
    one.add_argument("--title", default="")
    one = commands.add_parser("timeline", help="print a record's events as a table")
    one.add_argument("record", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.command == "run":
            return run(options)
        if options.command == "summarize":
            print(summarize(options.run, options.output, options.title))
        else:
            print(render_timeline(read_record(find_record(options.record) or options.record)))
    except EvidenceError as error:
        print(f"error: {error.message}", *([f"hint: {error.hint}"] if error.hint else []), sep="\n", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
