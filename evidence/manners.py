"""How every command behaves: help with examples and exit codes, `error:` then `hint:`, colours, and how much it tells.

A `Command` has `-q` and `-v` by itself. Progress and log lines go to standard error, and what a command is asked for
goes to standard output, so that a pipe gets the answer alone.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from evidence.errors import EvidenceError

EXIT_CODES: Mapping[int, str] = {
    0: "done; verified",
    1: "evidence rejected, something missing or refused",
    2: "wrong usage, or input that cannot be read",
    3: "a mutation control survived: the verifier is blind",
    4: "capture ended incomplete; its run folder says why",
    130: "interrupted",
}
EXITS = "\b\nExit codes:\n" + "\n".join(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items())


def near(message: str) -> str:
    """The message with paths under the current folder written as a person there would type them."""
    try:
        here = str(Path.cwd())
    except OSError:  # the folder was taken away meanwhile
        return message
    return re.sub(rf"(?<![\w./-]){re.escape(here)}/(?=[^\s/])", "", message) if len(here) > 1 else message


def complain(message: str, hint: str) -> None:
    """Says on standard error what was wrong and what to do; in colours on a terminal, unless NO_COLOR is set."""
    color = False if os.environ.get("NO_COLOR") else None
    with contextlib.suppress(OSError):  # where nobody can be told, the exit code still says it
        _complain(message, hint, color)


def _complain(message: str, hint: str, color: bool | None) -> None:
    for word, colour, text in (("error:", "red", message), ("hint:", "cyan", hint)):
        if text:
            click.secho(word, fg=colour, err=True, nl=False, color=color)
            click.echo(f" {near(text)}", err=True)


def example(*lines: str) -> Callable[[Any], Any]:
    """Adds examples to a command's help."""

    def decorate(function: Any) -> Any:
        text = "\n".join(f"  {line}" for line in lines)
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n\b\nExample:\n{text}"
        return function

    return decorate


def is_quiet() -> bool:
    """Whether the running command was told to show no progress."""
    return bool(click.get_current_context().find_root().meta.get("evidence.quiet"))


def _hush(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta["evidence.quiet"] = True


def _tell(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Lets the stages of the work be written to standard error, one line each, with the seconds since the start."""
    log = logging.getLogger("evidence")
    if value and not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Since())
        log.addHandler(handler)
        log.setLevel(logging.INFO)

        def forget() -> None:
            log.removeHandler(handler)
            log.setLevel(logging.NOTSET)

        context.find_root().call_on_close(forget)


class _Since(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return near(f"{record.relativeCreated / 1000:8.3f} s  {record.getMessage()}")


class Command(click.Command):
    """A command with `-q`, `-v` and the exit codes in its help."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.epilog = EXITS
        self.params += [
            click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, callback=_hush, help="No progress."),
            click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=_tell,
                         help="Say on standard error what is being done, and when."),
        ]  # fmt: skip


class Group(click.Group):
    """Ends every failure with `error:`, `hint:` and an exit code, and never with a traceback."""

    command_class = Command
    group_class = type

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command line and ends the process with its exit code."""
        try:
            ended = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "evidence"
            complain(_plain(error.format_message()), f"see `{path} --help`")
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(130)
        except OSError as error:  # of --help and --version; what a command meets ends in `invoke`
            end(error, "evidence")
        sys.exit(ended if isinstance(ended, int) else 0)

    def invoke(self, context: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(context)
        except (EvidenceError, OSError, KeyboardInterrupt) as error:
            end(error, f"{context.command_path} {context.invoked_subcommand}")


def end(error: EvidenceError | OSError | KeyboardInterrupt, command: str) -> NoReturn:
    """Ends the process; the only place where an error becomes words and a code. `command` is whole: `evidence verify`."""
    if isinstance(error, EvidenceError):
        complain(error.message, error.hint or f"see `{command} --help`")
        sys.exit(error.code)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    if isinstance(error, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    name, why = error.filename, error.strerror or str(error)
    if name is None and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT, errno.EBADF):
        complain(f"the output: cannot be written: {why}", "write it where there is room")
        with contextlib.suppress(OSError):  # what could not be written is not tried again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        complain(f"{'input' if name is None else os.fsdecode(name)}: {why}", "check that it is there and may be used")
    sys.exit(2)


def _plain(sentence: str) -> str:
    """The library's sentence in the style of the others: lower case, no final stop."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")
