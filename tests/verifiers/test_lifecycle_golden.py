"""The exact line of every code of verify-lifecycle; `python -m tests.verifiers.test_lifecycle_golden` writes them anew."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.verifiers.kill_matrix import ROOT, verifier  # first: it finds the verifiers

from checking.check import Check, Family, Finding, judge, table  # isort: skip
from checking.damage import Bench, sha256, written_json  # isort: skip
from checking.package import Memory, Source  # isort: skip
from checking.rules import lifecycle  # isort: skip

GOLDEN = ROOT / "tests" / "golden" / "lifecycle-findings.txt"
PUBLISHED = ROOT / "tests/vectors/lifecycle/published-record.json"
OWN = (ROOT / "archive/lifecycle-cpu", ROOT / "archive/lifecycle-adapters-cpu")


def grounds() -> list[tuple[Source, tuple[Family, ...], dict[str, str]]]:
    """What mutations are tried on: the published record, our own with raw events, and a package with the former."""
    own = [Memory({path.relative_to(folder).as_posix(): path.read_bytes() for path in kept(folder)}) for folder in OWN]
    alone = (lifecycle.FAMILY,)
    data = PUBLISHED.read_bytes()
    names = [one["id"] for one in json.loads(data)["experiments"]]
    entry = {
        "id": "published",
        "path": "results/lifecycle/published.json",
        "sha256": sha256(data),
        "experiments": names,
    }
    index = written_json({"schemaVersion": 1, "records": [entry]}) + "\n"
    files = {"results/lifecycle-index.json": index.encode(), entry["path"]: data, "manifest.json": b"{}\n"}
    sums = {name: sha256(files[name]) for name in sorted(files)}
    files["SHA256SUMS"] = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
    package = Memory(files)
    return [
        (Memory({"record.json": PUBLISHED.read_bytes()}), alone, {}),
        *((source, alone, {}) for source in own),
        (package, verifier("verify-lifecycle").families, sums),
    ]


def kept(folder: Path) -> list[Path]:
    """A record and its evidence; a folder's README is for people."""
    return [folder / "record.json", *(path for path in (folder / "evidence").rglob("*") if path.is_file())]


def rows() -> list[Check]:
    return table(verifier("verify-lifecycle").families)


def findings(row: Check) -> tuple[str, list[Finding]]:
    """The first mutation of a row that a ground has something for, and what it was rejected with."""
    for source, families, sums in grounds():
        if row.code not in {one.code for one in table(families)}:
            continue
        for mutation in row.mutations:
            bench = Bench(source, sums)
            if mutation.damage(bench) is None:
                continue
            if mutation.resealed and sums:
                bench.reseal()
            found = judge(bench.overlay(), families).findings
            mine = [one for one in found if one.code == row.code]
            if mine:
                return mutation.name, mine
    return "", []


def golden() -> str:
    lines = ["# verify-lifecycle"]
    for row in rows():
        name, mine = findings(row)
        lines += [f"## {name}", str(mine[0]) if mine else f"{row.code} has no line"]
    return re.sub(r"(?i)\b[0-9a-f]{40,64}\b", "<sha256>", "\n".join(lines)) + "\n"


def test_every_code_has_its_golden_line() -> None:
    text = GOLDEN.read_text()
    assert text == golden(), "run python -m tests.verifiers.test_lifecycle_golden"
    codes = [line.split(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert codes == [row.code for row in rows()]


def test_every_line_says_place_found_and_expected() -> None:
    for line in GOLDEN.read_text().splitlines():
        if not line.startswith("#"):
            assert re.fullmatch(r"\S+ \S.*: found .+, expected .+", line), line


if __name__ == "__main__":
    GOLDEN.write_text(golden())
