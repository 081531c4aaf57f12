"""Record what a real SIE answers, as tests/lifecycle/sie.json holds it.

usage: python -m tests.lifecycle.record_sie SIE_SERVER WEIGHTS_DIR OUT.json      (two minutes on two cores)

SIE_SERVER is the program `sie-server`, WEIGHTS_DIR the folder of MiniLM. Started with one pinned model, room for two
adapters a model, and a memory budget that two copies of MiniLM fill and three do not (SIE_FAKE_MEMORY_BUDGET: the
budget is a number, the decisions are SIE's own). Folders, runtime ids, and what an embedding holds beyond its fourth
value are taken out of what is kept.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from evidence.capture.processes import choose_port

ROOT = Path(__file__).parents[2]
MODELS = ("minilm-a", "minilm-b", "minilm-c", "minilm-lora")
ADAPTERS = {"a": 2, "b": 3, "c": 4}


class Recorder:
    """Exchanges with one server, kept in order."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.kept = url, folder, list[dict[str, Any]]()

    def clean(self, text: str) -> Any:
        text = text.replace(str(self.folder), "{folder}")
        text = re.sub(r'"runtime_instance_id":"[0-9a-f]{64}"', '"runtime_instance_id":null', text)
        try:
            value = json.loads(text)
        except ValueError:
            return text
        shorten(value)
        return value

    def ask(self, story: str, method: str, path: str, body: Any = None) -> int:
        data = None if body is None else json.dumps(body).encode()
        head = {"content-type": "application/json", "accept": "application/json"}
        request = urllib.request.Request(self.url + path, data, head, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            kept = {name: answer.headers[name] for name in ("content-type", "retry-after") if answer.headers[name]}
            row = {"story": story, "method": method, "path": path, "status": answer.status, "headers": kept}
            sent = {} if body is None else {"request": self.clean(json.dumps(body))}
            self.kept.append({**row, **sent, "response": self.clean(answer.read().decode())})
            return int(answer.status)

    def ask_until(self, story: str, path: str, body: Any) -> None:
        for _ in range(60):
            if self.ask(story, "POST", path, body) != 503:
                return
            time.sleep(1.0)


def shorten(value: Any) -> None:
    """Keep four values of every vector."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in ("values", "embedding") and isinstance(one, list):
                del one[4:]
            shorten(one)
    elif isinstance(value, list):
        for one in value:
            shorten(one)


def tell(recorder: Recorder, adapters: Path) -> None:
    """The story: listing, loads, eviction, failure, adapters."""
    embed = lambda model: {"model": model, "input": ["hello"]}  # noqa: E731
    recorder.ask("ready", "GET", "/readyz")
    recorder.ask("listing at first, minilm-a pinned", "GET", "/v1/models")
    recorder.ask_until("first request of the pinned model", "/v1/embeddings", embed("minilm-a"))
    recorder.ask_until("first request of a cold model", "/v1/embeddings", embed("minilm-b"))
    recorder.ask("two models resident", "GET", "/v1/models")
    for path in ("/v1/models/minilm-b/unload", "/v1/models/minilm-b"):
        recorder.ask("no way to unload", "DELETE" if path.endswith("b") else "POST", path)
    recorder.ask("no metrics on this port", "GET", "/metrics")
    recorder.ask_until("a third model, beyond the budget", "/v1/embeddings", embed("minilm-c"))
    recorder.ask("just after it", "GET", "/v1/models")
    time.sleep(3.0)
    recorder.ask("after the memory monitor", "GET", "/v1/models")
    recorder.ask("an unknown model", "POST", "/v1/embeddings", embed("minilm-z"))
    recorder.ask("chat to an embedding model", "POST", "/v1/chat/completions", {"model": "minilm-a", "messages": []})
    recorder.ask_until("a model whose weights are not there", "/v1/embeddings", embed("minilm-broken"))
    recorder.ask("it failed", "GET", "/v1/models/minilm-broken")
    encode = lambda name: {"items": [{"text": "hello"}], "params": {"options": {"lora_id": str(adapters / name)}}}  # noqa: E731
    recorder.ask("an adapter for a model that takes none", "POST", "/v1/encode/minilm-a", encode("a"))
    plain = {"items": [{"text": "hello"}]}
    recorder.ask_until("base", "/v1/encode/minilm-lora", plain)
    for name in ("a", "b", "c", "a"):
        recorder.ask_until(f"adapter {name}", "/v1/encode/minilm-lora", encode(name))
    recorder.ask_until("base again", "/v1/encode/minilm-lora", plain)
    for _ in range(3):
        recorder.ask("an adapter that is nowhere", "POST", "/v1/encode/minilm-lora", encode("nowhere"))
        time.sleep(1.0)
    recorder.ask("the listing names no adapter", "GET", "/v1/models/minilm-lora")


def main() -> None:
    program, weights, out = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nothing").mkdir()
        make = [sys.executable, str(ROOT / "engines" / "sie_models.py"), str(folder / "models")]
        subprocess.run([*make, str(weights), *MODELS], check=True)
        subprocess.run([*make, str(folder / "nothing"), "minilm-broken"], check=True)
        seeds = [f"{alias}={seed}" for alias, seed in ADAPTERS.items()]
        lora = [sys.executable, str(ROOT / "engines" / "make_lora.py"), str(folder / "lora"), *seeds]
        subprocess.run([*lora, "--model", "minilm"], check=True, stdout=subprocess.DEVNULL)
        settings = {
            "SIE_PINNED_MODELS": "minilm-a",
            "SIE_FAKE_MEMORY_BUDGET": "250MiB",
            "SIE_MAX_LORAS_PER_MODEL": "2",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
        }
        port = choose_port()
        where = ["--device", "cpu", "--host", "127.0.0.1", "--port", str(port), "--models-dir", str(folder / "models")]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [program, "serve", *where, "--no-hf-fallback"],
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(240):
                try:
                    urllib.request.urlopen(url + "/readyz", timeout=2).close()
                    break
                except OSError:
                    time.sleep(0.5)
            recorder = Recorder(url, folder)
            tell(recorder, folder / "lora")
            words = re.findall(r"(?m)^.*(?:evicting|Loading LoRA|LoRA '\S+' loaded).*$", (folder / "log").read_text())
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)
        value = {
            "engine": "sie-server 0.10.1",
            "exchanges": recorder.kept,
            "log": [recorder.clean(re.sub(r"^\S+ ", "", line)) for line in words],
        }
        out.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
