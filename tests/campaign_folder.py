"""A small campaign folder for tests, written in full so that a test can alter one line of it."""

from __future__ import annotations

import json
from pathlib import Path

CAMPAIGN = """
schema_version = 1

[campaign]
name = "small"
title = "A small campaign"
status = "FINAL"
surfaces = ["native", "rr"]

[[profile]]
id = "tiny"
repository = "example/tiny"
revision = "0123456789abcdef0123456789abcdef01234567"
state = "accessible"
license = "Apache-2.0"
definition = "source-definitions/tiny.toml"
template = {source = "tokenizer_config.json"}
artifacts = [{path = "model.safetensors", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", bytes = 0}]

[[engine]]
id = "synthetic"
adapter = "synthetic"
version = "1"
snapshot = "synthetic"
arguments = []

[[case]]
id = "tiny-native"
profile = "tiny"
engine = "synthetic"
topology = "single"
surface = "native"

[[case]]
id = "tiny-rr"
profile = "tiny"
engine = "synthetic"
topology = "two-worker"
surface = "rr"

[[comparison]]
id = "tiny-memory"
case = "tiny-rr"
kind = "memory"
argument = "--memory-mib"
baseline = "1000"
candidate = "600"
body = "requests/main.json"
"""

MAIN = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Count to eight."}],
    "max_tokens": 16,
    "temperature": 0,
    "stream": True,
    "stream_options": {"include_usage": True},
}


def write_campaign(folder: Path, text: str = CAMPAIGN, main: dict[str, object] | None = None) -> Path:
    """Writes the campaign file and what it names; returns the path of the file."""
    (folder / "source-definitions").mkdir(parents=True, exist_ok=True)
    (folder / "requests").mkdir(exist_ok=True)
    (folder / "source-definitions/tiny.toml").write_text('repository = "example/tiny"\n')
    (folder / "requests/main.json").write_text(json.dumps(MAIN if main is None else main))
    path = folder / "campaign.toml"
    path.write_text(text)
    return path
