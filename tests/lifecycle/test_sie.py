"""What a real SIE answered (sie.json, made by record_sie.py), and what follows for the harness: reads, and refusals."""

import asyncio
import json
from pathlib import Path

import pytest

from evidence.capture.load import fetch
from evidence.errors import EvidenceError
from evidence.lifecycle.reply import read_reply
from evidence.lifecycle.run import run_section
from evidence.lifecycle.selection import HEADERS, read_sie_log, read_vectors
from evidence.lifecycle.target import REFUSED
from tests.lifecycle.doubles import Double, respond

SAID = json.loads(Path(__file__).with_name("sie.json").read_text())
EXCHANGES = SAID["exchanges"]


def told(story):
    """The exchanges of a part of the story, in order."""
    found = [one for one in EXCHANGES if one["story"] == story]
    assert found, story
    return found


class Replay(Double):
    """One address that answers as SIE did."""

    def __init__(self, one):
        super().__init__()
        self.one = one

    async def answer(self, method, path, value):
        assert (method, path) == (self.one["method"], self.one["path"])
        wait = self.one["headers"].get("retry-after")
        return respond(self.one["status"], self.one["response"], **({"retry_after": wait} if wait else {}))


def reply(one):
    """An exchange as the harness reads it, by HTTP."""

    async def ask():
        async with Replay(one) as double:
            body = json.dumps(one.get("request", {})).encode()
            return read_reply(await fetch(double.url + one["path"], one["method"], body, 5.0, HEADERS))

    return asyncio.run(ask())


def states(story):
    return {model["name"]: model["state"] for model in told(story)[0]["response"]["models"]}


def test_the_first_request_loads_and_says_when_to_come_back():
    first, *_, last = told("first request of a cold model")
    said = reply(first)
    assert (said.status, said.code, said.retry_after) == (503, "MODEL_LOADING", 5.0)
    assert last["status"] == 200
    assert states("two models resident")["minilm-a"] == states("two models resident")["minilm-b"] == "loaded"


def test_the_listing_tells_a_state_and_nothing_that_co_residency_needs():
    rows = told("two models resident")[0]["response"]["models"]
    keys = set().union(*rows)
    assert "state" in keys
    assert not [key for key in keys if any(word in key for word in ("pid", "process", "memory", "bytes", "pin"))]


def test_there_is_no_way_to_unload():
    assert [one["status"] for one in told("no way to unload")] == [405, 405]


def test_eviction_spares_the_pinned_model_and_comes_after_the_load():
    """Its memory monitor looks once a second, and only then the least recently used goes: too late for the protocol."""
    assert [name for name, state in states("just after it").items() if state == "loaded"] == [
        "minilm-b",
        "minilm-a",
        "minilm-c",
    ]
    after = states("after the memory monitor")
    assert (after["minilm-a"], after["minilm-b"], after["minilm-c"]) == ("loaded", "available", "loaded")
    assert any("evicting LRU model 'minilm-b'" in line for line in SAID["log"])


def test_a_failed_load_is_502_without_retry_after():
    said = reply(told("a model whose weights are not there")[-1])
    assert (said.status, said.code, said.retry_after) == (502, "MODEL_LOAD_FAILED", None)
    assert said.permanent is True
    assert told("it failed")[0]["response"]["state"] == "failed"


def test_an_adapter_loads_on_its_first_request_and_after_its_eviction():
    loads = [one for one in told("adapter a") if one["status"] == 503]
    assert [reply(one).code for one in loads] == ["LORA_LOADING"] * 2
    assert all(reply(one).retry_after == 1.0 for one in loads)
    assert read_sie_log("\n".join(SAID["log"])) == [
        ("loaded", "{folder}/lora/a"),
        ("loaded", "{folder}/lora/b"),
        ("evicted", "{folder}/lora/a"),
        ("loaded", "{folder}/lora/c"),
        ("evicted", "{folder}/lora/b"),
        ("loaded", "{folder}/lora/a"),
        ("evicted", "{folder}/lora/c"),
    ]


def test_an_adapter_changes_the_vectors_and_the_base_comes_back():
    vectors = {
        story: read_vectors(json.dumps(told(story)[-1]["response"]).encode())
        for story in ("base", "adapter a", "adapter b", "base again")
    }
    assert vectors["base"] == vectors["base again"]
    assert vectors["base"] != vectors["adapter a"] != vectors["adapter b"]


def test_an_unknown_adapter_is_never_refused_and_costs_a_loaded_one():
    assert [reply(one).code for one in told("an adapter that is nowhere")] == ["LORA_LOADING"] * 3
    assert any("evicting '{folder}/lora/c'" in line for line in SAID["log"])
    assert "lora" not in json.dumps(told("the listing names no adapter")[0]["response"]).replace("minilm-lora", "")


def test_a_model_that_takes_no_adapter_says_so():
    assert reply(told("an adapter for a model that takes none")[0]).status == 400


SECTION = {
    "command": ["no-such-program"],
    "models": [{"model": "m", "kv_token_budget": 1}],
    "software": {"sie": "0"},
    "limits": {},
}


@pytest.mark.parametrize(("protocol", "target"), sorted(REFUSED))
def test_what_cannot_be_carried_out_is_refused_before_anything_starts(protocol, target, tmp_path):
    with pytest.raises(EvidenceError) as caught:
        run_section("trial", protocol, {**SECTION, "target": target}, tmp_path, tmp_path / "runs")
    assert f"{protocol} cannot be carried out on {target}" in caught.value.message
    assert REFUSED[protocol, target] in caught.value.message
    assert "supervisor" in caught.value.hint
    assert not (tmp_path / "runs").exists()


def test_refusal_names_what_sie_lacks():
    assert "one server process" in REFUSED["crash", "sie"]
    for word in ("no process", "no reservation", "no device memory", "no route that unloads"):
        assert word in REFUSED["co-residency", "sie"]


def test_a_sie_that_the_harness_did_not_start_is_refused(tmp_path):
    section = {**SECTION, "target": "sie", "url": "http://127.0.0.1:1"}
    del section["command"]
    with pytest.raises(EvidenceError) as caught:
        run_section("trial", "lora", section, tmp_path, tmp_path / "runs")
    assert "read from its log" in caught.value.message
    assert not (tmp_path / "runs").exists()
