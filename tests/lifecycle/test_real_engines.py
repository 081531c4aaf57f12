"""The lifecycle campaigns on real engines of a CPU machine: each run is complete, and its record stands up to the judge.

llama.cpp as engines/prepare-llama.sh makes it; SIE where EVIDENCE_SIE_SERVER names `sie-server` and EVIDENCE_MINILM the
folder of MiniLM's weights.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evidence.lifecycle.bundle import summarize
from evidence.lifecycle.run import run_section
from tests.capture.real_engines import LLAMA_MODEL, LLAMA_PYTHON, ROOT, needs_llama

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]
CAMPAIGNS = ROOT / "campaigns/lifecycle"
SIE, MINILM = os.environ.get("EVIDENCE_SIE_SERVER"), os.environ.get("EVIDENCE_MINILM")
needs_sie = pytest.mark.skipif(not (SIE and MINILM), reason="EVIDENCE_SIE_SERVER and EVIDENCE_MINILM name no SIE")


@pytest.fixture
def llama(monkeypatch):
    """The variables that the campaigns read."""
    monkeypatch.setenv("LLAMA_PYTHON", str(LLAMA_PYTHON))
    monkeypatch.setenv("LLAMA_SERVE", str(ROOT / "engines/serve_llama.py"))
    monkeypatch.setenv("LLAMA_MODEL", str(LLAMA_MODEL))


def make_lora(folder, model, form):
    words = ["a=2", "b=3", "c=4", "--model", model, "--form", form]
    subprocess.run([sys.executable, ROOT / "engines/make_lora.py", folder, *words], check=True, capture_output=True)


def carry_out(name, identifier, folder):
    """The record of one section of a campaign, verified with its raw events."""
    sections = tomllib.loads((CAMPAIGNS / name).read_text())["lifecycle"]
    section = next(dict(one) for one in sections if one["id"] == identifier)
    protocol = section.pop("protocol")
    section.pop("id")
    outcome = run_section(identifier, protocol, section, CAMPAIGNS, folder / "runs")
    assert outcome.complete, (outcome.message, outcome.faults)
    path = summarize([outcome.run], folder / "record")
    command = [sys.executable, "-I", "-B", "-S", ROOT / "verifiers/verify-lifecycle.py", path]
    ran = subprocess.run(
        [*map(str, command), "--evidence", str(path.parent / "evidence"), "--mutation-control"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text = path.read_text() + (path.parent / "evidence" / identifier / "raw_events.jsonl").read_text()
    assert str(folder) not in text
    assert str(Path.home()) not in text
    return json.loads(path.read_text())["experiments"][0]


@needs_llama
def test_llama_selects_adapters_by_request(llama, monkeypatch, tmp_path):
    make_lora(tmp_path / "lora", "smollm2", "gguf")
    monkeypatch.setenv("LORA_DIR", str(tmp_path / "lora"))
    one = carry_out("lora-llama-cpu.toml", "cpu-llama-lora", tmp_path)
    assert one["protocol"]["adapter_residency"] == "fixed"
    assert one["measurements"]["undeclared_adapter"]["outcome"] == "answered-by-base"
    assert one["measurements"]["evicted_and_served_again"] == []
    assert one["measurements"]["base_text_restored"] is True


@needs_llama
@pytest.mark.parametrize("identifier", ["cpu-co-residency", "cpu-crash"])
def test_llama_under_the_supervisor(identifier, llama, tmp_path):
    one = carry_out("lifecycle-cpu.toml", identifier, tmp_path)
    assert one["hardware"]["device_memory_source"] == "process-rss-against-budget"
    assert one["limitations"]


@needs_sie
def test_sie_selects_adapters_of_embeddings(monkeypatch, tmp_path):
    make_lora(tmp_path / "lora", "minilm", "peft")
    make = [sys.executable, str(ROOT / "engines/sie_models.py"), str(tmp_path / "models"), MINILM, "minilm-lora"]
    subprocess.run(make, check=True)
    monkeypatch.setenv("LORA_DIR", str(tmp_path / "lora"))
    monkeypatch.setenv("SIE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("SIE_SERVER", SIE)
    one = carry_out("lora-sie-cpu.toml", "cpu-sie-lora", tmp_path)
    measured = one["measurements"]
    assert measured["evicted_and_served_again"] == ["a", "b", "c"]
    assert measured["undeclared_adapter"]["outcome"] == "never-ready"
    assert min(measured["cosine_distance_vs_warm_base"].values()) > 0.1 > measured["largest_control_cosine_distance"]
