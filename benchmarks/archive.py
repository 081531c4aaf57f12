"""`python -m benchmarks.archive [--json] [--package X.tgz] [--bagit PYTHON]`: what verifying an archive costs.

Everything in one run, on tmpfs and on disk, the best of several: (a) coreutils and tar, as the README says; (b)
bagit-python with two processes, where an interpreter that has it is named; (c) Python's tarfile with its data filter, then
hashing; (d) `evidence validate`, start-up included, and with the verifiers where `--package` names a real archive; (e)
the limits: inflating alone, SHA-256 of file, stream and members alone. The generated package has 14,049 files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shlex
import shutil
import sys
import tempfile
import time
import zlib
from pathlib import Path

from benchmarks.measuring import Cost, measure, measure_in_turn
from evidence import shipped
from evidence.archive import gzipframe
from evidence.archive.sums import render
from evidence.build.archive import write_archive, write_digests

ROOT = Path(__file__).resolve().parents[1]
FILES = 14_049
COUNTS = [
    "profiles",
    "cases",
    "attempts",
    "comparisons",
    "incompleteComparisons",
    "mainSamples",
    "warmSamples",
    "bodies",
    "lifecycleRecords",
]
EXTRACT = """
import hashlib, sys, tarfile, os
archive, folder = sys.argv[1:]
hashlib.file_digest(open(archive, "rb"), "sha256") if hasattr(hashlib, "file_digest") else hashlib.sha256(open(archive, "rb").read())
with tarfile.open(archive) as tar:
    tar.extractall(folder, filter="data")
root = os.path.join(folder, os.listdir(folder)[0])
for line in open(os.path.join(root, "SHA256SUMS")):
    digest, name = line.rstrip("\\n").split("  ", 1)
    with open(os.path.join(root, name), "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == digest
"""


def generate(folder: Path) -> Path:
    """A package of the published one's size and shape: comparisons with bodies, samples and ledgers."""
    chance = random.Random(14049)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(3000)]
    files = {n if n.startswith("schemas/") else n.partition("/")[2]: data for n, data in shipped.files().items()}
    files |= fixed()
    comparison = 0
    while len(files) < FILES - 1:
        base = f"results/settings/comparison-{comparison:03}"
        bodies = [body(chance, words) for _ in range(254)]
        names = [hashlib.sha256(data).hexdigest() for data in bodies]
        rows = {f"{base}/bodies/{name}": data for name, data in zip(names, bodies, strict=True)}
        rows[f"{base}/samples.json"] = text(samples(names, comparison))
        for arm in ("r1-a", "r1-b", "r2-a", "r2-b", "r3-a", "r3-b"):
            for worker in (1, 2):
                rows[f"{base}/ledgers/{arm}.worker-{worker}.json"] = text(ledger(names, arm, worker))
        for name, data in rows.items():
            if len(files) < FILES - 1:
                files[name] = data
        comparison += 1
    files["SHA256SUMS"] = render({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    path = folder / "bench-evaluation.tgz"
    write_digests(path, write_archive(files.items(), path, "bench"))
    return path


def text(value: object) -> bytes:
    """The canonical form of a package file."""
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def body(chance: random.Random, words: list[str]) -> bytes:
    """A streamed answer of 20 to 60 chunks."""
    head = f'data: {{"id":"chatcmpl-{chance.getrandbits(128):032x}","object":"chat.completion.chunk","model":"m",'
    rows = [
        f'{head}"choices":[{{"index":0,"delta":{{"content":" {chance.choice(words)}"}}}}]}}\n\n'
        for _ in range(chance.randint(20, 60))
    ]
    return "".join([*rows, "data: [DONE]\n\n"]).encode()


def samples(names: list[str], comparison: int) -> dict[str, object]:
    """252 samples."""
    rows = [
        {"offer": f"r1-a-main-{n:03}", "repetition": 1, "arm": "A", "phase": "main", "worker": "worker-1",
         "requestSha256": names[0], "requestBytes": 312, "responseSha256": names[n], "responseBytes": 8123, "status": 200,
         "transport": "complete", "startedSeconds": n / 7, "ttftSeconds": 0.051234567, "reasoningSeconds": None,
         "totalSeconds": 1.2345678, "sendLagSeconds": 0.000123, "classification": "NORMAL", "finishReason": "stop",
         "promptTokens": 20, "completionTokens": 55}
        for n in range(252)
    ]  # fmt: skip
    return {"schemaVersion": 1, "comparison": f"comparison-{comparison:03}", "samples": rows}


def ledger(names: list[str], arm: str, worker: int) -> dict[str, object]:
    """21 receipts."""
    rows = [
        {"sequence": n, "requestId": f"{arm}-main-{n:03}", "method": "POST", "path": "/v1/chat/completions", "traffic": True,
         "requestSha256": names[0], "requestBytes": 312, "responseSha256": names[n], "responseBytes": 8000, "status": 200,
         "complete": True, "reason": None, "startedSeconds": 1.5, "endedSeconds": 2.5,
         "requestHeaders": {"content-type": "application/json"}, "responseHeaders": {"content-type": "text/event-stream"}}
        for n in range(1, 22)
    ]  # fmt: skip
    return {"schemaVersion": 1, "worker": f"worker-{worker}", "arm": arm, "receipts": rows}


def fixed() -> dict[str, bytes]:
    """The files that every package has."""
    definition = b'id = "tiny"\n'
    profile = {
        "id": "tiny", "repository": "example/tiny", "revision": "a" * 40, "revisionReason": None, "state": "accessible", "dateSensitive": False,
        "license": "apache-2.0", "artifacts": [], "sourceIndexSha256": None,
        "template": {"source": "repository", "sha256": None},
        "definition": {"path": "source-definitions/tiny.toml", "sha256": hashlib.sha256(definition).hexdigest()},
    }  # fmt: skip
    manifest = {
        "schemaVersion": 1, "campaign": "bench", "title": "Benchmark", "status": "FINAL", "synthetic": "all",
        "distribution": {"archive": "bench-evaluation.tgz", "topFolder": "bench", "preparation": False},
        "statement": "Everything here is synthetic.", "engines": [], "gateways": [], "privacyExceptions": [],
        "boundaries": [{"id": "not-optimum", "statement": "No optimum."}], "counts": dict.fromkeys(COUNTS, 0),
        "builder": {"name": "benchmarks", "version": "1"}, "proxySha256": "0" * 64,
        "dates": {"firstRunStartedAt": None, "lastRunEndedAt": None},
    }  # fmt: skip
    return {
        "README.md": b"# benchmark\n",
        "source-definitions/tiny.toml": definition,
        "manifest.json": text(manifest),
        "model-identities.json": text({"schemaVersion": 1, "profiles": [profile], "historicalCatalog": []}),
        "models/tiny.json": text({"schemaVersion": 1, "profile": profile}),
    }


def best(times: int, run: object) -> float:
    """Seconds of the fastest of several runs."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        run()  # type: ignore[operator]
        spent.append(time.perf_counter() - start)
    return min(spent)


def shell(command: str) -> list[str]:
    return ["bash", "-o", "pipefail", "-c", command]


def inflate(data: bytes, codec: object) -> None:
    """Raw inflating in the reader's own steps, and nothing else."""
    inflater = codec.decompressobj(-15)  # type: ignore[attr-defined]
    at = 10
    piece = b""
    while not inflater.eof:
        out = inflater.decompress(piece, gzipframe.GIVE)
        piece = inflater.unconsumed_tail
        if not piece and len(out) < gzipframe.GIVE:
            piece = data[at : at + gzipframe.TAKE]
            at += gzipframe.TAKE


def hash_all(data: bytes, stream: bytes, members: list[bytes]) -> None:
    for one in (data, stream, *members):
        hashlib.sha256(one).hexdigest()


def members_of(stream: bytes) -> list[bytes]:
    found, at = [], 0
    while stream[at]:
        size = int(stream[at + 124 : at + 135], 8)
        found.append(stream[at + 512 : at + 512 + size])
        at += 512 + size + -size % 512
    return found


def place(where: Path, archive: Path, times: int, real: bool, bagit: str | None) -> dict[str, Cost]:
    """What (a) to (d) cost with everything lying under `where`, one after the other in turn."""
    work = Path(tempfile.mkdtemp(prefix="bench-", dir=where))
    try:
        for path in archive.parent.glob(f"{archive.stem}.*"):
            shutil.copy(path, work)
        local, top = archive.name, archive.name.removesuffix("-evaluation.tgz")
        validate = [sys.executable, "-m", "evidence", "validate", str(work / local)]
        extract = shlex.join([sys.executable, "-c", EXTRACT, local, "out2"])
        rows = {
            "a coreutils and tar": shell(
                f"rm -rf out && mkdir out && sha256sum -c {local}.sha256 && tar -xzf {local} -C out && "
                f"cd out/{top} && sha256sum -c SHA256SUMS"
            ),
            "c tarfile and hashing": shell(f"rm -rf out2 && mkdir out2 && {extract}"),
            "d validate": validate,
        }
        if real:
            rows["d validate with verifiers"] = [*validate, "--verify-results"]
        if bagit is not None:
            measure(rows["a coreutils and tar"], work)
            measure(shell(f"mkdir bag && cp -r out/{top} bag/{top}"), work)
            make = "import bagit, sys; bagit.make_bag(sys.argv[1], checksums=['sha256'], processes=2)"
            check = "import bagit, sys; bagit.Bag(sys.argv[1]).validate(processes=2)"
            measure([bagit, "-c", make, "bag"], work)
            rows["b bagit, unpacked, two processes"] = [bagit, "-c", check, "bag"]
        # Scratch files lie where the archive does, and what runs there is this checkout's code.
        places = {"TMPDIR": str(work), "PYTHONPATH": str(ROOT)}
        return measure_in_turn({name: (command, work) for name, command in rows.items()}, times, **places)
    finally:
        shutil.rmtree(work)


def measure_limits(archive: Path, times: int) -> dict[str, object]:
    """(e), with the facts of the archive; the bytes are let go of before anything else is timed."""
    data = archive.read_bytes()
    stream = zlib.decompress(data, 31)
    members = members_of(stream)
    fast = gzipframe.fastest()
    return {
        "files": len(members), "tarBytes": len(stream), "tgzBytes": len(data), "codec": fast.__name__,
        "limits": {
            "e inflate alone": best(times, lambda: inflate(data, fast)),
            "e inflate alone, zlib": best(times, lambda: inflate(data, zlib)),
            "e SHA-256 of file, stream, members": best(times, lambda: hash_all(data, stream, members)),
        },
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.archive", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--package", type=Path, help="a real archive, which the verifiers accept, instead of a generated one"
    )
    parser.add_argument("--bagit", help="a Python interpreter in which bagit is installed")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        archive = (options.package or generate(Path(scratch))).resolve()
        result = measure_limits(archive, options.times)
        tmpfs = Path("/dev/shm")
        places = {"disk": Path(tempfile.gettempdir()), **({"tmpfs": tmpfs} if tmpfs.is_dir() else {})}
        for name, where in places.items():
            result[name] = place(where, archive, options.times, options.package is not None, options.bagit)
    if options.json:
        print(json.dumps(result, indent=2, sort_keys=True))
        return 0
    print(f"{result['files']} files, {result['tarBytes']} bytes in {result['tgzBytes']}, {result['codec']}")
    limits = result["limits"]
    assert isinstance(limits, dict)
    for name, seconds in limits.items():
        print(f"limits  {name:36} {seconds:7.3f} s")
    for part in places:
        rows = result[part]
        assert isinstance(rows, dict)
        for name, cost in rows.items():
            shares = (
                cost["wallSeconds"] / rows["a coreutils and tar"]["wallSeconds"],
                cost["wallSeconds"] / max(limits.values()),
            )
            print(
                f"{part:7} {name:36} {cost['wallSeconds']:7.3f} s  {shares[0]:.2f} of a  {shares[1]:.2f} of the limit  {cost['peakMegabytes']:.0f} MB"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
