"""`python -m evidence.supervisor CONFIG.toml [--logs DIR]`: what `evidence serve` runs."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from evidence.errors import EvidenceError
from evidence.supervisor.config import read_config
from evidence.supervisor.server import serve


def main(arguments: list[str] | None = None) -> int:
    """Run a supervisor; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evidence.supervisor", description=__doc__)
    parser.add_argument("config", type=Path, metavar="CONFIG.toml")
    parser.add_argument("--logs", type=Path, help="folder of the engines' output (default: a temporary one)")
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.config)
        with tempfile.TemporaryDirectory(prefix="supervisor-") as scratch:
            asyncio.run(serve(config, options.logs or Path(scratch)))
    except EvidenceError as error:
        print(f"error: {error.message}", *([f"hint: {error.hint}"] if error.hint else []), sep="\n", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
