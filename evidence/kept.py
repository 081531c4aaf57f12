"""The pre-commit hook: `python -m evidence.kept FILE...` validates each archive that the changed files belong to.

A file belongs to `X-evaluation.tgz` when it is that archive, one of its digests, or lies in the folder `X` beside it.
Exit codes are those of `evidence validate`; of several archives the gravest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from evidence.errors import EvidenceError
from evidence.manners import complain
from evidence.validate import validate

ENDINGS = ("-evaluation.tgz", "-evaluation.tgz.sha256", "-evaluation.tar.sha256")


def archives(changed: Sequence[Path]) -> list[Path]:
    """The archives that the files belong to, each once, in order; one that was taken away is not among them."""
    found = set()
    for path in changed:
        names = [path.name[: -len(ending)] for ending in ENDINGS if path.name.endswith(ending)]
        found |= {path.with_name(f"{name}-evaluation.tgz") for name in names}
        found |= {folder.with_name(f"{folder.name}-evaluation.tgz") for folder in path.parents if folder.name}
    return sorted(path for path in found if path.is_file())


def main(arguments: Sequence[str]) -> int:
    """Prints what each validation says, and returns the exit code."""
    worst = 0
    for archive in archives([Path(name) for name in arguments]):
        retained = archive.with_name(archive.name.removesuffix("-evaluation.tgz"))
        try:
            validation = validate(archive, source_root=retained, verify_results=True)
        except EvidenceError as error:
            complain(error.message, error.hint)
            worst = max(worst, error.code)
            continue
        print(validation.render("text"))
        worst = max(worst, validation.exit_code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
