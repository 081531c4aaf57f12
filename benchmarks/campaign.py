"""A package of the size of a published campaign: what building and verifying it cost.

`python -m benchmarks.campaign [--files 14049] [--tokens 128] [--scale 10] [--json]` forges run folders through capture's recorder (13
profiles, 27 comparisons, the rest functional attempts), builds, and reports in one run: the build against a plain
`tar --sort=name -c | gzip -6` of the same tree, and processor time and memory of `validate` and of every verifier. With `--scale` it does the
same with so many times the files and reports the ratios. Forging is not measured.

An answer has 128 tokens by default, one event each, 26 KB in all. The published guide does not say what its bodies
weigh; 64 to 256 tokens are a usual short answer of a chat. Shorter answers make the build dearer beside its peer, which
pays for bytes alone and not for files; `--tokens 32` shows it.
Commands run with compiled modules, as an installed program does, and alternate with their peers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.forged_runs import Shape, forge_attempt, forge_comparison, write_campaign

PER_COMPARISON = 274  # 252 answers, two requests, a proof of readiness, 12 ledgers, 4 files, and what is left over
REQUESTS = 8


def forge(folder: Path, files: int, tokens: int = 128) -> int:
    """Write a campaign and its runs that give a package of about so many files; how many comparisons it has."""
    share = files * 27 // 51  # of 14,049 files of the published package, 27 comparisons are about half
    comparisons = max(1, share // PER_COMPARISON)
    profiles = {f"profile-{n:02d}": "gated" if n in (12, 13) else "accessible" for n in range(1, 14)}
    campaign = write_campaign(
        folder / "campaign", profiles=profiles, comparisons=comparisons, engines=3, tokens=2 * tokens, recipes=False
    )
    for number, name in enumerate(campaign.comparisons):
        forge_comparison(folder / "runs", campaign, name, number, Shape(tokens=(tokens, tokens), seed=number))
    cases = [case for case in campaign.cases.values() if campaign.profiles[case.profile].state == "accessible"]
    per_attempt = REQUESTS + 9
    left, number = files - comparisons * PER_COMPARISON, len(campaign.comparisons)
    while left > per_attempt:
        requests = min(96, (left - 9) // 2 * 2) if left > 20 * per_attempt else REQUESTS
        case = cases[number % len(cases)]
        forge_attempt(
            folder / "runs",
            campaign,
            case.id,
            number,
            requests=requests,
            shape=Shape(tokens=(tokens, tokens), seed=number),
        )
        left -= requests + 9
        number += 1
    return comparisons


def measure(command: list[str], cwd: Path | None = None) -> dict[str, float]:
    """Wall and processor seconds and peak memory of a command and its children; fails when it does."""
    started = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return {
        "wallSeconds": round(time.monotonic() - started, 3),
        "processorSeconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peakMegabytes": round(usage.ru_maxrss / 1024, 1),
    }


def run(folder: Path, files: int, tokens: int, repeats: int) -> dict[str, Any]:
    """Forge, build, pack the same tree with tar and gzip, verify."""
    comparisons = forge(folder, files, tokens)
    build = [sys.executable, "-m", "evidence", "build", str(folder / "campaign"), "--runs", str(folder / "runs"), "--output", str(folder / "dist")]  # fmt: skip
    measure(build)  # the first reading of the run folders is the disk's matter
    archive = folder / "dist/forged-evaluation.tgz"
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "tree", filter="data")
    peer = ["bash", "-o", "pipefail", "-c", f"tar --sort=name -c forged | gzip -6 > {folder / 'peer.tgz'}"]
    measure(peer, folder / "tree")
    builds, peers = [], []
    for _ in range(repeats):  # one after the other in turn, so that a busy machine is busy for both
        peers.append(measure(peer, folder / "tree"))
        builds.append(measure(build))
    validation = measure([sys.executable, "-m", "evidence", "validate", str(archive)])
    best_build = min(builds, key=lambda one: one["wallSeconds"])
    best_peer = min(peers, key=lambda one: one["wallSeconds"])
    tree = folder / "tree/forged"
    verifiers = {
        script.name: measure([sys.executable, "-I", "-S", str(script)], tree)
        for script in sorted(tree.glob("verify-*.py"))
    }
    found = [path for path in tree.rglob("*") if path.is_file()]
    return {
        "files": len(found),
        "comparisons": comparisons,
        "payloadBytes": sum(path.stat().st_size for path in found),
        "archiveBytes": archive.stat().st_size,
        "peerBytes": (folder / "peer.tgz").stat().st_size,
        "build": best_build,
        "tarAndGzip": best_peer,
        "buildToPeer": round(best_build["wallSeconds"] / best_peer["wallSeconds"], 2),
        "buildToPeerProcessor": round(best_build["processorSeconds"] / best_peer["processorSeconds"], 2),
        "validate": validation,
        "verifiers": verifiers,
        "verifiersProcessorSeconds": round(sum(one["processorSeconds"] for one in verifiers.values()), 2),
        "verifiersPeakMegabytes": max((one["peakMegabytes"] for one in verifiers.values()), default=0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=14049)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of each answer")
    parser.add_argument("--scale", type=int, default=1, help="measure so many times the files, too")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for factor in sorted({1, options.scale}):
        folder = Path(tempfile.mkdtemp(prefix="campaign-"))
        try:
            results[f"x{factor}"] = run(
                folder, options.files * factor, options.tokens, options.repeats if factor == 1 else 1
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if options.scale > 1:
        small, large = results["x1"], results[f"x{options.scale}"]
        results["scaling"] = {
            "files": round(large["files"] / small["files"], 2),
            "buildTime": round(large["build"]["wallSeconds"] / small["build"]["wallSeconds"], 2),
            "buildMemory": round(large["build"]["peakMegabytes"] / small["build"]["peakMegabytes"], 2),
            "validateTime": round(large["validate"]["processorSeconds"] / small["validate"]["processorSeconds"], 2),
            "validateMemory": round(large["validate"]["peakMegabytes"] / small["validate"]["peakMegabytes"], 2),
            "verifiersTime": round(large["verifiersProcessorSeconds"] / small["verifiersProcessorSeconds"], 2),
            "verifiersMemory": round(large["verifiersPeakMegabytes"] / small["verifiersPeakMegabytes"], 2),
        }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for name, result in results.items():
        print(name)
        for key, value in result.items():
            print(f"  {key}: {value}")


if __name__ == "__main__":
    main()
