"""Runs the suite against any reader: `python3 run.py [--codes] COMMAND ...`.

The protocol:

1. COMMAND is run with one more argument, the path of an archive `demo-evaluation.tgz`.
2. Beside it lie `demo-evaluation.tgz.sha256` and `demo-evaluation.tar.sha256`.
3. Exit 0 means accepted, exit 1 refused; anything else, a signal or ten seconds is a failure.
4. Standard output holds the codes of the refusal, one at the start of each line; other output is ignored.
5. Without `--codes` only acceptance counts: every case that says `accepted` and no other.
6. With `--codes` the printed codes must be those of the case, no more and no fewer.
7. The command must write nothing beside the archive and follow nothing in it.
8. `case: ok` or `case: found ..., expected ...` is printed for each, then a count.
9. The exit code is 0 when every case is ok, else 1.
10. `python3 make.py FOLDER` writes the archives to look at them.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import make


def run(command: list[str], path: Path) -> tuple[str, frozenset[str]]:
    """Return `accepted`, `refused` or what went wrong, and the printed codes."""
    try:
        ran = subprocess.run([*command, str(path)], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return "no answer in ten seconds", frozenset()
    lines = ran.stdout.decode(errors="replace").splitlines()
    codes = frozenset(line.split()[0] for line in lines if line[:1].isalpha())
    return {0: "accepted", 1: "refused"}.get(ran.returncode, f"exit {ran.returncode}"), codes


def main(arguments: list[str]) -> int:
    with_codes = arguments[:1] == ["--codes"]
    command = arguments[with_codes:]
    if not command:
        print("usage: python3 run.py [--codes] COMMAND ...", file=sys.stderr)
        return 2
    good = 0
    cases = make.read_cases()
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = case.build().write(Path(folder) / case.name)
            before = sorted(path.parent.iterdir())
            verdict, codes = run(command, path)
            expected = "refused" if case.say else "accepted"
            if sorted(path.parent.iterdir()) != before:
                verdict += " and wrote beside the archive"
        ok = verdict == expected and (not with_codes or codes == case.say)
        good += ok
        said = f"found {verdict} {' '.join(sorted(codes))}, expected {expected} {' '.join(sorted(case.say))}"
        print(f"{case.name}: {'ok' if ok else said}")
    print(f"{good} of {len(cases)}")
    return int(good != len(cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
