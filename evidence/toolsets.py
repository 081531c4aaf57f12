"""The tool sets that this project has published: verifiers, proxy and schemas of earlier releases, by one digest each.

An archive is never changed once it is published, the verifiers here go on changing. So an archive's tools are genuine
when they are the shipped ones or one of these sets; whichever they are, only the shipped ones are ever run.
`python -m evidence.toolsets` adds the set that is shipped now.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from evidence import __version__, shipped

LIST = Path(__file__).with_name("toolsets.txt")


def digest(tools: Mapping[str, str]) -> str:
    """SHA-256 of the tools' checksum lines (`<digest>  <name>`), sorted by name as bytes."""
    lines = [f"{tools[name]}  {name}\n" for name in sorted(tools, key=str.encode)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def current() -> dict[str, str]:
    """Name in a package -> SHA-256, of everything that this project ships into every package now."""
    return {
        name if name.startswith("schemas/") else name.partition("/")[2]: hashlib.sha256(content).hexdigest()
        for name, content in shipped.files().items()
    }


@functools.cache
def published() -> dict[str, str]:
    """Digest of a published set -> the version that published it."""
    rows = LIST.read_text(encoding="ascii").splitlines() if LIST.is_file() else []
    return {row.split("  ")[0]: row.split("  ")[1] for row in rows}


def main() -> int:
    """Append the current set unless it is there."""
    mine = digest(current())
    if mine not in published():
        with LIST.open("a", encoding="ascii") as file:
            file.write(f"{mine}  {__version__}\n")
    print(mine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
