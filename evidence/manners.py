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
from evidence.verdict import refused
from evidence.visible import visible

EXIT_CODES: Mapping[int, str] = {
    0: "done; verified",
    1: "evidence rejected, something missing or refused",
    2: "wrong usage, or input that cannot be read",
    3: "a mutation control survived: the verifier is blind",
    4: "capture ended incomplete; its run folder says why",
    130: "interrupted",
    141: "nobody was left to read the output",
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
            click.echo(f" {visible(near(text))}", err=True)


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
        return visible(near(f"{record.relativeCreated / 1000:8.3f} s  {record.getMessage()}"))


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

    def invoke(self, context: click.Context) -> Any:
        """Runs it, and remembers whether a program reads the answer."""
        form = "json" if context.params.get("as_json") else context.params.get("form")
        context.find_root().meta["evidence.form"] = form
        return super().invoke(context)


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
            command = f"{context.command_path} {context.invoked_subcommand}"
            end(error, command, form=context.find_root().meta.get("evidence.form"))


def end(error: EvidenceError | OSError | KeyboardInterrupt, command: str, *, form: str | None = None) -> NoReturn:
    """Ends the process; the only place where an error becomes words and a code. `command` is whole: `evidence verify`.

    Who asked for JSON or annotations gets the error also as such, in place of an answer.
    """
    if isinstance(error, EvidenceError):
        hint = error.hint or f"see `{command} --help`"
        complain(error.message, hint)
        _finish(error.message, hint, error.code, form)
    if isinstance(error, BrokenPipeError):
        _drop_output()
        sys.exit(141)  # as a shell tells of one that SIGPIPE ended: the verdict is none of 0 and 1
    if isinstance(error, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    name, why = error.filename, error.strerror or str(error)
    if name is None and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT, errno.EBADF):
        complain(f"the output: cannot be written: {why}", "write it where there is room")
        with contextlib.suppress(OSError):  # what could not be written is not tried again at the end
            _drop_output()
        sys.exit(2)
    message, hint = f"{'input' if name is None else os.fsdecode(name)}: {why}", "check that it is there and may be used"
    complain(message, hint)
    _finish(message, hint, 2, form)


def _finish(message: str, hint: str, code: int, form: str | None) -> NoReturn:
    answer = refused(message, hint, code, form)
    if answer is not None:
        try:
            click.echo(answer)
        except OSError:
            _drop_output()
    sys.exit(code)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(sentence: str) -> str:
    """The library's sentence in the style of the others: lower case, no final stop."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")
