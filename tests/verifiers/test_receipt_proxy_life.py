"""How the witness begins, waits, fails and ends: one process a test."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verifiers.proxy.stage import (
    EMPTY,
    PATIENCE,
    Stage,
    Witness,
    command,
    files_under,
    receive_all,
)

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: w\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nHost: w\r\nX-Request-Id: attempt-001\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"Content-Length: 2\r\n\r\nok"
EXCHANGE = [("C>", GET), ("U<", GET), ("U>", SIZED), ("C<", SIZED)]


def refuse(tmp_path: Path, *options: str, upstream: str = "http://127.0.0.1:9") -> str:
    """Start the proxy where it must not start; return what it says."""
    done = subprocess.run(
        command(tmp_path / "ledger.jsonl", tmp_path / "bodies", upstream, *options),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


# -- beginning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"])
def test_it_listens_on_loopback_only_unless_told(tmp_path: Path, listen: str) -> None:
    assert "not a loopback address; give --allow-remote" in refuse(tmp_path, "--listen", listen)
    assert list(tmp_path.iterdir()) == []


def test_it_says_when_others_can_reach_it(tmp_path: Path) -> None:
    with Witness(tmp_path, "--listen", "0.0.0.0:0", "--allow-remote") as witness:
        assert "can be reached from other machines" in witness.stop()


@pytest.mark.parametrize(
    ("options", "upstream", "message"),
    [
        (["--listen", "127.0.0.1"], "http://127.0.0.1:9", "is not HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "http://127.0.0.1:9", "is not HOST:PORT"),
        ([], "https://127.0.0.1:9", "--upstream is not http://HOST:PORT"),
        ([], "http://user:secret@127.0.0.1:9", "--upstream is not http://HOST:PORT"),
        ([], "http://127.0.0.1:9/v1", "--upstream is not http://HOST:PORT"),
        ([], "http://127.0.0.1:nine", "not http://HOST:PORT"),
        (["--worker", "Worker/1"], "http://127.0.0.1:9", "is not an alias"),
        (["--idle-seconds", "0"], "http://127.0.0.1:9", "not between"),
        (["--bodies", "/dev/null/x"], "http://127.0.0.1:9", "cannot make the folder"),
        (["--ledger", "/nowhere/x.jsonl"], "http://127.0.0.1:9", "cannot open"),
    ],
)
def test_wrong_usage_is_one_clear_line(tmp_path: Path, options: list[str], upstream: str, message: str) -> None:
    said = refuse(tmp_path, *options, upstream=upstream)
    assert message in said
    assert "secret" not in said


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refuse(tmp_path, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert "cannot listen on" in said


def test_an_existing_ledger_is_never_appended_to_unasked(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(b'{"sequence": 1}\n')
    assert "exists already; give --resume" in refuse(tmp_path)
    assert (tmp_path / "ledger.jsonl").read_bytes() == b'{"sequence": 1}\n'


def test_a_ledger_has_one_writer(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        said = refuse(tmp_path, "--resume", "--ledger", str(witness.ledger))
        assert "is being written by another process" in said
        witness.stop()


def test_a_foreign_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(b"hello\n")
    assert "line 1 is not a line of this proxy" in refuse(tmp_path, "--resume")


def test_resume_keeps_torn_bytes_apart_and_continues_the_sequence(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        for _ in range(2):
            stage = Stage(witness)
            stage.play(EXCHANGE)
            stage.close()
            witness.receipts(1)
        assert witness.stop() == ""
    torn = witness.ledger.read_bytes()[:40]
    with witness.ledger.open("ab") as file:
        file.write(torn)
    with Witness(tmp_path, "--resume") as witness:
        witness.read = 2
        stage = Stage(witness)
        stage.play(EXCHANGE)
        stage.close()
        [receipt] = witness.receipts(1)
        assert receipt["sequence"] == 3
        assert "a torn last line was moved to" in witness.stop()
        witness.check_ledger()
    assert Path(f"{witness.ledger}.torn").read_bytes() == torn + b"\n"


# -- waiting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "steps", "answer", "expected"),
    [
        ("slow head", ["--head-seconds", "0.2"], [("C>", GET[:-1])], b"HTTP/1.1 408 ", ("timeout", "")),
        (
            "slow request body",
            ["--idle-seconds", "0.2"],
            [("C>", POST + b"Content-Length: 5\r\n\r\nhe"), ("U<", POST + b"Content-Length: 5\r\n\r\nhe")],
            b"HTTP/1.1 408 ",
            ("timeout", "/v1/chat/completions"),
        ),
        (
            "silent worker",
            ["--idle-seconds", "0.2"],
            [("C>", GET), ("U<", GET)],
            b"HTTP/1.1 504 ",
            ("timeout", "/v1/models"),
        ),
        (
            "worker stalls inside its answer",
            ["--idle-seconds", "0.2"],
            [("C>", GET), ("U<", GET), ("U>", OK + b"Content-Length: 5\r\n\r\nok")],
            OK + b"Content-Length: 5\r\n\r\nok",
            ("timeout", "/v1/models"),
        ),
        (
            "client closed, worker stays silent",
            ["--half-close-seconds", "0.2"],
            [("C>", GET), ("U<", GET), ("C|",), ("U<|",)],
            b"",
            ("client-closed", "/v1/models"),
        ),
    ],
)
def test_what_waits_too_long_is_ended_and_recorded(
    tmp_path: Path, name: str, options: list[str], steps: list[tuple], answer: bytes, expected: tuple[str, str]
) -> None:
    with Witness(tmp_path, *options) as witness:
        stage = Stage(witness)
        stage.play(steps)
        assert receive_all(stage.client).startswith(answer)
        [receipt] = witness.receipts(1)
        assert (receipt["reason"], receipt["path"]) == expected
        assert receipt["complete"] is False
        stage.close()
        assert witness.stop() == ""
        witness.check_ledger()


def test_slow_loris_does_not_win_time_by_single_bytes(tmp_path: Path) -> None:
    """The time for a head runs from its first byte; bytes that trickle in do not prolong it."""
    with Witness(tmp_path, "--head-seconds", "0.3") as witness:
        client = witness.connect()
        client.settimeout(0.02)
        answer = b""
        for byte in b"GET / HTTP/1.1\r\nX: " + b"a" * 400:
            try:
                client.send(bytes([byte]))
                answer = client.recv(4096)
                break
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert witness.receipts(1)[0]["reason"] == "timeout"
        client.close()
        witness.stop()


def test_an_idle_connection_is_closed_without_a_receipt(tmp_path: Path) -> None:
    with Witness(tmp_path, "--idle-seconds", "0.2") as witness:
        client = witness.connect()
        assert client.recv(1) == b""
        assert witness.stop() == ""
        assert witness.check_ledger() == []


def test_an_unreachable_worker_gives_502_and_a_receipt(tmp_path: Path) -> None:
    with Witness(tmp_path, worker=False) as witness:
        client = witness.connect()
        client.sendall(POST + b"Content-Length: 5\r\n\r\nhello")
        answer = receive_all(client)
        assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n")
        assert answer.endswith(b"\r\n\r\n")
        [receipt] = witness.receipts(1)
        assert (receipt["status"], receipt["reason"]) == (None, "upstream-unreachable")
        assert witness.body(receipt["requestSha256"]) == b"hello"
        assert receipt["responseSha256"] == EMPTY  # as the client has it too
        client.close()
        witness.stop()
        witness.check_ledger()


def test_a_request_begun_before_the_worker_closed_gets_a_fresh_connection(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        stage = Stage(witness)
        stage.play([("C>", GET + GET[:5]), ("U<", GET), ("U>", SIZED), ("C<", SIZED), ("U|",)])
        stage.forget_worker()
        stage.play([("C>", GET[5:]), ("U<", GET), ("U>", SIZED), ("C<", SIZED)])
        assert [receipt["reason"] for receipt in witness.receipts(2)] == [None, None]
        stage.close()
        witness.stop()


# -- secrets -----------------------------------------------------------------------------------------


def test_no_credential_is_kept_anywhere(tmp_path: Path) -> None:
    secret = b"sk-5ecre7-d0-n07-keep"
    head = (
        b"POST /v1/chat/completions?api_key="
        + secret
        + b" HTTP/1.1\r\nHost: w\r\nAuthorization: Bearer "
        + secret
        + b"\r\n"
        b"Proxy-Authorization: Basic " + secret + b"\r\nX-Api-Key: " + secret + b"\r\nCookie: " + secret + b"\r\n"
    )
    answer = OK + b"Authorization: " + secret + b"\r\nSet-Cookie: a=" + secret + b"\r\nContent-Length: 2\r\n\r\nok"
    good = head + b"Content-Length: 2\r\n\r\n{}"
    with Witness(tmp_path) as witness:
        stage = Stage(witness)
        stage.play([("C>", good), ("U<", good), ("U>", answer), ("C<", answer)])
        stage.play([("C>", head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), ("C~", rb"HTTP/1.1 400 .*")])
        broken = Stage(witness)
        broken.play([("C>", good), ("U<", good), ("U>", answer.replace(b"\r\nC", b"\nC")), ("C~", rb"HTTP/1.1 502 .*")])
        assert [receipt["reason"] for receipt in witness.receipts(3)] == [None, "refused", "upstream-malformed"]
        stage.close()
        broken.close()
        said = witness.stop()
    assert secret.decode() not in said
    found = files_under(tmp_path)
    assert b"/v1/chat/completions" in found
    assert secret not in found
    assert b"uthorization" not in found


# -- ending ------------------------------------------------------------------------------------------


def test_sigterm_finishes_what_is_under_way(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        idle, busy = witness.connect(), Stage(witness)
        busy.play([("C>", GET), ("U<", GET), ("U>", OK + b"Content-Length: 4\r\n\r\nab")])
        busy.play([("C<", OK + b"Content-Length: 4\r\n\r\nab")])
        witness.process.send_signal(signal.SIGTERM)
        assert idle.recv(1) == b""  # the signal has arrived
        with pytest.raises(ConnectionRefusedError):
            witness.connect()
        busy.play([("U>", b"cd"), ("C<", b"cd"), ("C<|",)])
        busy.close()
        assert witness.end(0) == ""
        [receipt] = witness.receipts(1)
        assert receipt["complete"] is True
        assert witness.body(receipt["responseSha256"]) == b"abcd"


def test_sigterm_cuts_what_takes_longer_than_the_drain_time(tmp_path: Path) -> None:
    with Witness(tmp_path, "--drain-seconds", "0.2") as witness:
        stage = Stage(witness)
        stage.play([("C>", GET), ("U<", GET)])
        witness.process.send_signal(signal.SIGTERM)
        assert witness.end(0) == ""
        [receipt] = witness.receipts(1)
        assert (receipt["complete"], receipt["reason"]) == (False, "timeout")
        witness.check_ledger()
        stage.close()


def test_after_a_kill_the_open_file_tells_what_was_under_way(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        done, cut = Stage(witness), Stage(witness)
        done.play(EXCHANGE)
        witness.receipts(1)
        cut.play([("C>", GET.replace(b"001", b"002")), ("U<", GET.replace(b"001", b"002"))])
        witness.process.kill()
        witness.process.wait()
        done.close()
        cut.close()
    opened = [json.loads(line) for line in witness.opens.read_bytes().splitlines()]
    receipts = [json.loads(line) for line in witness.ledger.read_bytes().splitlines()]
    assert [line["sequence"] for line in receipts] == [1]
    assert opened[1] == {"path": "/v1/models", "requestId": "attempt-002", "sequence": 2}
    with Witness(tmp_path, "--resume") as witness:
        witness.read = 1
        stage = Stage(witness)
        stage.play(EXCHANGE)
        stage.close()
        assert witness.receipts(1)[0]["sequence"] == 3  # the number of the lost exchange is not given again
        witness.stop()


# -- a disk that is full -----------------------------------------------------------------------------


def limit_files(length: int) -> Callable[[], None]:
    """No file of the process may grow beyond `length` bytes, as on a disk that is full."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (length, length))


def test_a_full_disk_lets_the_exchange_pass_and_ends_with_5(tmp_path: Path) -> None:
    body = bytes(range(256)) * 4096
    request = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with Witness(tmp_path, preexec_fn=limit_files(600_000)) as witness:
        stage = Stage(witness)
        sender = threading.Thread(target=stage.client.sendall, args=(request,))
        sender.start()
        stage.play([("U<", request), ("U>", SIZED), ("C<", SIZED)])
        sender.join()
        said = witness.end(5)
        stage.close()
    assert len(re.findall("error: cannot record a body", said)) == 1
    assert "Traceback" not in said
    [receipt] = witness.receipts(1)
    assert receipt["requestSha256"] == hashlib.sha256(body).hexdigest()
    assert receipt["complete"] is True
    assert witness.body(receipt["responseSha256"]) == b"ok"
    [partial] = [path for path in witness.bodies.iterdir() if path.name.endswith("-request.partial")]
    assert body.startswith(partial.read_bytes())


def test_a_full_disk_never_leaves_half_a_ledger_line(tmp_path: Path) -> None:
    with Witness(tmp_path, preexec_fn=limit_files(2000)) as witness:
        for _ in range(3):
            stage = Stage(witness)
            stage.play(EXCHANGE)
            stage.close()
            witness.receipts(1)
        stage = Stage(witness)
        stage.play(EXCHANGE)  # its receipt finds no room
        stage.close()
        said = witness.end(5)
    assert said.count("error: cannot write to") == 1
    content = witness.ledger.read_bytes()
    assert content.endswith(b"}\n")
    receipts = [json.loads(line) for line in content.splitlines()]
    assert [receipt["sequence"] for receipt in receipts] == [1, 2, 3]
    assert witness.opens.read_bytes().endswith(b"}\n")


def test_a_bodies_folder_that_vanishes_ends_with_5(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        shutil.rmtree(witness.bodies)
        stage = Stage(witness)
        stage.play(EXCHANGE)
        said = witness.end(5)
        stage.close()
        assert "cannot record a body" in said
        assert witness.receipts(1)[0]["complete"] is True


# -- bounded memory ----------------------------------------------------------------------------------


def resident(witness: Witness, key: str = "VmHWM") -> int:
    """Peak resident bytes of the proxy, from the kernel."""
    status = Path(f"/proc/{witness.process.pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_pass_in_constant_memory(tmp_path: Path, chunked: bool) -> None:
    """64 MiB each way; set PROXY_TEST_BYTES for more."""
    total = int(os.environ.get("PROXY_TEST_BYTES", 64 << 20))
    block = hashlib.sha512(b"seed").digest() * 1024  # 64 KiB
    framed = b"%x\r\n" % len(block) + block + b"\r\n" if chunked else block
    framing = b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Content-Length: %d\r\n\r\n" % total
    end = b"0\r\n\r\n" if chunked else b""
    wire = total // len(block) * len(framed) + len(end)

    def send(side: socket.socket) -> None:
        for _ in range(total // len(block)):
            side.sendall(framed)
        side.sendall(end)

    def read(side: socket.socket) -> str:
        seen, left = hashlib.sha256(), wire
        while left:
            data = side.recv(min(left, 1 << 20))
            assert data
            seen.update(data)
            left -= len(data)
        return seen.hexdigest()

    expected, expected_wire = hashlib.sha256(), hashlib.sha256()
    for _ in range(total // len(block)):
        expected.update(block)
        expected_wire.update(framed)
    expected_wire.update(end)
    with Witness(tmp_path) as witness:
        stage = Stage(witness)
        before = resident(witness)
        for way, head in (("request", POST + framing), ("response", OK + framing)):
            stage.play([("C>", head), ("U<", head)] if way == "request" else [("U>", head), ("C<", head)])
            sender, reader = (stage.client, stage.worker) if way == "request" else (stage.worker, stage.client)
            sending = threading.Thread(target=send, args=(sender,))
            sending.start()
            assert read(reader) == expected_wire.hexdigest()
            sending.join()
        [receipt] = witness.receipts(1)
        assert receipt["requestSha256"] == receipt["responseSha256"] == expected.hexdigest()
        assert receipt["requestBytes"] == total
        assert resident(witness) - before < 8 << 20
        stage.close()
        witness.stop()
        witness.check_ledger()


def send_until_stuck(sender: socket.socket, view: memoryview) -> int:
    """Send until nothing has been taken for the socket's time-out; return how much was."""
    sent = 0
    while sent < len(view):
        try:
            sent += sender.send(view[sent : sent + 65536])
        except TimeoutError:
            break
    return sent


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("slow", ["client", "worker"])
def test_a_slow_reader_holds_its_sender_back(tmp_path: Path, slow: str) -> None:
    """While the reader does not read, the sender soon cannot send; then all of it arrives."""
    total = 64 << 20
    with Witness(tmp_path) as witness:
        stage = Stage(witness)
        before = resident(witness)
        length = b"Content-Length: %d\r\n\r\n" % total
        if slow == "client":
            stage.play([("C>", GET), ("U<", GET)])
            sender, reader, head = stage.worker, stage.client, OK + length
        else:
            stage.play([("C>", POST + length), ("U<", POST + length)])
            sender, reader, head = stage.client, stage.worker, b""
        data = head + bytes(total)
        view = memoryview(data)
        sender.settimeout(0.5)
        sent = send_until_stuck(sender, view)
        assert sent < total // 2
        assert resident(witness) - before < 8 << 20
        sender.settimeout(PATIENCE)
        rest = threading.Thread(target=sender.sendall, args=(view[sent:],))
        rest.start()
        left = len(data)
        while left:
            left -= len(reader.recv(1 << 20)) or left
        rest.join()
        if slow == "worker":
            stage.play([("U>", SIZED), ("C<", SIZED)])
        [receipt] = witness.receipts(1)
        assert total in (receipt["requestBytes"], receipt["responseBytes"])
        assert receipt["complete"] is True
        stage.close()
        witness.stop()


def test_many_connections_at_once(tmp_path: Path) -> None:
    with Witness(tmp_path) as witness:
        stages = [Stage(witness) for _ in range(100)]
        for stage in stages:
            stage.play([("C>", GET), ("U<", GET)])
        for stage in reversed(stages):
            stage.play([("U>", SIZED), ("C<", SIZED)])
        receipts = witness.receipts(100)
        assert {receipt["sequence"] for receipt in receipts} == set(range(1, 101))
        for stage in stages:
            stage.close()
        assert witness.stop() == ""
        witness.check_ledger()


@pytest.mark.parametrize("minor", ["8", "9", "10", "12", "13"])
def test_other_pythons_run_it(tmp_path: Path, minor: str) -> None:
    python = shutil.which(f"python3.{minor}")
    if python is None or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"no Python 3.{minor} here")
    with Witness(tmp_path, python=python) as witness:
        stage = Stage(witness)
        stage.play(EXCHANGE)
        stage.close()
        witness.receipts(1)
        assert witness.stop() == ""
        witness.check_ledger()
