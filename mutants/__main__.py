"""`python -m mutants [--sample N]`: tries a sample of mutants and tells which ones no test sees.

Exits 0 when at least 97 % are killed and every survivor is listed in survivors.toml with its reason.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
        print("cosmic-ray is not installed: pip install -e '.[mutants]'", file=sys.stderr)
        return 2
    from mutants.sampling import SEED, draw
    from mutants.targets import TARGETS, Target
    from mutants.trial import try_all

    targets = tuple(one for one in TARGETS if (options.only or "") in one.path)
    sample = draw(ROOT, options.sample, SEED if options.seed is None else options.seed, targets)
    if options.list:
        for mutant, _, _ in sample:
            print(mutant)
        return 0
    known, begun = reasons(), time.monotonic()
    killed, lived, unexplained = 0, 0, 0
    every = tuple(dict.fromkeys(test for one in targets for test in one.tests))
    unaltered: tuple[None, Target, None] = (None, Target("", every), None)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for outcome in try_all(ROOT, Path(folder), itertools.chain([unaltered], sample), options.jobs, options.limit):
            if outcome.mutant is None:
                print(f"{outcome.verdict} {outcome.seconds:.1f} s unaltered: {outcome.said}", flush=True)
                if outcome.verdict != "survived":
                    print("the tests do not pass on the unaltered tree: no score", file=sys.stderr)
                    return 1
                continue
            why = known.get(outcome.mutant.key())
            killed += outcome.verdict != "survived"
            lived += outcome.verdict == "survived"
            unexplained += outcome.verdict == "survived" and why is None
            told = "" if outcome.verdict != "survived" else f": {why or 'NOT EXPLAINED'}"
            print(f"{outcome.verdict} {outcome.seconds:.1f} s {outcome.mutant}{told}", flush=True)
    total = killed + lived
    print(
        f"{total} mutants, {killed} killed ({killed / max(total, 1):.1%}), {lived} survived, "
        f"{unexplained} of them not in survivors.toml, {time.monotonic() - begun:.0f} s"
    )
    return int(total == 0 or killed < LEAST * total or unexplained > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
