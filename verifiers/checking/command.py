"""The command line that all verifiers share: arguments, output, exit codes.

Exit 0 verified; 1 rejected, a line a finding; 2 could not run; 3 a mutation control was not rejected.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from checking.check import Family, Mutation, Report, judge, table
from checking.package import Folder, Recall

VERIFIED, REJECTED, UNREADABLE, BLIND = 0, 1, 2, 3
VERDICTS = {VERIFIED: "verified", REJECTED: "rejected", UNREADABLE: "unreadable", BLIND: "blind"}


class Verifier(NamedTuple):
    """One verifier: its name, what a sceptic learns, its families in order, and its control in a new process.

    `controls` are (expected code, mutation); the first that finds something to alter is used. `remarks` are
    printed with every verdict: what was not and cannot be verified.
    """

    name: str
    learns: str
    families: Tuple[Family, ...]
    controls: Tuple[Tuple[str, Mutation], ...]
    not_proved: str
    remarks: Tuple[str, ...] = ()


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, found without `shutil`, whose import would cost each start some milliseconds."""

    def __init__(self, prog: str) -> None:
        try:
            width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError, AttributeError):
            width = 80
        super().__init__(prog, width=width - 2)


def arguments(verifier: Verifier, home: str, argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; a wrong one exits 2."""
    parser = argparse.ArgumentParser(
        prog=verifier.name + ".py",
        description=verifier.learns,
        epilog=verifier.not_proved,
        formatter_class=Help,
    )
    parser.add_argument("package", nargs="?", default=home, help="the unpacked package; default: where this file is")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")
    parser.add_argument(
        "--first", action="store_true", help="stop at the first part that is rejected, with all that is wrong with it"
    )
    parser.add_argument(
        "--mutation-control",
        nargs="?",
        const="one",
        choices=["one", "all"],
        help="afterwards damage a copy, which must be rejected; `all`: one mutation and more for every code",
    )
    return parser.parse_args(list(argv))


def counts_of(report: Report) -> Dict[str, int]:
    """What was looked at, added up over all subjects."""
    counts: Dict[str, int] = {}
    for result in report.results.values():
        if isinstance(result.facts, dict):
            for name, number in result.facts.get("counts", {}).items():
                counts[name] = counts.get(name, 0) + number
    return counts


def retained_only(folder: Folder) -> bool:
    """Whether this is the part that a repository retains: it has a manifest and no results at all."""
    return "manifest.json" in folder.entries and not folder.entries.below("results")


def show(
    verifier: Verifier, package: str, code: int, counts: Dict[str, int], said: Dict[str, Any], as_json: bool
) -> None:
    """Print the verdict: one JSON document, or lines."""
    findings, outcomes, message = said["findings"], said["mutations"], said["message"]
    if as_json:
        document = {
            "verifier": verifier.name,
            "package": package,
            "verdict": VERDICTS[code],
            "exitCode": code,
            "counts": counts,
            "findings": [finding._asdict() for finding in findings],
            "mutations": [
                {
                    "mutation": outcome.mutation,
                    "altered": outcome.altered,
                    "expected": outcome.expected,
                    "observed": list(outcome.observed),
                    "verdict": outcome.verdict,
                }
                for outcome in outcomes
            ],
        }
        if message:
            document["message"] = message
        print(json.dumps(document, indent=2, sort_keys=True))
        return
    for finding in findings:
        print(finding)
    if outcomes:
        print("%-9s %-58s %-28s %s" % ("VERDICT", "MUTATION", "EXPECTED", "OBSERVED"))
        for outcome in outcomes:
            seen = " ".join(outcome.observed) or outcome.altered
            print("%-9s %-58s %-28s %s" % (outcome.verdict, outcome.mutation, outcome.expected, seen))
        tally = [
            "%d %s" % (sum(outcome.verdict == verdict for outcome in outcomes), verdict)
            for verdict in ("killed", "survived", "crashed", "inert")
        ]
        print("mutations: %s" % ", ".join(tally))
    if message:
        print("%s: %s" % (verifier.name, message), file=sys.stderr)
    for remark in verifier.remarks:
        print("remark: " + remark)
    tally = ["%d %s" % (number, name) for name, number in sorted(counts.items())]
    print("%s: %s%s" % (verifier.name, VERDICTS[code], " (%s)" % ", ".join(tally) if tally else ""))


def verify(verifier: Verifier, options: argparse.Namespace, script: str) -> Tuple[int, Dict[str, int], Dict[str, Any]]:
    """Judge the package and, when asked, the judge. Gives exit code, counts and what there is to say."""
    said: Dict[str, Any] = {"findings": [], "mutations": [], "message": ""}
    if os.path.islink(options.package) or not os.path.isdir(options.package):
        said["message"] = "%s is no folder; expected an unpacked package" % options.package
        return UNREADABLE, {}, said
    try:
        folder = Folder(options.package)
    except OSError as error:
        said["message"] = "%s cannot be listed: %s" % (options.package, error.strerror)
        return UNREADABLE, {}, said
    if retained_only(folder):
        said["message"] = (
            "this folder keeps only part of the package and no results; unpack the complete archive, "
            "../<campaign>-evaluation.tgz, into a new folder and run there"
        )
        return UNREADABLE, {}, said
    if "SHA256SUMS" not in folder.entries and "manifest.json" not in folder.entries:
        said["message"] = "%s holds neither SHA256SUMS nor manifest.json; expected a package" % options.package
        return UNREADABLE, {}, said
    recall = Recall() if options.mutation_control == "all" else None
    report = judge(folder, verifier.families, recall=recall, again=recall is not None, first=options.first)
    counts = counts_of(report)
    said["findings"] = list(report.findings)
    if report.findings:
        if options.first:
            said["message"] = "stopped at the first part that is rejected; there may be more"
        return REJECTED, counts, said
    if report.crashes:
        said["message"] = "a check failed on its own: " + report.crashes[0]
        return UNREADABLE, counts, said
    if options.mutation_control:
        from checking.control import control
        from checking.damage import try_all

        first = control(verifier.controls, folder, script)
        said["mutations"] = [first] if first is not None else []
        if recall is not None:
            said["mutations"].extend(try_all(folder, verifier.families, report, table(verifier.families), recall))
        if any(outcome.blind() for outcome in said["mutations"]):
            said["message"] = "a mutation was not rejected: this verifier is blind, trust nothing it said"
            return BLIND, counts, said
    folder.close()
    return VERIFIED, counts, said


def main(verifier: Verifier, script: str, argv: Optional[List[str]] = None) -> int:
    """Run one verifier and give its exit code."""
    options = arguments(verifier, os.path.dirname(os.path.abspath(script)), sys.argv[1:] if argv is None else argv)
    try:
        code, counts, said = verify(verifier, options, script)
    except (OSError, MemoryError, RecursionError) as error:
        code, counts = UNREADABLE, {}
        said = {"findings": [], "mutations": [], "message": "could not run: %s" % error}
    show(verifier, options.package, code, counts, said, options.json)
    return code
