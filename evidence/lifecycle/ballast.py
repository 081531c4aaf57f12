"""Device memory taken away on purpose: real memory of a GPU in a process of its own, or a share of a budget.

On a GPU the process calls the CUDA driver (libcuda through ctypes: cuMemAlloc, plain allocations), so that the memory
is gone for everybody and comes back whatever happens to the process. On a budget device the supervisor is told to
count so many bytes as taken. A record says which of the two it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.capture.processes import Process, own_module, start_process
from evidence.errors import EvidenceError

if TYPE_CHECKING:
    from evidence.lifecycle.target import SupervisorTarget

CHUNK = 1 << 30
CUDA, BUDGET = "cuMemAlloc", "supervisor-budget"


class Ballast:
    """Memory that is taken until `release`."""

    def __init__(self, method: str, process: Process | None, target: SupervisorTarget | None) -> None:
        self.method, self._process, self._target = method, process, target

    async def release(self) -> None:
        """Give it back. May be called again."""
        if self._process is not None:
            await self._process.stop(grace=5.0)
        if self._target is not None:
            target, self._target = self._target, None
            with contextlib.suppress(EvidenceError):
                await target.steer("/admin/ballast", bytes=0)


async def take_ballast(size: int, target: SupervisorTarget | None, index: int = 0) -> Ballast:
    """Take `size` bytes: off the budget of `target`, or of GPU `index` where there is no target.

    Raises EvidenceError (code 4) when they cannot be had.
    """
    if target is not None:
        status = await target.steer("/admin/ballast", bytes=size)
        if status != 200:
            raise EvidenceError(f"a ballast of {size} bytes: the supervisor answered {status}", code=4)
        return Ballast(BUDGET, None, target)
    command, environment = own_module("evidence.lifecycle.ballast")
    log = Path(tempfile.mkdtemp(prefix="ballast-")) / "ballast.log"
    # NVML numbers the GPUs by their bus, and so must CUDA, whatever CUDA_VISIBLE_DEVICES says to the harness
    environment = {**environment, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(index)}
    process = await start_process("ballast", [*command, str(size), "0"], log_path=log, environment=environment)
    try:
        await process.announcement(60.0)
    except BaseException:
        await process.stop(grace=1.0)
        raise
    return Ballast(CUDA, process, None)


def allocate(size: int, index: int) -> None:
    """Allocate `size` bytes on GPU `index` in chunks of at most 1 GiB. Raises EvidenceError naming the failed call."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise EvidenceError(
            f"libcuda.so.1 cannot be loaded: {error}", "a ballast of real memory needs an NVIDIA driver", code=4
        ) from None

    def call(name: str, *arguments: object) -> None:
        result = getattr(cuda, name)(*arguments)
        if result:
            raise EvidenceError(f"{name} gave error {result}", f"{size} bytes were wanted", code=4)

    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), index)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    left = size
    while left > 0:
        block, part = ctypes.c_uint64(), min(left, CHUNK)
        call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(part))
        left -= part


def main(arguments: list[str]) -> int:
    """`python -m evidence.lifecycle.ballast BYTES INDEX`: prints `ready`, holds the memory until it is ended."""
    try:
        allocate(int(arguments[0]), int(arguments[1]))
    except EvidenceError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.code
    print("ready ballast", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
