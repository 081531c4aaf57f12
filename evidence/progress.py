"""The one door to tqdm: a bar with phase, done, total and rate on a terminal, nothing at all in a pipe."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from logging import Logger

    from tqdm import tqdm


def _log() -> Logger | None:
    """The log, when somebody listens to it (`evidence -v`)."""
    if "logging" not in sys.modules:  # who listens has loaded it
        return None
    import logging

    log = logging.getLogger("evidence")
    return log if log.isEnabledFor(logging.INFO) else None


def _tell(text: str) -> None:
    log = _log()
    if log is not None:
        log.info("%s", text)


class Progress:
    """How far a piece of work of `total` steps has come; silent unless `stream` is a terminal and `quiet` is off.

    When log lines are asked for (`evidence -v`), each phase is one of them, and no bar is drawn through them.
    """

    def __init__(
        self, total: int, *, unit: str = "request", quiet: bool = False, stream: TextIO | None = None, title: str = ""
    ) -> None:
        target = sys.stderr if stream is None else stream
        self.title = title
        self.done = 0
        self.bar: tqdm[NoReturn] | None = None
        if quiet or not target.isatty() or _log() is not None:
            return
        from tqdm import tqdm

        self.bar = tqdm(
            total=total, unit=f" {unit}", desc=title or None, file=target, leave=True, dynamic_ncols=True, mininterval=0.1,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_fmt}]",
        )  # fmt: skip

    def phase(self, name: str) -> None:
        """Names what is being done now."""
        _tell(": ".join(word for word in (self.title, name) if word))
        if self.bar is not None:
            self.bar.set_description_str(name)

    def advance(self, steps: int = 1) -> None:
        """Counts finished steps."""
        self.done += steps
        if self.bar is not None:
            self.bar.update(steps)

    def say(self, text: str) -> None:
        """A line for a person above the bar; silent in a pipe, as the bar is."""
        _tell(text)
        if self.bar is not None:
            self.bar.write(text, file=self.bar.fp)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()
