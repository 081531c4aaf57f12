"""This project's reader as a command of the protocol: `python3 ours.py ARCHIVE`."""

import sys
from pathlib import Path

from evidence.errors import EvidenceError
from evidence.validate import validate

try:
    found = validate(Path(sys.argv[1]))
except EvidenceError as error:
    print(error.message, file=sys.stderr)
    sys.exit(2)
for finding in found.findings:
    print(finding)
sys.exit(found.exit_code)
