"""`python -m evidence` is the `evidence` command."""

import gc

gc.disable()  # what imports make stays, and to look through it again and again takes a third of their time

import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402

_DIRECT = ("validate", "verify")


def run() -> None:
    """Run the command. What is there before it and what is there at its end is not searched for garbage: forty milliseconds."""
    main = _main(sys.argv[1:])
    gc.freeze()
    gc.enable()
    while (lowest := os.open(os.devnull, os.O_RDWR)) < 3:  # a closed 0, 1 or 2 would be given to the next file opened
        os.set_inheritable(lowest, True)
    os.close(lowest)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # as Python leaves one that was closed when it began
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):  # a name or a title that the locale cannot spell is shown, and ends nothing
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        main()
    finally:
        gc.freeze()


def _main(words: list[str]) -> Callable[[], object]:
    """What these words ask for; to load the library that parses options takes longer than a command that has none needs."""
    # Help, completion, and what is wrong with a path are that library's to say.
    if (
        len(words) == 2
        and words[0] in _DIRECT
        and not words[1].startswith("-")
        and os.access(words[1], os.R_OK)
        and "_EVIDENCE_COMPLETE" not in os.environ
    ):
        from evidence import direct

        return lambda: direct.check(*words)
    from evidence.cli import main

    return lambda: main(words, prog_name="evidence")


if __name__ == "__main__":
    run()
