"""Where the real engines of `engines/prepare-llama.sh` are, for tests marked `engine`."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LLAMA_PYTHON = Path(os.environ.get("EVIDENCE_LLAMA_PYTHON", ROOT / ".engines/llama/bin/python"))
LLAMA_MODEL = Path(os.environ.get("EVIDENCE_LLAMA_MODEL", ROOT / ".engines/llama/smollm2.gguf"))

# Where CI demands the engine, its absence is a failure and not a reason to skip.
needs_llama = pytest.mark.skipif(
    not (LLAMA_PYTHON.exists() and LLAMA_MODEL.exists()) and not os.environ.get("EVIDENCE_REQUIRE_ENGINE"),
    reason="no llama.cpp here: engines/prepare-llama.sh prepares it where a package index can be reached",
)


@dataclass(frozen=True)
class Spec:
    """An [[engine]] table, as far as launching needs it."""

    adapter: str = "synthetic"
    id: str = "e"
    version: str = "1"
    program: tuple[str, ...] = ()
    model: str | None = None
    urls: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    ready_timeout_seconds: float = 30
    snapshot: str = "none"


def llama(*arguments: str) -> Spec:
    script = str(ROOT / "engines/serve_llama.py")
    return Spec(
        "llama.cpp", "llama", "declared", (str(LLAMA_PYTHON), script), str(LLAMA_MODEL), arguments=arguments,
        ready_timeout_seconds=60, snapshot="process-rss",
    )  # fmt: skip
