"""NVML answers, recorded on a real GPU and given again: the double of the module `pynvml`."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

CALLS = [
    "nvmlInit",
    "nvmlShutdown",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceIsMigDeviceHandle",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
]
FIELDS = ("pid", "usedGpuMemory", "total", "free", "used")


class NVMLError(Exception):
    """What pynvml raises; the text is the driver's."""


def describe(value: Any) -> Any:
    """An answer as JSON: structures by their fields, handles as None."""
    if isinstance(value, list):
        return [describe(part) for part in value]
    if value is None or isinstance(value, (int, str)):
        return value
    if hasattr(value, "value"):  # a plain number in a ctypes box
        return value.value
    known = {name: getattr(value, name) for name in FIELDS if hasattr(value, name)}
    return known or None


class Recorder:
    """Passes calls on to the real module and keeps (name, answer or error) of each."""

    def __init__(self, module: Any) -> None:
        self.module, self.calls = module, []
        self.NVMLError = module.NVMLError

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(self.module, name)

        def call(*arguments: Any) -> Any:
            try:
                answer = real(*arguments)
            except self.module.NVMLError as problem:
                self.calls.append({"call": name, "error": str(problem)})
                raise
            self.calls.append({"call": name, "answer": describe(answer)})
            return answer

        return call


class Replay:
    """Gives recorded answers again, in their order; `pids` renames process ids."""

    NVMLError = NVMLError

    def __init__(self, calls: list[dict[str, Any]], pids: dict[int, int] | None = None) -> None:
        self.calls, self.pids = list(calls), pids or {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            entry = self.calls.pop(0)
            assert entry["call"] == name, f"recorded {entry['call']}, asked for {name}"
            if "error" in entry:
                raise NVMLError(entry["error"])
            return self.revive(entry["answer"])

        return call

    def revive(self, answer: Any) -> Any:
        if isinstance(answer, list):
            return [self.revive(part) for part in answer]
        if isinstance(answer, dict):
            return SimpleNamespace(
                **{**answer, **({"pid": self.pids.get(answer["pid"], answer["pid"])} if "pid" in answer else {})}
            )
        return answer
