#!/usr/bin/env python3
"""Account for every offer of the comparisons that were not completed.

What you learn: each offer of an aborted comparison is there, with what became of it; the client's bytes and what had
come from upstream are kept apart under their own hashes; the counts add up; no setting was selected from them.
"""

import os
import sys

sys.dont_write_bytecode = True
HOME = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HOME] + [HOME]  # a json.py here is never imported
if sys.version_info < (3, 8) or not os.path.isdir(os.path.join(HOME, "checking")):  # no verdict, and no traceback
    needs = "verify-incomplete-results: needs Python 3.8 or newer (this is %d.%d) and the folder checking beside this file\n"
    sys.stderr.write(needs % sys.version_info[:2])
    sys.exit(2)

from checking.command import Verifier, main  # noqa: E402
from checking.limits import NOT_PROVED  # noqa: E402
from checking.rules import checksums, incomplete, structure, unfinished  # noqa: E402

VERIFIER = Verifier(
    name="verify-incomplete-results",
    learns=__doc__ or "",
    families=(
        incomplete.FAMILY,
        incomplete.INDEX_FAMILY,
        structure.family(structure.always(unfinished.INDEX)),
        checksums.LISTING,
        checksums.WHAT_WAS_READ,
    ),
    controls=incomplete.CONTROLS,
    not_proved=NOT_PROVED,
)

if __name__ == "__main__":
    sys.exit(main(VERIFIER, __file__))
