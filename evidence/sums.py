"""`python -m evidence.sums [--check]`: writes or checks the top-level `SHA256SUMS` of a checkout.

It pins every file under archive/, schemas/ and verifiers/, in the form that `sha256sum -c` reads.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from evidence.shipped import IGNORED

PINNED = ("archive", "schemas", "verifiers")


def render(root: Path) -> str:
    """The text of `SHA256SUMS` for the checkout at `root`, sorted by path as bytes."""
    paths = [
        path.relative_to(root).as_posix()
        for room in PINNED
        for path in (root / room).rglob("*")
        if path.is_file() and not IGNORED.intersection(path.parts)
    ]
    lines = []
    for name in sorted(paths, key=str.encode):
        lines.append(f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n")
    return "".join(lines)


def main(arguments: list[str]) -> int:
    """0 written or equal, 1 different, 2 wrong usage."""
    root = Path(__file__).resolve().parent.parent
    target = root / "SHA256SUMS"
    text = render(root)
    if arguments == ["--check"]:
        old = target.read_text(encoding="ascii").splitlines() if target.is_file() else []
        for line in sorted(set(old) ^ set(text.splitlines()), key=lambda row: row[66:]):
            print(f"{'stale' if line in old else 'unpinned'}: {line[66:]}", file=sys.stderr)
        return int(old != text.splitlines())
    if arguments:
        print("usage: python -m evidence.sums [--check]", file=sys.stderr)
        return 2
    target.write_text(text, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
