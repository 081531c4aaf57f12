"""The command line of verify-lifecycle: a package as for every verifier, or one record file, with its raw evidence.

A record file is judged as a package of that one file; its raw evidence is laid beside it in memory as
`evidence/<experiment>/<name>`. Nothing is written but into a temporary folder for the control in a new process.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from checking import command
from checking.check import LONGEST_LINE, Report, judge, table
from checking.command import BLIND, REJECTED, UNREADABLE, VERIFIED, Verifier
from checking.package import Folder, Memory, Unreadable
from checking.reading import read_json, shown
from checking.rules import lifecycle
from checking.rules.lifecycle import SINGLE
from checking.rules.lifecycle_index import RECORDS
from checking.rules.lifecycle_worth import tally

if TYPE_CHECKING:
    from checking.damage import Outcome

FAMILIES = (lifecycle.FAMILY,)
RAW_CONTROL, CONTROLS = (
    tuple((row.code, row.mutations[0]) for row in lifecycle.FAMILY.checks if row.code in codes)
    for codes in (
        ("lifecycle-raw-figures",),
        ("lifecycle-device-used", "lifecycle-phase-sum", "lifecycle-undeclared"),
    )
)


def read_bundle(folder: str) -> Dict[str, bytes]:
    """The files of a bundle as evidence/<path> -> bytes. Raises OSError or Unreadable."""
    source = Folder(folder)
    wrong = [name for name, kind in source.entries.items() if kind not in ("file", "folder")]
    if wrong:
        raise Unreadable(wrong[0], "no regular file")
    return {"evidence/" + name: source.read(name) for name, kind in source.entries.items() if kind == "file"}


def judge_record(data: bytes, bundle: Dict[str, bytes]) -> Tuple[Memory, Report]:
    """One record's bytes with its evidence, judged."""
    source = Memory({SINGLE: data, **bundle})
    return source, judge(source, FAMILIES, again=True)


def control(source: Memory, script: str) -> Outcome:
    """Alter a copy of the record and of its raw events and call the real verifier on it in a new process."""
    import tempfile

    from checking.control import judged, run
    from checking.damage import NOTHING, Bench, Outcome

    for code, mutation in (*RAW_CONTROL, *CONTROLS) if any(name != SINGLE for name in source.files) else CONTROLS:
        bench = Bench(source, {})
        altered = mutation.damage(bench)
        if altered is None:
            continue
        with tempfile.TemporaryDirectory(prefix="mutation-control-") as scratch:
            for name, data in {**source.files, **{name: data or b"" for name, data in bench.changes.items()}}.items():
                path = os.path.join(scratch, *name.split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(data)
            words = [script, os.path.join(scratch, SINGLE)]
            if any(name != SINGLE for name in source.files):
                words += ["--evidence", os.path.join(scratch, "evidence")]
            ran = run(words)
        return judged(mutation, altered, code, ran)
    return Outcome("alter a record", NOTHING, "", (), "inert", True)


def held_places(record: Dict[str, Any], bundle: Dict[str, bytes]) -> List[str]:
    """JSON pointers of what was held against the raw evidence."""
    from checking.rules.lifecycle_raw import checked_places

    return checked_places(record, list(bundle), bundle.__getitem__)


def verify_record(options: Any, script: str) -> Tuple[int, Dict[str, int], Dict[str, Any]]:
    """Judge one record file. Gives exit code, counts and what there is to say, the figures among it."""
    said: Dict[str, Any] = {"findings": [], "mutations": [], "message": "", "figures": []}
    try:
        with open(options.package, "rb") as file:
            data = file.read(64 << 20)
        bundle = read_bundle(options.evidence) if options.evidence else {}
    except (OSError, Unreadable) as error:
        said["message"] = "cannot be read: %s" % error
        return UNREADABLE, {}, said
    source, report = judge_record(data, bundle)
    counts = command.counts_of(report)
    said["findings"] = list(report.findings)
    if report.findings:
        return REJECTED, counts, said
    if report.crashes:
        said["message"] = "a check failed on its own: " + report.crashes[0]
        return UNREADABLE, counts, said
    from checking.rules.lifecycle_figures import figures

    record = read_json(data)
    said["figures"] = figures(record, held_places(record, bundle) if bundle else [])
    counts.update(tally(said["figures"]))
    if options.mutation_control:
        from checking.damage import Bench, try_mutation

        said["mutations"] = [control(source, script)]
        if options.mutation_control == "all":
            for row in table(FAMILIES):
                for mutation in row.mutations:
                    said["mutations"].append(
                        try_mutation(row.code, mutation, source, FAMILIES, report, Bench(source, {}))
                    )
        if any(outcome.blind() for outcome in said["mutations"]):
            said["message"] = "a mutation was not rejected: this verifier is blind, trust nothing it said"
            return BLIND, counts, said
    return VERIFIED, counts, said


def verify_package(verifier: Verifier, options: Any, script: str) -> Tuple[int, Dict[str, int], Dict[str, Any]]:
    """Judge a package, then list the figures of its records."""
    code, counts, said = command.verify(verifier, options, script)
    said["figures"] = []
    if code == VERIFIED:
        source = Folder(options.package)
        for name in source.entries.below(RECORDS):
            if name.endswith(".json"):
                from checking.rules.lifecycle_figures import figures

                found = figures(read_json(source.read(name)))
                said["figures"] += [one._replace(place="%s#%s" % (name, one.place)) for one in found]
        counts.update(tally(said["figures"]))
        source.close()
    return code, counts, said


def arguments(verifier: Verifier, script: str, argv: Sequence[str]) -> Any:
    """The arguments of every verifier, and --evidence."""
    evidence: Optional[str] = None
    rest: List[str] = []
    words = iter(argv)
    for word in words:
        if word == "--evidence" or word.startswith("--evidence="):
            evidence = word[11:] if "=" in word else next(words, None)
            if not evidence:
                print("%s: --evidence needs a folder" % verifier.name, file=sys.stderr)
                raise SystemExit(UNREADABLE)
        else:
            rest.append(word)
    options = command.arguments(verifier, os.path.dirname(os.path.abspath(script)), rest)
    options.evidence = evidence
    if evidence and not os.path.isfile(options.package):
        print("%s: --evidence goes with the path of one record file" % verifier.name, file=sys.stderr)
        raise SystemExit(UNREADABLE)
    return options


def show(verifier: Verifier, options: Any, code: int, counts: Dict[str, int], said: Dict[str, Any]) -> None:
    """Print the figures one by one, then the verdict as every verifier does."""
    if not options.json:
        for one in said["figures"]:
            line = "%-10s %s %s%s" % (one.worth, one.place, one.value, " (%s)" % one.code if one.code else "")
            print(shown(line, LONGEST_LINE))
    command.show(verifier, options.package, code, counts, said, options.json)


def main(verifier: Verifier, script: str, argv: Optional[List[str]] = None) -> int:
    """Run the verifier and give its exit code."""
    options = arguments(verifier, script, sys.argv[1:] if argv is None else argv)
    try:
        if os.path.isfile(options.package) and not os.path.islink(options.package):
            code, counts, said = verify_record(options, script)
        else:
            code, counts, said = verify_package(verifier, options, script)
    except (OSError, MemoryError, RecursionError) as error:
        code, counts = UNREADABLE, {}
        said = {"findings": [], "mutations": [], "message": "could not run: %s" % error, "figures": []}
    show(verifier, options, code, counts, said)
    return code
