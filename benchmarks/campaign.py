"""A package of the size of a published campaign: what building and verifying it cost.

`python -m benchmarks.campaign [--files 14049] [--tokens 40] [--scale 10] [--repeats 3] [--json]` forges run folders through capture's
recorder (13 profiles, 27 comparisons, the rest functional attempts), builds, and reports in one run: the build against a plain
`tar --sort=name -c | gzip -6` of the same tree, and processor time and memory of `validate` and of every verifier against a plain
`sha256sum -c` of the same tree. With `--scale` it does the same with so many times the files and reports the ratios. Forging is not measured.

An answer has 40 tokens by default, one event each: streams of 8.6 KB, and 8.1 KB a body with all that is no stream. That is what bodies
weigh in this repository's own published evaluation of a model on real GPUs, archive/h200-smollm2: 8.2 KB on the average, its streams 9.7 KB.
Short answers make the build dearer beside its peer, which pays for bytes alone and not for files; `--tokens 128` shows long ones, of 26 KB.
Commands run with compiled modules, as an installed program does, and alternate with their peers; each is reported by its best run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.forged_runs import Shape, forge_attempt, forge_comparison, write_campaign
from benchmarks.measuring import measure, measure_in_turn

PER_COMPARISON = 274  # 252 answers, two requests, a proof of readiness, 12 ledgers, 4 files, and what is left over
REQUESTS = 8


def forge(folder: Path, files: int, tokens: int = 40) -> int:
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


def run(folder: Path, files: int, tokens: int, repeats: int) -> dict[str, Any]:
    """Forge, build, pack the same tree with tar and gzip, verify."""
    comparisons = forge(folder, files, tokens)
    build = [sys.executable, "-m", "evidence", "build", str(folder / "campaign"), "--runs", str(folder / "runs"), "--output", str(folder / "dist")]  # fmt: skip
    measure(build)  # the first reading of the run folders is the disk's matter
    archive = folder / "dist/forged-evaluation.tgz"
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "tree", filter="data")
    tree = folder / "tree/forged"
    commands: dict[str, tuple[list[str], Path | None]] = {
        "tarAndGzip": (
            ["bash", "-o", "pipefail", "-c", f"tar --sort=name -c forged | gzip -6 > {folder / 'peer.tgz'}"],
            tree.parent,
        ),
        "build": (build, None),
        "sha256sum": (["sha256sum", "--quiet", "-c", "SHA256SUMS"], tree),
        "validate": ([sys.executable, "-m", "evidence", "validate", str(archive)], None),
    }
    scripts = [script.name for script in sorted(tree.glob("verify-*.py"))]
    commands |= {name: ([sys.executable, "-I", "-S", name], tree) for name in scripts}
    best = measure_in_turn(commands, repeats)
    verifiers = {name: best[name] for name in scripts}
    peer, hashing = best["tarAndGzip"], best["sha256sum"]
    verifying = sum(one["processorSeconds"] for one in verifiers.values())
    sizes = [path.stat().st_size for path in tree.rglob("*") if path.is_file()]
    return {
        "files": len(sizes),
        "comparisons": comparisons,
        "payloadBytes": sum(sizes),
        "archiveBytes": archive.stat().st_size,
        "peerBytes": (folder / "peer.tgz").stat().st_size,
        "build": best["build"],
        "tarAndGzip": peer,
        "buildToPeer": round(best["build"]["wallSeconds"] / peer["wallSeconds"], 2),
        "buildToPeerProcessor": round(best["build"]["processorSeconds"] / peer["processorSeconds"], 2),
        "sha256sum": hashing,
        "validate": best["validate"],
        "validateToSha256sumProcessor": round(best["validate"]["processorSeconds"] / hashing["processorSeconds"], 2),
        "verifiers": verifiers,
        "verifiersProcessorSeconds": round(verifying, 2),
        "verifiersToSha256sumProcessor": round(verifying / hashing["processorSeconds"], 2),
        "verifiersPeakMegabytes": max((one["peakMegabytes"] for one in verifiers.values()), default=0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=14049)
    parser.add_argument("--tokens", type=int, default=40, help="tokens of each answer")
    parser.add_argument("--scale", type=int, default=1, help="measure so many times the files, too")
    parser.add_argument("--repeats", type=int, default=3, help="how often each command is measured")
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
