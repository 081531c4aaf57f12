"""`python -m evidence` is the `evidence` command."""

import gc
import os
import sys

gc.disable()  # what imports make stays, and to look through it again and again takes a third of their time

from evidence.cli import main  # noqa: E402


def run() -> None:
    """Run the command. What is there before it and what is there at its end is not searched for garbage: forty milliseconds."""
    gc.freeze()
    gc.enable()
    while (lowest := os.open(os.devnull, os.O_RDWR)) < 3:  # a closed 0, 1 or 2 would be given to the next file opened
        os.set_inheritable(lowest, True)
    os.close(lowest)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # as Python leaves one that was closed when it began
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    try:
        main(prog_name="evidence")
    finally:
        gc.freeze()


if __name__ == "__main__":
    run()
