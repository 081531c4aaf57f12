#!/usr/bin/env python3
"""Judge the setting comparisons of an evidence package from its samples and stored bytes.

What you learn: every file is the one that SHA256SUMS names; every comparison has its 144 main and 108 warm
samples in the right order; every body, receipt, classification, token count, percentile, gate and decision
follows from the recorded bytes and times, worked out here again and compared; nothing else lies in the package.
"""

import os
import sys

sys.dont_write_bytecode = True
HOME = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HOME] + [HOME]  # a json.py here is never imported
if sys.version_info < (3, 8) or not os.path.isdir(os.path.join(HOME, "checking")):  # no verdict, and no traceback
    needs = "verify-results: needs Python 3.8 or newer (this is %d.%d) and the folder checking beside this file\n"
    sys.stderr.write(needs % sys.version_info[:2])
    sys.exit(2)

from checking.command import Verifier, main  # noqa: E402
from checking.limits import NOT_PROVED  # noqa: E402
from checking.rules import checksums, manifest, settings, settings_index, structure, tree, verdict  # noqa: E402

VERIFIER = Verifier(
    name="verify-results",
    learns=__doc__ or "",
    families=(
        verdict.SUCCESSES,
        settings.FAMILY,
        settings_index.FAMILY,
        manifest.FAMILY,
        tree.FAMILY,
        structure.family(structure.always(settings_index.TABLE.name), settings.SHAPE_LIES),
        checksums.LISTING,
        checksums.EVERYTHING,
    ),
    controls=settings.CONTROLS,
    not_proved=NOT_PROVED,
)

if __name__ == "__main__":
    sys.exit(main(VERIFIER, __file__))
