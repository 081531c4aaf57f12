"""`python -m mutants [--sample N]`: tries a sample of mutants and tells which ones no test sees.

Exits 0 when at least 97 % are killed and every survivor is listed in survivors.toml with its reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from mutants.targets import TARGETS, Target
from mutants.trial import Copies

ROOT = Path(__file__).resolve().parents[1]
SURVIVORS = Path(__file__).with_name("survivors.toml")
SAMPLE = 240
LEAST = 0.97
LIMIT = 40.0


def reasons() -> dict[tuple[str, str, str, str], str]:
    """What survivors.toml says: the key of a mutant -> why it may live."""
    rows = tomllib.loads(SURVIVORS.read_text()).get("survivor", [])
    return {(row["path"], row["function"], row["before"], row["after"]): row["reason"] for row in rows}


def main(arguments: list[str]) -> int:
    """0 the tests are awake, 1 they are not, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"how many mutants (default {SAMPLE})")
    parser.add_argument("--seed", type=int, help="another draw than the fixed one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="copies tried at once")
    parser.add_argument("--only", help="only modules whose path holds this")
    parser.add_argument("--list", action="store_true", help="print the sample and try nothing")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="processor seconds for one mutant; over it, it counts as killed"
    )
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("cosmic_ray") is None:
        print("cosmic-ray is not installed: pip install -e '.[dev]'", file=sys.stderr)
        return 2
    from mutants.sampling import SEED, draw

    targets = tuple(one for one in TARGETS if (options.only or "") in one.path)
    sample = draw(ROOT, options.sample, SEED if options.seed is None else options.seed, targets)
    if options.list:
        for mutant, _, _ in sample:
            print(mutant)
        return 0
    known, begun = reasons(), time.monotonic()
    tally: Counter[str] = Counter()
    killers: dict[str, None] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = Copies(ROOT, Path(folder), options.jobs)
        for outcome in copies.try_all(sample, options.limit):
            why = known.get(outcome.mutant.key()) if outcome.mutant else None
            tally[outcome.verdict] += 1
            tally["unexplained"] += outcome.verdict == "survived" and why is None
            killers.update(dict.fromkeys(outcome.tests))
            told = {"survived": f": {why or 'NOT EXPLAINED'}", "timed out": f": {outcome.said}"}.get(
                outcome.verdict, ""
            )
            print(f"{outcome.verdict} {outcome.seconds:.1f} s {outcome.mutant}{told}", flush=True)
        awake = not killers or _pass_unaltered(copies, tuple(killers), options.limit)
    killed = tally["killed"] + tally["timed out"]
    total = killed + tally["survived"]
    print(
        f"{total} mutants, {killed} killed ({killed / max(total, 1):.1%}), {tally['timed out']} of them by time, "
        f"{tally['survived']} survived, {tally['unexplained']} of them not in survivors.toml, {time.monotonic() - begun:.0f} s"
    )
    if not awake:
        print("the tests that saw mutants fail on the unaltered tree too: no score", file=sys.stderr)
    return int(not awake or killed < LEAST * total or total == 0 or tally["unexplained"] > 0)


def _pass_unaltered(copies: Copies, tests: tuple[str, ...], limit: float) -> bool:
    """Whether the tests that saw a mutant pass where nothing is altered: else they saw something else."""
    # every mutant's tests in one go: the time of them all
    (outcome,) = copies.try_all([(None, Target("", tests), None)], limit * (2 + len(tests)))
    print(f"{outcome.verdict} {outcome.seconds:.1f} s unaltered: {outcome.said}", flush=True)
    return outcome.verdict == "survived"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
