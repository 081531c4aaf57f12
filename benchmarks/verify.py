"""What the verifiers cost: one full comparison, and a package of the published size.

`python -m benchmarks.verify [--json] [--comparisons 27] [--files 14049]` lays forged packages into a temporary folder
and runs the shipped scripts on them in new processes. Bounds: verify-results on one comparison (252 samples) at most
0.5 s of processor time and 60 MB; all verifiers on the large package at most 3 s and 150 MB together, and
`--mutation-control=all` at most 12 times, the plain control at most 2.5 times, the plain run, in at most 200 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.verifiers.forge import Comparison, sha
from tests.verifiers.forged_package import ROOT, Forge, lay

SCRIPTS = ("verify-results", "verify-incomplete-results", "verify-converged")


def measure(script: str, folder: Path, *arguments: str) -> tuple[float, float]:
    """Processor seconds (children too) and greatest memory in MB of one run, which must verify."""
    code = (
        "import resource,subprocess,sys,json;"
        "r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL).returncode;"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([r,u.ru_utime+u.ru_stime,u.ru_maxrss/1024]))"
    )
    command = [sys.executable, "-I", "-S", str(ROOT / "verifiers" / f"{script}.py"), str(folder), *arguments]
    ran = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, check=True, env={**os.environ})
    status, seconds, memory = json.loads(ran.stdout)
    assert status == 0, (script, arguments, status)
    return seconds, memory


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--comparisons", type=int, default=27)
    parser.add_argument("--files", type=int, default=14049)
    options = parser.parse_args()
    rows: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        one = Forge()
        one.comparisons = one.comparisons[1:]
        rows["one comparison: seconds"], rows["one comparison: MB"] = measure(
            "verify-results", lay(one.seal(), Path(scratch) / "one")
        )
        folder = lay(large(options.comparisons, options.files), Path(scratch) / "large")
        rows["large: files"] = sum(path.is_file() for path in folder.rglob("*"))
        plain = {name: measure(name, folder) for name in SCRIPTS}
        for name, (seconds, memory) in plain.items():
            rows[f"large, {name}: seconds"], rows[f"large, {name}: MB"] = seconds, memory
        rows["large, all: seconds"] = sum(seconds for seconds, _ in plain.values())
        for label, argument in (("control", "--mutation-control"), ("control all", "--mutation-control=all")):
            told = {name: measure(name, folder, argument) for name in SCRIPTS}
            rows[f"large, {label}: MB"] = max(memory for _, memory in told.values())
            rows[f"large, {label}: times the plain run"] = (
                sum(seconds for seconds, _ in told.values()) / rows["large, all: seconds"]
            )
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for name, value in rows.items():
            print(f"{name:45} {value:10.2f}")


if __name__ == "__main__":
    main()
