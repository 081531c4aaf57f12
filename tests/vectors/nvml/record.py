"""Records NVML's answers on a machine with a GPU: `python tests/vectors/nvml/record.py FILE.json`. Needs torch.

A child holds 1 GiB of the first GPU meanwhile; the file keeps its process id beside the answers, and the snapshot that
was made of them.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/capture")]

import pynvml  # noqa: E402
from nvml_replay import Recorder  # noqa: E402

from evidence.capture.gpu import read_nvml, take_snapshot  # noqa: E402

HOLD = "import torch, time; x = torch.zeros(1 << 30, dtype=torch.uint8, device='cuda:0'); print('held', flush=True); time.sleep(600)"


def main() -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    try:
        if child.stdout.readline().strip() != b"held":
            raise SystemExit("the child could not hold memory of the GPU")
        recorder = Recorder(pynvml)
        engine = SimpleNamespace(worker="worker-1", device="0", url="", pid=child.pid)
        snapshot = asyncio.run(take_snapshot("nvml", [engine], read_gpus=lambda indices: read_nvml(indices, recorder)))
        pynvml.nvmlInit()
        name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
        facts = {"device": name, "driver": pynvml.nvmlSystemGetDriverVersion(), "childPid": child.pid}
    finally:
        child.kill()
    value = {**facts, "calls": recorder.calls, "snapshot": snapshot}
    Path(sys.argv[1]).write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
    print(json.dumps(value, indent=1))


if __name__ == "__main__":
    main()
