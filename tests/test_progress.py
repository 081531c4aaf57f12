"""A bar on a terminal, and not a byte in a pipe."""

from __future__ import annotations

import io

from evidence.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_phase_done_total_and_rate() -> None:
    stream = Terminal()
    with Progress(252, stream=stream, title="demo") as progress:
        progress.phase("r1-a main")
        progress.advance(8)
        progress.bar.refresh()
    shown = stream.getvalue()
    assert "r1-a main" in shown
    assert "8/252 request" in shown
    assert "request/s" in shown or "s/ request" in shown


def test_a_pipe_gets_nothing() -> None:
    stream = io.StringIO()
    with Progress(2, stream=stream) as progress:
        progress.phase("r1-a main")
        progress.advance()
        progress.say("a line")
    assert (stream.getvalue(), progress.done) == ("", 1)


def test_quiet_is_quiet_on_a_terminal() -> None:
    stream = Terminal()
    with Progress(2, stream=stream, quiet=True) as progress:
        progress.advance()
    assert stream.getvalue() == ""
