"""What may end a run before its time: a person, a dead process, a full disk. The first one wins."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

REASONS = (
    "OPERATOR", "RUNNER_DIED", "ENGINE_DIED", "ENGINE_NOT_READY", "GATEWAY_DIED", "PROXY_DIED", "DISK_FULL", "TIME_OUT",
    "AUDIT_FAILED",
)  # fmt: skip
SETTLE_SECONDS = 0.1
NEWS_SECONDS = 1.0

Result = TypeVar("Result")


class Aborted(Exception):
    """The run ends here with a reason code of docs/format.md, section 6, and a message for a person."""

    def __init__(self, reason: str, message: str) -> None:
        assert reason in REASONS
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Watch:
    """Waits for work and for whatever ends it early at the same time."""

    def __init__(self) -> None:
        self.fired: asyncio.Future[Aborted] = asyncio.get_running_loop().create_future()
        self.tasks: set[asyncio.Task[None]] = set()

    def fire(self, reason: str, message: str) -> None:
        """Ends the work in hand, unless something did already."""
        if not self.fired.done():
            self.fired.set_result(Aborted(reason, message))

    def on(self, event: Awaitable[Any], end: Callable[[], Aborted]) -> asyncio.Task[None]:
        """Fires with what `end` then says when `event` comes; cancel the task to stop expecting it."""

        async def wait() -> None:
            await event
            if not self.fired.done():
                self.fired.set_result(end())

        task = asyncio.get_running_loop().create_task(wait())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def guard(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`; or, as soon as something fires, `work` cancelled and ended and `Aborted` raised.

        Between the two lies a tenth of a second, in which an exchange that the same event has just broken can end
        by itself, so that its sample says what happened to it and not that it was cancelled.
        """
        task = asyncio.get_running_loop().create_task(work)
        try:
            either: set[asyncio.Future[Any]] = {task, self.fired}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self.fired.done():
                return task.result()
            if not task.done():
                await asyncio.wait({task}, timeout=SETTLE_SECONDS)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        raise self.fired.result()

    async def await_news(self) -> None:
        """Waits a moment for the news of a death."""
        await asyncio.wait({self.fired}, timeout=NEWS_SECONDS)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Within: SIGINT, SIGTERM and a closed terminal are the operator's word to stop, not the end of the process.

        One that the runner was started to ignore, as by nohup, stays ignored.
        """
        loop = asyncio.get_running_loop()
        caught = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                continue
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):  # only the main thread may
                name = signal.Signals(number).name
                loop.add_signal_handler(number, self.fire, "OPERATOR", f"stopped by {name}")
                caught.append(number)
        try:
            yield
        finally:
            for number in caught:
                loop.remove_signal_handler(number)
            for task in list(self.tasks):
                task.cancel()
