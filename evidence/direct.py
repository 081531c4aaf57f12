"""`evidence validate PATH` and `evidence verify PATH`: the same answers without the library that parses options.

To load it takes a fifth of the time in which ten thousand files are read and judged. `evidence.__main__` chooses this way
for a command line that has no options; an error, or a text that is not plain, is left to the others' manners.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from evidence import validate
from evidence.errors import EvidenceError


def check(command: str, path: str) -> NoReturn:
    """Check the package as `command` (`validate` or `verify`) does, print the verdict, and end with its exit code."""
    try:
        checks = validate.validate if command == "validate" else validate.verify
        validation = checks(Path(path), quiet=False)
        _print(validation.render("text"))
    except (EvidenceError, OSError, KeyboardInterrupt) as error:
        from evidence.manners import end

        end(error, f"evidence {command}")
    sys.exit(validation.exit_code)


def _print(text: str) -> None:
    if text.isascii() and text.replace("\n", "").isprintable():
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    else:
        import click

        click.echo(text)
