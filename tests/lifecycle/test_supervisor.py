"""`evidence serve` with real processes: pass-through, refusals, and both protocols from run to verified record."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from evidence.capture.load import fetch
from evidence.capture.processes import own_module, start_process
from evidence.cli import main
from evidence.errors import EvidenceError
from evidence.lifecycle.bundle import summarize
from evidence.lifecycle.run import run_section
from evidence.lifecycle.section import check_section, read_limits
from evidence.lifecycle.timeline import timeline
from evidence.supervisor.config import parse_config
from evidence.supervisor.server import serve

HEAD = """schema_version = 1
[server]
cooldown_seconds = 0.5
retry_after_seconds = 1
[device]
source = "process-rss-against-budget"
budget_bytes = 1000000000
"""
MODEL = """[[model]]
name = "{name}"
command = ["{{python}}", "-B", "-m", "evidence.capture.synthetic", "--host", "{{host}}", "--port", "{{port}}", "--model", "{{model}}"]
reservation_bytes = 20000000
pinned = {pinned}
"""


def config(tmp_path):
    text = HEAD + "".join(MODEL.format(name=name, pinned=str(name == "p").lower()) for name in ("p", "a", "b"))
    (tmp_path / "supervisor.toml").write_text(text)
    return tmp_path / "supervisor.toml"


def section(limits):
    models = [
        {"model": name, "artifact": "none", "artifact_sha256": "0" * 64, "kv_token_budget": 2048}
        for name in ("p", "a", "b")
    ]
    return {
        "target": "supervisor",
        "config": "supervisor.toml",
        "models": models,
        "software": {"synthetic": "1.0"},
        "limits": limits,
    }


def test_serves_refuses_and_steers(tmp_path, monkeypatch):
    path = config(tmp_path)

    async def talk():
        command, environment = own_module("evidence.supervisor")
        process = await start_process(
            "supervisor", [*command, str(path)], log_path=tmp_path / "log", environment=environment
        )
        try:
            url = "http://" + await process.announcement(30)

            def ask(model, **more):
                body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}], **more}).encode()
                return fetch(url + "/v1/chat/completions", "POST", body, 30, {"content-type": "application/json"})

            first = await ask("a")
            assert (first.status, first.retry_after) == (503, "1")
            assert json.loads(first.response_body)["error"]["code"] == "MODEL_LOADING"
            while (answer := await ask("a", stream=True)).status == 503:  # noqa: ASYNC110 - as a caller waits
                await asyncio.sleep(0.05)
            assert answer.whole
            assert answer.response_body.endswith(b"data: [DONE]\n\n")
            assert (await ask("unknown")).status == 404
            assert (await fetch(url + "/v1/chat/completions", "POST", b"[]", 5)).status == 400
            assert (await fetch(url + "/nowhere")).status == 404
            listing = json.loads((await fetch(url + "/v1/models")).response_body)
            assert [one["state"] for one in listing["data"]] == ["unloaded", "loaded", "unloaded"]
            assert 0 < listing["device"]["free_bytes"] < listing["device"]["total_bytes"]
            taken = json.dumps({"bytes": listing["device"]["free_bytes"]}).encode()
            assert (await fetch(url + "/admin/ballast", "POST", taken, 5)).status == 200
            assert (await fetch(url + "/admin/unload", "POST", b'{"model": "b"}', 5)).status == 409
            assert (await fetch(url + "/admin/unload", "POST", b'{"model": "a"}', 20)).status == 200
        finally:
            ended = await process.stop(grace=20)
        assert ended.exit_code == 0

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("protocol", "limits"),
    [
        ("co-residency", {"models": ["p", "a"], "pinned_model": "p", "next_load_model": "b", "rounds": 2, "pressure_share": 0.2}),
        ("crash", {"healthy_model": "p", "victim_model": "a", "cooldown_s": 0.5, "retry_after_s": 1, "pause_between_healthy_requests_s": 0.05, "requested_before_samples": 3, "during_phase_sample_limit": 2000, "requested_after_samples": 3}),
    ],
)  # fmt: skip
def test_run_becomes_a_verified_record(protocol, limits, tmp_path):
    config(tmp_path)
    outcome = run_section("trial", protocol, section(limits), tmp_path, tmp_path / "runs")
    assert outcome.faults == (), outcome
    record = summarize([outcome.run], tmp_path / "record")
    words = [
        sys.executable,
        "-I",
        "-B",
        "verifiers/verify-lifecycle.py",
        str(record),
        "--evidence",
        str(record.parent / "evidence"),
        "--mutation-control",
    ]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert len(timeline(json.loads(record.read_bytes()))) > 5
    with pytest.raises(EvidenceError, match="expected a new folder"):
        summarize([outcome.run], tmp_path / "record")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_says_so_ends_its_target_and_begins_no_other(number, tmp_path):
    config(tmp_path)
    rows = "".join(
        f'{{model = "{name}", artifact = "none", artifact_sha256 = "{"0" * 64}", kv_token_budget = 2048}},'
        for name in "pab"
    )
    limits = 'models = ["p", "a"], pinned_model = "p", next_load_model = "b", rounds = 5000, pressure_share = 0.2'
    file = tmp_path / "stopped.toml"
    file.write_text(
        "".join(
            f'[[lifecycle]]\nid = "{name}"\nprotocol = "co-residency"\ntarget = "supervisor"\nconfig = "supervisor.toml"\n'
            f"models = [{rows}]\nsoftware = {{synthetic = '1.0'}}\nlimits = {{{limits}}}\n"
            for name in ("one", "two")
        )
    )
    words = [sys.executable, "-m", "evidence", "lifecycle", "run", str(file), "--runs", str(tmp_path / "runs")]
    events = None
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as runner:
        try:
            while runner.poll() is None and b'"round"' not in (events.read_bytes() if events else b""):
                events = next((tmp_path / "runs").glob("one-*/raw_events.jsonl"), None)
                time.sleep(0.02)
            runner.send_signal(number)
            told, _ = runner.communicate(timeout=30)
        finally:
            runner.kill()
    assert runner.returncode == 130, told
    assert json.loads(events.read_bytes().splitlines()[-1])["message"] == f"stopped by {number.name}"
    assert f"RUN_INCOMPLETE: the run did not end by itself: stopped by {number.name}" in told
    assert "two" not in told
    assert [path.name[:3] for path in (tmp_path / "runs").iterdir()] == ["one"]
    here = str(events.parent).encode()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if here in read_quietly(path)]


def read_quietly(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("schema_version = 1", "schema_version = 2"), "schema_version"),
        (('source = "process-rss-against-budget"', 'source = "guess"'), "device.source"),
        (("budget_bytes = 1000000000", ""), "budget_bytes"),
        (('name = "a"', 'name = "p"'), "each name once"),
        (("pinned = true", "pined = true"), "pined"),
        (('"{port}"', '"80"'), "{port}"),
        (("reservation_bytes = 20000000", "reservation_bytes = 0"), "reservation_bytes"),
        (("[server]", "[server"), "TOML"),
    ],
)
def test_wrong_configuration_is_refused(change, said, tmp_path):
    text = config(tmp_path).read_text().replace(*change)
    with pytest.raises(EvidenceError) as caught:
        parse_config(text, "c.toml")
    assert said in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "nobody"}, "target"),
        ({"url": "http://127.0.0.1:1"}, "config and url"),
        ({"limits": {"rounds": 1}}, "limits"),
        ({"limits": {"no_such": 1}}, "no_such"),
        ({"colour": 1}, "colour"),
        ({"models": []}, "models"),
    ],
)
def test_wrong_section_is_refused_before_anything_starts(change, said, tmp_path):
    with pytest.raises(EvidenceError) as caught:
        run_section("trial", "co-residency", {**section({}), **change}, tmp_path, tmp_path / "runs")
    assert said in caught.value.message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("identifier", "protocol", "said"),
    [
        ("trial", "churn", "protocol: found 'churn'"),
        ("", "crash", "id: found ''"),
        ("../x", "crash", "id: found '../x'"),
    ],
)
def test_wrong_protocol_or_id_is_refused(identifier, protocol, said, tmp_path):
    with pytest.raises(EvidenceError) as caught:
        run_section(identifier, protocol, section({}), tmp_path, tmp_path / "runs")
    assert said in caught.value.message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("", [], "[[lifecycle]]"),
        ("lifecycle = 3", [], "[[lifecycle]]"),
        ("[[lifecycle]", [], "found no valid TOML"),
        ('[[lifecycle]]\nid = "a"', ["--case", "b"], "--case b"),
        ('[[lifecycle]]\nid = "a"', [], "protocol"),
    ],
)
def test_wrong_file_is_refused_with_one_clear_line(text, words, said, tmp_path):
    (tmp_path / "l.toml").write_text(text)
    words = ["lifecycle", "run", str(tmp_path / "l.toml"), "--runs", str(tmp_path / "runs"), *words]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert ran.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("command", "vllm serve"), ("command", []), ("environment", {"A=B": "x"}), ("ready_timeout_s", "long"),
        ("models", ["a"]), ("software", "x"), ("limits", 5), ("hardware", {"a": float("nan")}), ("limitations", "none"),
        ("target", ["supervisor"]), ("url", 5), ("claim", 5),
    ],
)  # fmt: skip
def test_every_key_of_a_section_has_its_form(key, value):
    section = {"target": "supervisor", "config": "x.toml", "models": [{"model": "a"}], "software": {"x": "1"}}
    with pytest.raises(EvidenceError, match=rf"^lifecycle one: {key}: found ") as caught:
        check_section("one", "crash", section | {key: value})
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "values", [{"cooldown_s": "5"}, {"cooldown_s": True}, {"retry_after_s": -1}, {"victim_model": 3}]
)
def test_every_limit_has_the_form_of_its_field(values):
    right = {"healthy_model": "a", "victim_model": "b", "cooldown_s": 5, "retry_after_s": 1}
    assert read_limits("one", "crash", {"limits": right}).victim_model == "b"
    with pytest.raises(EvidenceError, match=rf"^lifecycle one: limits.{next(iter(values))}: found "):
        read_limits("one", "crash", {"limits": right | values})


def test_an_address_that_is_taken_is_told_before_any_engine_is_started(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        text = f"""
schema_version = 1
[server]
port = {taken.getsockname()[1]}
[device]
source = "process-rss-against-budget"
budget_bytes = 1000000000
[[model]]
name = "a"
command = ["touch", "{tmp_path}/started", "{{port}}"]
reservation_bytes = 1
preload = true
"""
        with pytest.raises(EvidenceError, match="cannot be listened at") as caught:
            asyncio.run(serve(parse_config(text, "c.toml"), tmp_path))
    assert caught.value.code == 2
    assert not (tmp_path / "started").exists()
