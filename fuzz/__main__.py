"""`python -m fuzz [--seconds N] [--target NAME] [--seed N]`: runs the targets and prints executions of each."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

from evidence.archive.grammar import Refusal
from fuzz.targets import TARGETS, Target

CORPUS = Path(__file__).parent / "corpus"
MEMORY = 1 << 30
SLOW = 1.0


def corpus_of(target: Target) -> list[bytes]:
    """The seeds of the table and the kept inputs."""
    return [*target.seeds, *(path.read_bytes() for path in sorted((CORPUS / target.name).glob("*")))]


def mutate(chance: random.Random, target: Target, corpus: list[bytes]) -> bytes:
    """One to four edits of a kept input: flips, cuts, repeats, words of the dictionary, pieces of another input."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        kind = chance.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = chance.randrange(256)
        elif kind == 2:
            data[at : at + chance.choice([1, 2, 8, 512])] = b""
        elif kind == 3:
            data[at:at] = data[at : at + chance.choice([1, 8, 512])]
        elif kind == 4 and target.dictionary:
            word = chance.choice(target.dictionary)
            data[at : at + chance.choice([0, len(word)])] = word
        elif kind == 5:
            other = chance.choice(corpus)
            data[at:] = other[chance.randint(0, len(other)) :]
        else:
            data[at:at] = chance.randbytes(chance.choice([1, 2, 8]))
    return bytes(data)


def attempt(target: Target, data: bytes) -> str | None:
    """Run one input; return what is wrong with how it went, or None."""
    start = time.process_time()  # processor time: a busy machine is no fault of the reader
    try:
        target.run(data)
    except Refusal:
        pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    spent = time.process_time() - start
    return f"{spent:.2f} s" if spent > SLOW else None


def keep(target: Target, data: bytes) -> Path:
    """Write an input that shows a fault into the corpus, where every later run tries it first."""
    path = CORPUS / target.name / f"fault-{hashlib.sha256(data).hexdigest()[:16]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def search(target: Target, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Try inputs until the time is over; return executions and faults."""
    chance, corpus = random.Random(seed), corpus_of(target)  # noqa: S311  # not for secrets
    faults = [f"{target.name}: {fault}" for data in corpus if (fault := attempt(target, data))]
    count, end = len(corpus), time.monotonic() + seconds
    while time.monotonic() < end and not faults:
        data = mutate(chance, target, corpus)
        count += 1
        if fault := attempt(target, data):
            faults.append(f"{target.name}: {fault}; kept as {keep(target, data)}")
    return count, faults


def follow_coverage(target: Target, seconds: float, seed: int) -> int:
    """The same with atheris in this process, which it ends itself; inputs that reach new code go into the corpus."""
    import atheris

    atheris.instrument_all()

    def one(data: bytes) -> None:
        if fault := attempt(target, data):
            raise AssertionError(f"{fault}; kept as {keep(target, data)}")

    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={max(1, int(seconds))}",
        f"-seed={seed or 1}",
        "-max_len=65536",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder)], one)
    atheris.Fuzz()
    return 0


def main(arguments: list[str]) -> int:
    """0 no fault, 1 faults, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="for each target (default 10)")
    parser.add_argument("--target", choices=[target.name for target in TARGETS], help="only this one")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same inputs (default 0)")
    parser.add_argument("--coverage", action="store_true", help="use atheris; needs it installed")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, resource.RLIM_INFINITY))
    chosen = [target for target in TARGETS if options.target in (None, target.name)]
    if options.coverage:
        if importlib.util.find_spec("atheris") is None:
            print("atheris is not installed: pip install atheris", file=sys.stderr)
            return 2
        if len(chosen) == 1:
            return follow_coverage(chosen[0], options.seconds, options.seed)
        again = [sys.executable, "-m", "fuzz", "--coverage", f"--seconds={options.seconds}", f"--seed={options.seed}"]
        return max(subprocess.run([*again, f"--target={one.name}"], check=False).returncode != 0 for one in chosen)
    bad = 0
    for target in chosen:
        start = time.monotonic()
        count, faults = search(target, options.seconds, options.seed)
        print(
            f"{target.name}: {count} executions in {time.monotonic() - start:.1f} s, {len(faults)} faults", flush=True
        )
        for fault in faults:
            print(f"  {fault}")
        bad += len(faults)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"highest memory: {peak} MiB")
    return int(bool(bad) or peak > MEMORY >> 20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
