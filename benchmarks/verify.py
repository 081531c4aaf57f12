"""What the verifiers cost: one full comparison, and a package of the published size.

`python -m benchmarks.verify [--json] [--comparisons 27] [--files 14049]` lays forged packages into a temporary folder;
`--package DIR` measures an unpacked package instead. The shipped scripts run in new processes, in turn with their peer,
`sha256sum -c SHA256SUMS`, which reads the same bytes and proves a digest alone; the least of `--repeats` counts.
Bounds: verify-results on one comparison (252 samples) at most 0.5 s of processor time and 60 MB; all verifiers on the
large package at most 3 s and 150 MB together; and `--mutation-control=all` at most 12 times, the plain control at most
2.5 times, the plain run, in at most 200 MB. Tenfold files: at most eleven times the time, 1.5 times the memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import measure
from tests.verifiers.forge import Comparison, sha
from tests.verifiers.forged_package import ROOT, Forge, lay

SCRIPTS = ("verify-results", "verify-incomplete-results", "verify-converged", "verify-lifecycle")
CONTROL, EVERY = ("--mutation-control",), ("--mutation-control=all",)
PEER = ("sha256sum", "--quiet", "-c", "SHA256SUMS")


def spent(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Processor seconds (children too) and greatest memory in MB of one run, which must succeed."""
    cost = measure(list(command), folder)
    return cost["processorSeconds"], cost["peakMegabytes"]


def script(name: str, *arguments: str) -> list[str]:
    """The command of a verifier on the package that it is started in."""
    return [sys.executable, "-I", "-S", str(ROOT / "verifiers" / f"{name}.py"), ".", *arguments]


def compared(folder: Path, repeats: int) -> dict[str, float]:
    """Peer, plain runs and controls of one package."""
    commands = {"peer": list(PEER)}
    for name in SCRIPTS:
        for label, arguments in (("plain", ()), ("control", CONTROL), ("control all", EVERY)):
            commands[f"{name} {label}"] = script(name, *arguments)
    found: dict[str, tuple[float, float]] = {}
    for number in range(repeats):
        for label, command in commands.items():
            if number == 0 or "control" not in label:
                one = spent(command, folder)
                found[label] = min(found.get(label, one), one)
    plain = sum(found[f"{name} plain"][0] for name in SCRIPTS)
    rows = {"files": float(sum(path.is_file() for path in folder.rglob("*"))), "peer: seconds": found["peer"][0]}
    for label, (seconds, memory) in found.items():
        if label != "peer":
            rows[f"{label}: seconds"], rows[f"{label}: MB"] = seconds, memory
    for name in SCRIPTS:
        for label in ("control", "control all"):
            rows[f"{name} {label}: times plain"] = found[f"{name} {label}"][0] / found[f"{name} plain"][0]
    return {**rows, "all plain: seconds": plain, "all plain: times the peer": plain / found["peer"][0]}


def large(comparisons: int, files: int) -> dict[str, bytes]:
    """A forged package with so many comparisons, filled up with functional bodies to so many files."""
    forge = Forge()
    for number in range(comparisons - len(forge.comparisons)):
        kind = "memory" if number % 2 else "sequence-cap"
        slow = (0.3 + number * 0.0001, 0.2 + number * 0.0001)
        forge.comparisons.append(Comparison(f"more-{number:02d}", kind, 3 + number % 5, slow, (4 << 30, 2 << 30)))
    sealed = forge.seal()
    spare = files - len(sealed)
    for number in range(max(0, spare)):
        attempt = forge.attempts[1]
        data = b'{"object":"list","number":%d}' % number
        attempt.bodies[sha(data)] = data
        attempt.controls.append(
            {**attempt.controls[0], "id": f"models-{number + 2}", "sha256": sha(data), "bytes": len(data)}
        )
    return forge.seal()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--comparisons", type=int, default=27)
    parser.add_argument("--files", type=int, default=14049)
    parser.add_argument("--package", type=Path, help="an unpacked package to be measured instead of a forged one")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        one = Forge()
        one.comparisons = one.comparisons[1:]
        seconds, memory = spent(script("verify-results"), lay(one.seal(), Path(scratch) / "one"))
        rows["one comparison: seconds"], rows["one comparison: MB"] = seconds, memory
        folder = options.package or lay(large(options.comparisons, options.files), Path(scratch) / "large")
        rows.update(compared(folder, options.repeats))
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for name, value in rows.items():
            print(f"{name:55} {value:10.2f}")


if __name__ == "__main__":
    main()
