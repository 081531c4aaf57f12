"""The synthetic engine says the same to the same, at the times it was told, and fails to order."""

import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic_server import Server, ask, chat, events, read_response, receive, send, serve

from evidence.capture.synthetic_engine import FAULTS

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve("--prefill-ms", "2", "--token-ms", "1") as started:
        yield started


def fault(name: str) -> dict[str, str]:
    return {"X-Synthetic-Fault": name}


def test_a_stream_has_role_text_finish_usage_and_done(server: Server) -> None:
    status, body = ask(server, CHAT, chat())
    said = events(body)
    assert status == 200
    assert said[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    text = [event["choices"][0]["delta"]["content"] for event in said[1:17]]
    assert all(text)
    assert said[17]["choices"][0] == {"index": 0, "finish_reason": "stop", "delta": {}}
    assert said[18]["choices"] == []
    assert said[18]["usage"]["completion_tokens"] == 16
    assert said[19] == "[DONE]"
    assert len(said) == 20


def test_the_answer_of_json_equals_that_of_the_seed_and_the_body(server: Server) -> None:
    first, again = (ask(server, CHAT, chat(False), {"X-Request-Id": "r1-a-main-001"}) for _ in range(2))
    other = ask(server, CHAT, chat(False), {"X-Request-Id": "r1-a-main-002"})
    assert first == again
    assert other[1] != first[1]
    said, else_said = json.loads(first[1]), json.loads(other[1])
    assert said["id"] != else_said["id"]
    assert said["choices"] == else_said["choices"]
    assert ask(server, CHAT, chat(False, seed=1))[1] != ask(server, CHAT, chat(False, seed=2))[1]


def test_two_processes_answer_alike() -> None:
    with serve() as one, serve() as two:
        assert ask(one, CHAT, chat(), {"X-Request-Id": "a"}) == ask(two, CHAT, chat(), {"X-Request-Id": "a"})


def test_the_budget_caps_and_usage_may_count_more_tokens_than_chunks() -> None:
    with serve("--tokens-per-chunk", "4", "--answer-tokens", "10") as started:
        said = events(ask(started, CHAT, chat())[1])
        assert (
            len([event for event in said[:-1] if event["choices"] and event["choices"][0]["delta"].get("content")])
            == 10
        )
        assert said[-2]["usage"]["completion_tokens"] == 40
        capped = json.loads(ask(started, CHAT, chat(False, max_tokens=12))[1])
        assert capped["choices"][0]["finish_reason"] == "length"
        assert capped["usage"]["completion_tokens"] == 12


def test_the_other_routes(server: Server) -> None:
    assert json.loads(ask(server, "/health")[1]) == {"status": "ok"}
    assert json.loads(ask(server, "/version")[1]) == {"version": "1.0"}
    assert json.loads(ask(server, "/v1/models")[1])["data"][0]["id"] == "synthetic"
    assert b"synthetic:requests_finished_total" in ask(server, "/metrics")[1]
    vectors = json.loads(ask(server, "/v1/embeddings", {"input": ["a", "b"]})[1])["data"]
    assert vectors[0]["embedding"] != vectors[1]["embedding"]
    assert json.loads(ask(server, "/v1/completions", {"prompt": "x", "max_tokens": 3})[1])["choices"][0]["text"]
    said = events(ask(server, "/v1/completions", {"prompt": "x", "stream": True})[1])
    assert said[0]["choices"][0]["text"]
    assert said[-1] == "[DONE]"
    assert ask(server, "/nowhere")[0] == 404
    assert ask(server, CHAT, [1])[0] == 400


def test_a_named_model_refuses_others() -> None:
    with serve("--model", "m") as started:
        assert ask(started, CHAT, chat(False, model="m"))[0] == 200
        assert ask(started, CHAT, chat(False, model="other"))[0] == 404


def test_token_ids_and_wrong_token_ids(server: Server) -> None:
    right = json.loads(ask(server, "/tokenize", {"prompt": "a b c"})[1])
    assert right["count"] == len(right["tokens"]) == 3
    with serve("--wrong-token-ids") as started:
        assert json.loads(ask(started, "/tokenize", {"prompt": "a b c"})[1])["tokens"] != right["tokens"]


def test_the_sequence_cap_queues_in_order_of_arrival() -> None:
    with serve("--sequence-cap", "2", "--prefill-ms", "60", "--token-ms", "0", "--answer-tokens", "1") as started:
        ended: list[tuple[float, int]] = []
        begun = time.monotonic()
        connections = []
        for number in range(6):
            connections.append(send(started, CHAT, chat(False)))
            deadline = time.monotonic() + 10
            while b"requests_running %d\nsynthetic:requests_waiting %d\n" % (
                min(number + 1, 2),
                max(0, number - 1),
            ) not in (metrics := ask(started, "/metrics")[1]):
                if b"finished_total 0" not in metrics:
                    break  # a slow machine: the first have ended already
                assert time.monotonic() < deadline

        def wait(number: int) -> None:
            read_response(connections[number])
            ended.append((time.monotonic() - begun, number))

        threads = [threading.Thread(target=wait, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for connection in connections:
            connection.close()
        order = [number // 2 for _, number in sorted(ended)]
        assert order == sorted(order)
        assert sorted(ended)[-1][0] >= 0.18


def test_a_client_that_leaves_gives_its_place_back() -> None:
    with serve("--sequence-cap", "1") as started:
        with send(started, CHAT, chat(), fault("hang-mid-stream")) as hanging:
            receive(hanging, b"content")
        status, _ = ask(started, CHAT, chat(False))
        assert status == 200


def test_memory_follows_the_settings() -> None:
    def used(*arguments: str) -> int:
        with serve(
            "--weights-bytes", "1000", "--context-tokens", "10", "--kv-bytes-per-token", "5", *arguments
        ) as started:
            memory = json.loads(ask(started, "/synthetic/memory")[1])
            assert memory["totalBytes"] == 100_000
            return int(memory["usedBytes"])

    total = ("--memory-bytes", "100000")
    assert used(*total, "--sequence-cap", "2") == 1100
    assert used(*total, "--sequence-cap", "4") == 1200
    assert used(*total, "--memory-fraction", "0.25") == 25_000
    assert used(*total, "--memory-fraction", "0.25", "--memory-not-falling") == 90_000


def test_events_leave_within_a_millisecond_of_their_time(tmp_path: Path) -> None:
    log = tmp_path / "emissions"
    with serve(
        "--prefill-ms", "7.3", "--token-ms", "2.7", "--answer-tokens", "60", "--emission-log", str(log)
    ) as started:
        for _ in range(3):
            ask(started, CHAT, chat())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    texts = [line for line in lines if line["event"] == "text"]
    assert len(texts) == 180
    late = sorted((line["written"] - line["due"]) / 1e6 for line in texts)
    assert late[0] >= 0
    assert statistics.median(late) < 1.0  # a busy machine may spoil a few, a coarse timer would spoil all
    assert texts[59]["due"] - texts[0]["due"] == pytest.approx(59 * 2.7e6, abs=100)


def test_late_role_comes_with_the_first_text() -> None:
    with serve("--late-role", "--prefill-ms", "30") as started, send(started, CHAT, chat()) as connection:
        receive(connection, b"\r\n\r\n")
        first = receive(connection, b"delta")
        assert first.count(b'"role"') == 1
        assert events(ask(started, CHAT, chat())[1])[0]["choices"][0]["delta"]["role"] == "assistant"


@pytest.mark.parametrize("stream", [True, False])
def test_fault_status(server: Server, stream: bool) -> None:
    assert ask(server, CHAT, chat(stream), fault("status-500"))[0] == 500
    assert ask(server, CHAT, chat(stream, synthetic={"fault": "status-503"}))[0] == 503


@pytest.mark.parametrize("name", ["hang-before-head", "hang-mid-stream"])
def test_fault_hang(server: Server, name: str) -> None:
    with send(server, CHAT, chat(), fault(name)) as connection:
        received = receive(connection, b'"role"') if name == "hang-mid-stream" else b""
        connection.settimeout(0.3)

        def read_on() -> None:
            nonlocal received
            while part := connection.recv(65536):
                received += part

        with pytest.raises(TimeoutError):  # it neither goes on nor closes
            read_on()
    assert (b"content" in received) == (name == "hang-mid-stream")


def test_fault_close_early_is_a_clean_end_of_a_short_stream(server: Server) -> None:
    status, body = ask(server, CHAT, chat(), fault("close-early"))
    assert status == 200
    assert 1 < len(events(body)) < 17
    assert b'finish_reason":"' not in body
    assert b"[DONE]" not in body


@pytest.mark.parametrize("stream", [True, False])
def test_fault_truncate(server: Server, stream: bool) -> None:
    with pytest.raises(ValueError, match="cut off"):
        ask(server, CHAT, chat(stream), fault("truncate"))


def test_fault_reset(server: Server) -> None:
    with pytest.raises(ConnectionResetError):
        ask(server, CHAT, chat(), fault("reset"))


def test_faults_in_the_text_of_a_stream(server: Server) -> None:
    def body(name: str, stream: bool = True) -> bytes:
        return ask(server, CHAT, chat(stream), fault(name))[1]

    assert b'data: {"choices": [broken\n' in body("broken-stream")
    assert body("broken-stream", False) == b'{"choices": [broken'
    assert b'event: error\ndata: {"error"' in body("error-event")
    assert b"[DONE]" in body("error-event") or b'finish_reason":"' not in body("error-event")
    assert b'"usage"' not in body("no-usage")
    assert b"[DONE]" not in body("no-done")
    assert b"reasoning_content" in body("reasoning-only")
    assert b'"delta":{"content"' not in body("reasoning-only")
    assert b'"finish_reason":"length"' in body("capped")
    assert json.loads(body("empty", False))["choices"][0]["message"]["content"] == ""
    assert json.loads(body("tool-call", False))["choices"][0]["message"]["tool_calls"]
    assert b'"finish_reason":"tool_calls"' in body("tool-call")
    assert b"[DONE]" in body("log-allocation")


def test_fault_die_ends_the_process() -> None:
    with serve() as started:
        with pytest.raises((ValueError, OSError)):
            ask(started, CHAT, chat(), fault("die"))
        assert started.process.wait(10) == 9


def test_die_after_answers_first() -> None:
    with serve("--die-after", "2") as started:
        assert ask(started, CHAT, chat(False))[0] == 200
        assert ask(started, CHAT, chat(False))[0] == 200
        assert started.process.wait(10) == 9


def test_a_fault_from_and_until() -> None:
    with serve("--fault", "status-500", "--fault-from", "2", "--fault-until", "3") as started:
        assert [ask(started, CHAT, chat(False))[0] for _ in range(4)] == [200, 500, 500, 200]


def test_never_ready_is_healthy_and_mute() -> None:
    with serve("--never-ready") as started:
        assert ask(started, "/health")[0] == 200
        with send(started, CHAT, chat(False)) as connection:
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def test_slow_start_says_503_first() -> None:
    with serve("--start-delay", "0.4") as started:
        assert ask(started, CHAT, chat(False))[0] == 503
        deadline = time.monotonic() + 10
        while ask(started, "/health")[0] == 503:
            assert time.monotonic() < deadline
        assert ask(started, CHAT, chat(False))[0] == 200


def test_pipelined_and_chunked_requests_are_answered_in_order(server: Server) -> None:
    body = json.dumps(chat(False)).encode()
    first = b"POST %s HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (
        CHAT.encode(), body[:5], len(body) - 5, body[5:],
    )  # fmt: skip
    with socket.create_connection((server.host, server.port), timeout=20) as connection:
        connection.sendall(first + b"GET /version HTTP/1.1\r\n\r\n")
        received = receive(connection, b'{"version":"1.0"}')
    assert received.index(b"chat.completion") < received.index(b"version")


def test_the_connection_closes_when_asked_to(server: Server) -> None:
    with send(server, CHAT, chat()) as connection:  # sends Connection: close
        assert receive(connection).endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


def test_every_fault_is_tried_here() -> None:
    assert all(f'"{name}"' in Path(__file__).read_text() for name in FAULTS if name != "none")
