"""`python -m evidence` is the `evidence` command."""

import gc

gc.disable()  # what imports make stays, and to look through it again and again takes a third of their time

from evidence.cli import main  # noqa: E402


def run() -> None:
    """Run the command. What is there before it and what is there at its end is not searched for garbage: forty milliseconds."""
    gc.freeze()
    gc.enable()
    try:
        main(prog_name="evidence")
    finally:
        gc.freeze()


if __name__ == "__main__":
    run()
