#!/usr/bin/env python3
"""Judge lifecycle records: co-residency under pressure, a crash beside a healthy engine, run-time LoRA adapters.

What you learn: every figure that follows from others was worked out again (used bytes, GiB, reservation sums, counts,
phases, order and times of events, cooldown, recovery, capacities, pins, evictions, effects against drift); each other
one is listed as bounded, required by the claim, or only declared. PACKAGE may also be one record file; then
--evidence DIR holds hashes and measurements against the raw events that the record retains.
"""

import os
import sys

sys.dont_write_bytecode = True
HOME = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HOME] + [HOME]  # a json.py here is never imported
if sys.version_info < (3, 8) or not os.path.isdir(os.path.join(HOME, "checking")):  # no verdict, and no traceback
    needs = "verify-lifecycle: needs Python 3.8 or newer (this is %d.%d) and the folder checking beside this file\n"
    sys.stderr.write(needs % sys.version_info[:2])
    sys.exit(2)

from checking.command import Verifier  # noqa: E402
from checking.limits import NOT_PROVED  # noqa: E402
from checking.rules import checksums, lifecycle, lifecycle_index  # noqa: E402
from checking.rules.lifecycle_command import CONTROLS, main  # noqa: E402

VERIFIER = Verifier(
    name="verify-lifecycle",
    learns=__doc__ or "",
    families=(lifecycle.FAMILY, lifecycle_index.FAMILY, checksums.LISTING, checksums.WHAT_WAS_READ),
    controls=CONTROLS,
    not_proved=NOT_PROVED,
)

if __name__ == "__main__":
    sys.exit(main(VERIFIER, __file__))
