#!/usr/bin/env python3
"""Judge the functional attempts of an evidence package, and everything that leans on them.

What you learn: every answer classifies as told from its raw bytes; every receipt has its sample; every outcome,
exact engagement and routing scope follows; the runtime matrix is decided by the latest attempts; identities,
weights, registries, recipes, settings files and rules agree with one another.
"""

import os
import sys

sys.dont_write_bytecode = True
HOME = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HOME] + [HOME]  # a json.py here is never imported
if sys.version_info < (3, 8) or not os.path.isdir(os.path.join(HOME, "checking")):  # no verdict, and no traceback
    needs = "verify-converged: needs Python 3.8 or newer (this is %d.%d) and the folder checking beside this file\n"
    sys.stderr.write(needs % sys.version_info[:2])
    sys.exit(2)

from checking.command import Verifier, main  # noqa: E402
from checking.limits import NOT_PROVED  # noqa: E402
from checking.rules import attempt_agreement, attempts, checksums, identities, matrix, prefill_decode, structure  # noqa: E402

VERIFIER = Verifier(
    name="verify-converged",
    learns=__doc__ or "",
    families=(
        attempt_agreement.FAMILY,
        attempts.INDEX_FAMILY,
        matrix.FAMILY,
        identities.FAMILY,
        prefill_decode.FAMILY,
        structure.family(structure.always("runtime-matrix.json")),
        checksums.LISTING,
        checksums.WHAT_WAS_READ,
    ),
    controls=attempts.CONTROLS,
    not_proved=NOT_PROVED,
    remarks=(prefill_decode.REMARK,),
)

if __name__ == "__main__":
    sys.exit(main(VERIFIER, __file__))
