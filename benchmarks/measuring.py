"""What a command costs: wall and processor seconds and peak memory, its children included, the best of several runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# A process passes its own peak on to what it starts, so that a small one stands between the benchmark and the command.
_LAUNCHER = """
import json, os, subprocess, sys, time
started = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps([status, time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""
Cost = dict[str, float]


def measure(command: list[str], cwd: Path | None = None, environment: dict[str, str] | None = None) -> Cost:
    """What one run costs; modules are compiled, as those of an installed program are. Ends the benchmark when it fails."""
    environment = {**os.environ, **(environment or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER]
    ran = subprocess.run([*launcher, *command], cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE)
    status, wall, processor, peak = json.loads(ran.stdout)
    if status:
        raise SystemExit(f"{command} ended with {os.waitstatus_to_exitcode(status)}")
    return {"wallSeconds": round(wall, 3), "processorSeconds": round(processor, 3), "peakMegabytes": round(peak, 1)}


def measure_in_turn(
    commands: dict[str, tuple[list[str], Path | None]], repeats: int, **environment: str
) -> dict[str, Cost]:
    """The least time that each command (words, folder to run in) took in so many rounds, and the most memory.

    One after the other in turn, so that a busy machine or disk is busy for all of them; the first round only warms the caches.
    """
    rounds = [
        {name: measure(command, cwd, environment) for name, (command, cwd) in commands.items()}
        for _ in range(max(1, repeats) + 1)
    ]
    worst = {"peakMegabytes": max}
    return {
        name: {what: worst.get(what, min)(one[name][what] for one in rounds[1:]) for what in rounds[0][name]}
        for name in commands
    }
