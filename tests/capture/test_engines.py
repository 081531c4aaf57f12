"""Engines are launched as written, waited for until a real token, known by what they are, and stopped whole."""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from real_engines import LLAMA_MODEL, Spec, llama, needs_llama
from scripted_server import Talk, serving
from synthetic_server import serve
from test_processes import is_alive, wait_until_gone

from evidence import campaign
from evidence.capture.adapters import (
    ADAPTERS,
    FEATURES,
    LOG_PIECE,
    find_log_lines,
    hide_private,
    list_needs,
    refuse_unsupported,
)
from evidence.capture.engines import Engine, attach_engine, describe_launch, start_engine
from evidence.capture.exchange import ExchangeFailed, exchange
from evidence.capture.gpu import take_snapshot
from evidence.capture.identity import find_python, identify
from evidence.capture.launch import REASONS, SetupFailure, apply_setting, check_disk, write_launch
from evidence.capture.processes import choose_port, find_group
from evidence.errors import EvidenceError


def with_engine(spec: Spec, use: Callable[[Engine], Awaitable[Any]], log: Path, **more: Any) -> Any:
    """Starts `spec`, awaits `use(engine)`, stops it."""

    async def go() -> Any:
        arguments = {"worker": "worker-1", "device": "0", "port": choose_port(), "setting": None, "log_path": log}
        engine = await start_engine(spec, **(arguments | more))
        try:
            return await use(engine)
        finally:
            await engine.stop(5)

    return asyncio.run(go())


async def be_ready(engine: Engine) -> Any:
    return await engine.ready()


# The launch


def test_every_adapter_of_a_campaign_is_known() -> None:
    assert set(ADAPTERS) == set(campaign.ADAPTERS)
    assert all(adapter.lacks <= FEATURES for adapter in ADAPTERS.values())


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        ("vllm", "vllm serve /m/qwen --host 127.0.0.1 --port 9000 --dtype bfloat16 --served-model-name qwen"),
        ("sglang", f"{sys.executable} -m sglang.launch_server --model-path /m/qwen --host 127.0.0.1 --port 9000 "
                   "--dtype bfloat16 --served-model-name qwen"),
        ("tensorrt-llm", "trtllm-serve /m/qwen --host 127.0.0.1 --port 9000 --dtype bfloat16 --served_model_name qwen"),
        ("llama.cpp", "llama-server -m /m/qwen --host 127.0.0.1 --port 9000 --dtype bfloat16 --alias qwen"),
        ("transformers-serve", "transformers serve qwen --host 127.0.0.1 --port 9000 --dtype bfloat16"),
        ("sie", "sie-server serve --host 127.0.0.1 --port 9000 --dtype bfloat16"),
    ],
)  # fmt: skip
def test_launch_arguments_of_each_adapter(adapter: str, words: str) -> None:
    spec = Spec(adapter, model="/m/qwen", arguments=("--dtype", "bfloat16"))
    launch = write_launch(spec, device="1", port=9000)
    assert " ".join(launch.words) == words
    shown = " ".join(launch.arguments)
    assert "{port}" in shown
    assert "{host}" in shown
    assert "/m/" not in shown
    assert launch.sha256 == hashlib.sha256("\0".join(words.split(" ")).encode()).hexdigest()


def test_a_command_fills_its_placeholders_and_publishes_none_of_them() -> None:
    words = ("/opt/x/bin/python3.11", "run.py", "{model}", "-p{port}", "--bind={host}", "--gpu", "{device}", "{alias}",
             "/home/someone/cache/file.bin", "--peer", "10.1.2.3:80", "~/x/y", "/m/qwen/tokenizer")  # fmt: skip
    spec = Spec("command", program=words, model="/m/qwen")
    launch = write_launch(spec, device="1", port=9000, worker="worker-2")
    assert launch.words[2:8] == ("/m/qwen", "-p9000", "--bind=127.0.0.1", "--gpu", "1", "worker-2")
    assert launch.arguments == (
        "{python}", "run.py", "{model}", "-p{port}", "--bind={host}", "--gpu", "{device}", "worker-2",
        "{folder}/file.bin", "--peer", "{host}:80", "{folder}/y", "{model}/tokenizer",
    )  # fmt: skip
    with pytest.raises(EvidenceError, match="unknown placeholder"):
        write_launch(Spec("command", program=("x", "{wrong}")), device="0", port=1)
    assert write_launch(Spec("command", program=("x", '{"json": {}}')), device="0", port=1).words[1] == '{"json": {}}'


def test_each_setting_changes_one_argument() -> None:
    words = ["serve", "--cap", "2", "--fraction=0.9", "--flag"]
    assert apply_setting(words, "--cap", "4") == ["serve", "--cap", "4", "--fraction=0.9", "--flag"]
    assert apply_setting(words, "--fraction", "0.5") == ["serve", "--cap", "2", "--fraction=0.5", "--flag"]
    assert apply_setting(words, "--new", "1") == [*words, "--new", "1"]
    assert apply_setting(words, "--flag", "x") == [*words, "x"]
    with pytest.raises(EvidenceError, match="stands 2 times"):
        apply_setting(["--cap", "1", "--cap=2"], "--cap", "3")


def test_a_setting_may_be_an_environment_variable_and_stands_literally() -> None:
    spec = Spec("vllm", model="/m", environment={"CUDA_VISIBLE_DEVICES": "{device}", "CACHE": "/home/me/cache"})
    launch = write_launch(spec, device="3", port=1, setting=("ENV:VLLM_CPU_KVCACHE_SPACE", "2"))
    assert launch.variables["CUDA_VISIBLE_DEVICES"] == "3"
    assert launch.environment == {
        "CUDA_VISIBLE_DEVICES": "{device}", "CACHE": "{folder}/cache", "VLLM_CPU_KVCACHE_SPACE": "2",
    }  # fmt: skip
    launch = write_launch(spec, device="3", port=1, setting=("--download-dir", "/a/b"))
    assert launch.arguments[-2:] == ("--download-dir", "/a/b")  # the changed setting is what is evaluated


def test_a_gpu_engine_sees_its_own_device() -> None:
    launch = write_launch(Spec("vllm", model="/m", snapshot="nvml"), device="1", port=1)
    assert launch.variables["CUDA_VISIBLE_DEVICES"] == "1"
    assert launch.environment == {"CUDA_VISIBLE_DEVICES": "{device}"}


def test_environment_variables_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVIDENCE_TEST_MODEL", "/some/model")
    spec = Spec("vllm", model="{env:EVIDENCE_TEST_MODEL}")
    assert write_launch(spec, device="0", port=1).words[2] == "/some/model"
    monkeypatch.delenv("EVIDENCE_TEST_MODEL")
    with pytest.raises(EvidenceError, match="environment variable"):
        write_launch(spec, device="0", port=1)


@pytest.mark.parametrize(
    "text", ["plain", "--a=b", "http://{host}:{port}/v1", "bfloat16", "0.5", '{"a": 1}', "a/b", "Qwen/Qwen3-8B"]
)
def test_what_is_not_private_stays(text: str) -> None:
    assert hide_private(text) == text


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/home/x/site", "{folder}/site"),
        ("/home/x/core:/home/x/site", "{folder}/core:{folder}/site"),
        ("--model=/home/x/m.gguf", "--model={folder}/m.gguf"),
        ("http://127.0.0.1:8000/v1", "http://{host}:8000/v1"),
    ],
)
def test_folders_and_addresses_are_hidden(text: str, public: str) -> None:
    assert hide_private(text) == public
    assert hide_private(public) == public


# What must be there first


def refused(spec: Spec, tmp_path: Path, **more: Any) -> SetupFailure:
    with pytest.raises(SetupFailure) as caught:
        with_engine(spec, be_ready, tmp_path / "log", **more)
    assert caught.value.reason in REASONS
    assert caught.value.code == 4
    return caught.value


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert refused(Spec("command", program=("no-such-engine",)), tmp_path).reason == "PROGRAM_NOT_FOUND"
    assert refused(Spec("vllm", program=("{env:NO_SUCH_PROGRAM}",), model="x"), tmp_path).reason == "PROGRAM_NOT_FOUND"
    spec = Spec("command", program=(sys.executable, "/no/such/script.py"))
    assert refused(spec, tmp_path).reason == "PROGRAM_NOT_FOUND"


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    spec = Spec("llama.cpp", program=("true",), model="/no/such/model.gguf")
    assert refused(spec, tmp_path).reason == "MODEL_NOT_FOUND"
    assert refused(spec, tmp_path, gated=True).reason == "ACCESS_DENIED"
    unset = replace(spec, model="{env:NO_SUCH_MODEL}")
    assert refused(unset, tmp_path).reason == "MODEL_NOT_FOUND"
    assert refused(unset, tmp_path, gated=True).reason == "ACCESS_DENIED"


def test_a_disk_without_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    assert refused(Spec(), tmp_path).reason == "DISK_TOO_SMALL"
    with pytest.raises(SetupFailure, match="1,000 bytes are free"):
        check_disk(tmp_path / "not" / "there" / "yet", 2000)


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EvidenceError, match=f"port {port} on 127.0.0.1 is in use"):
            with_engine(Spec(), be_ready, tmp_path / "log", port=port)


def test_an_engine_that_never_gets_ready(tmp_path: Path) -> None:
    spec = Spec(arguments=("--never-ready",), ready_timeout_seconds=1)
    failure = refused(spec, tmp_path)
    assert failure.reason == "NOT_READY"
    assert "no token within 1 s" in failure.message


def test_an_engine_that_answers_500(tmp_path: Path) -> None:
    failure = refused(Spec(arguments=("--fault", "status-500"), ready_timeout_seconds=1), tmp_path)
    assert failure.reason == "NOT_READY"
    assert "answers 500" in failure.message


@pytest.mark.parametrize("depth", ["models", "answer"])
def test_an_answer_that_is_nested_too_deep_is_no_token(depth: str) -> None:
    deep, models = b"[" * 200_000, b'{"data": [{"id": "tiny"}]}'

    async def answer(talk: Talk) -> None:
        body = deep if depth == "answer" or talk.request.startswith(b"GET") else b"{}"
        body = models if depth == "answer" and talk.request.startswith(b"GET") else body
        await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def go() -> str:
        async with serving(answer) as (url, _):
            spec = Spec(urls=(url.removesuffix("/v1/chat/completions"),), ready_timeout_seconds=0.5)
            with pytest.raises(SetupFailure, match="no token within") as failure:
                await attach_engine(spec, worker="worker-1", device="0", index=0).ready()
            return failure.value.reason

    assert asyncio.run(go()) == "NOT_READY"


def test_an_engine_that_denies_access(tmp_path: Path) -> None:
    assert refused(Spec(arguments=("--fault", "status-401")), tmp_path).reason == "ACCESS_DENIED"


def test_an_engine_that_ends_at_once(tmp_path: Path) -> None:
    failure = refused(Spec(arguments=("--no-such-flag",)), tmp_path)
    assert failure.reason == "ENGINE_DIED"
    assert "exit code 2" in failure.message
    assert "--no-such-flag" in failure.message


def test_an_engine_that_dies_at_its_first_token(tmp_path: Path) -> None:
    assert refused(Spec(arguments=("--fault", "die")), tmp_path).reason == "ENGINE_DIED"


# The life of an engine


def test_ready_is_a_real_token(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        ready = await engine.ready()
        assert json.loads(ready.request)["max_tokens"] == 1
        assert json.loads(ready.response)["choices"][0]["message"]["content"]
        launch = describe_launch(engine, ready)
        assert launch["ready"]["responseSha256"] == hashlib.sha256(ready.response).hexdigest()
        assert launch["worker"] == "worker-1"
        assert launch["arguments"][0] == "{python}"
        assert launch["arguments"][-2:] == ["--sequence-cap", "4"]
        assert str(engine.launch and engine.launch.words[0]) not in json.dumps(launch)
        json.dumps(launch)

    with_engine(Spec(arguments=("--start-delay", "0.3")), use, tmp_path / "log", setting=("--sequence-cap", "4"))


def test_stop_is_expected_and_no_death(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.ready()
        end = await engine.stop()
        assert end is not None
        assert (end.exit_code, end.signal, end.expected) == (0, None, True)
        assert not engine.died.is_set()

    with_engine(Spec(), use, tmp_path / "log")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_death_is_noticed_at_once(tmp_path: Path, how: signal.Signals) -> None:
    async def use(engine: Engine) -> None:
        await engine.ready()
        assert engine.pid is not None
        os.kill(engine.pid, how)
        await asyncio.wait_for(engine.died.wait(), 5)
        end = await engine.stop()
        assert end is not None
        assert (end.signal, end.expected) == (how, False)

    with_engine(Spec(), use, tmp_path / "log")


def test_the_whole_group_ends(tmp_path: Path) -> None:
    async def use(engine: Engine) -> list[int]:
        await engine.ready()
        assert engine.pid is not None
        return find_group(engine.pid)

    shell = "sleep 600 & sleep 600 & exec {python} -m evidence.capture.synthetic --port {port}"
    spec = Spec("command", program=("sh", "-c", shell), environment={"PYTHONPATH": str(Path(__file__).parents[2])})
    pids = with_engine(spec, use, tmp_path / "log")
    assert len(pids) == 3
    assert wait_until_gone(pids) == []
    assert not any(is_alive(pid) for pid in pids)


def test_an_engine_that_runs_already(tmp_path: Path) -> None:
    with serve() as server:
        engine = attach_engine(Spec(urls=(server.url + "/",)), worker="worker-1", device="0", index=0)

        async def go() -> None:
            ready = await engine.ready()
            launch = describe_launch(engine, ready)
            assert launch["arguments"] == []
            assert launch["argumentsSha256"] == hashlib.sha256(b"").hexdigest()
            assert (await identify(engine)).source == "reported"
            assert await engine.stop() is None

        asyncio.run(go())
    with pytest.raises(EvidenceError, match="1 urls, expected one for worker-2"):
        attach_engine(Spec(urls=("http://x",)), worker="worker-2", device="0", index=1)


def test_identity_is_reported_or_said_to_be_declared(tmp_path: Path) -> None:
    async def use(engine: Engine) -> Any:
        await engine.ready()
        return (await identify(engine, (campaign.Identity("image", "tag", "0" * 64),))).entry("e")

    told = with_engine(Spec(version="9"), use, tmp_path / "log")
    assert (told["version"], told["source"]) == ("1.0", "reported")
    assert told["identity"][-1] == {"name": "image", "value": "tag", "sha256": "0" * 64}
    own = ("{python}", "-m", "evidence.capture.synthetic", "--port", "{port}")
    spec = Spec("command", version="9", program=own, environment={"PYTHONPATH": str(Path(__file__).parents[2])})
    told = with_engine(spec, use, tmp_path / "log")
    assert (told["version"], told["source"]) == ("9", "declared")


def test_the_interpreter_of_a_program(tmp_path: Path) -> None:
    assert find_python(Path(sys.executable)) == sys.executable
    script = tmp_path / "tool"
    script.write_text("#!/opt/x/bin/python3.12\n")
    assert find_python(script) == "/opt/x/bin/python3.12"
    script.write_text("#!/bin/sh\n'''exec' \"/a b/bin/python3\" \"$0\" \"$@\"\n' '''\n")
    assert find_python(script) == "/a b/bin/python3"
    script.write_bytes(b"\x7fELF")
    assert find_python(script) is None


def test_an_exchange_that_fails_says_why() -> None:
    with serve("--fault", "truncate", "--fault-until", "1") as server:
        body = json.dumps({"messages": []}).encode()

        async def go(url: str, seconds: float = 10) -> str:
            with pytest.raises(ExchangeFailed) as caught:
                await exchange(url, "POST", body, seconds=seconds)
            return str(caught.value)

        assert asyncio.run(go(server.url + "/v1/chat/completions"))
        assert "refused" in asyncio.run(go(f"http://127.0.0.1:{choose_port()}/")).lower()
    with serve("--never-ready") as server:
        assert "within 0.2 s" in asyncio.run(go(server.url + "/v1/chat/completions", 0.2))


# What an engine cannot give


@pytest.mark.parametrize(
    ("adapter", "request_body", "missing"),
    [
        ("transformers-serve", {"messages": [], "seed": 1, "temperature": 1}, "seed"),
        ("transformers-serve", {"messages": [], "logprobs": True}, "logprobs"),
        ("transformers-serve", {"messages": [], "ignore_eos": True}, "ignore-eos"),
        ("llama.cpp", {"messages": [], "min_tokens": 5}, "min-tokens"),
        ("llama.cpp", {"messages": [], "n": 2}, "several"),
        ("sie", {"messages": []}, "chat"),
        ("vllm", {"input": "x"}, "embeddings"),
    ],
)
def test_a_campaign_that_needs_what_is_missing_is_refused(adapter: str, request_body: Any, missing: str) -> None:
    with pytest.raises(EvidenceError, match=f"{adapter} cannot give .*{missing}"):
        refuse_unsupported(adapter, list_needs(request_body))


def test_what_an_argument_switches_on_is_not_refused() -> None:
    refuse_unsupported("vllm", {"embeddings"}, ("--runner", "pooling"))
    refuse_unsupported("sie", {"chat"}, ("--upstreams-file", "x"))
    refuse_unsupported(
        "vllm", list_needs({"messages": [], "seed": 1, "logprobs": True, "ignore_eos": True}, ["version"])
    )
    with pytest.raises(EvidenceError, match="unknown need"):
        refuse_unsupported("vllm", {"magic"})
    with pytest.raises(EvidenceError, match="transformers-serve cannot give metrics, version"):
        refuse_unsupported("transformers-serve", list_needs({"messages": []}, ["version", "metrics", "health"]))


def test_log_lines_of_compilation_and_allocation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("INFO 12:00 Available KV cache memory: 41.33 GiB\nINFO Capturing CUDA graphs: 10%\nINFO nothing\n")
    offset = log.stat().st_size
    with log.open("a") as file:
        file.write(
            "INFO torch.compile takes 3 s for /home/me/cache/x.py\nWARNING Sequence group 1 is preempted\nhalf torch.compile"
        )
    end = log.stat().st_size
    found, _ = find_log_lines("vllm", log, 0, end)
    assert [name for name, _ in found] == ["allocation", "graph-capture", "compile", "preemption"]
    late, seen = find_log_lines("vllm", log, offset, end)
    assert seen == end - len("half torch.compile")
    assert late[0] == ("compile", "INFO torch.compile takes 3 s for {folder}/x.py")
    assert len(late) == 2


def test_a_line_without_an_end_is_read_in_pieces(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"torch.compile " + bytes(LOG_PIECE) + b"out of memory\n")
    first, at = find_log_lines("vllm", log, 0, log.stat().st_size)
    second, end = find_log_lines("vllm", log, at, log.stat().st_size)
    assert ([name for name, _ in first], at) == (["compile"], LOG_PIECE)
    assert ([name for name, _ in second], end) == (["out-of-memory"], log.stat().st_size)


def test_a_line_in_the_log_of_a_running_engine(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.ready()
        assert engine.log_path is not None
        offset = engine.log_path.stat().st_size
        body = json.dumps({"messages": [], "synthetic": {"fault": "log-allocation"}}).encode()
        await exchange(engine.url + "/v1/chat/completions", "POST", body, seconds=10)
        found, _ = find_log_lines("synthetic", engine.log_path, offset, engine.log_path.stat().st_size)
        assert found == [("allocation", "synthetic: allocation of 1 block")]

    with_engine(Spec(), use, tmp_path / "log")


# A real engine


@pytest.fixture
def own_model(tmp_path: Path) -> Iterator[Path]:
    """A model file that no other test serves: of pages that engines share, PSS counts a part to each."""
    own = tmp_path / LLAMA_MODEL.name
    shutil.copyfile(LLAMA_MODEL, own)
    yield own
    own.unlink()


@needs_llama
@pytest.mark.engine
def test_llama_serves_under_its_settings(tmp_path: Path, own_model: Path) -> None:
    async def use(engine: Engine) -> int:
        ready = await engine.ready()
        assert json.loads(ready.response)["choices"][0]["message"]["content"]
        assert str(own_model.parent) not in ready.response.decode()
        slots = json.loads((await exchange(engine.url + "/slots", seconds=10)).body)
        assert len(slots) == 4
        told = await identify(engine)
        assert (told.version, told.source) == ("2026.10.11549", "reported")
        assert [name for name, _, digest in told.identity if digest] == ["wheel xllamacpp", "script serve_llama.py"]
        assert engine.arguments[:3] == ("{python}", "{folder}/serve_llama.py", "-m")
        snapshot = await take_snapshot("process-rss", [engine])
        assert "PSS" in snapshot["method"]
        used = snapshot["devices"][0]["usedBytes"]
        assert 150 << 20 < used < 1 << 30
        end = await engine.stop()
        assert end is not None
        assert (end.exit_code, end.expected) == (0, True)
        return int(used)

    def own(context: str) -> Spec:
        return replace(llama("--ctx-size", context), model=str(own_model))

    small = with_engine(own("2048"), use, tmp_path / "log", setting=("--parallel", "4"))
    large = with_engine(own("8192"), use, tmp_path / "log2", setting=("--parallel", "4"))
    assert large - small > 100 << 20  # 6,144 tokens of 23,040 bytes are 135 MiB
