"""What the recording proxy adds to the time to first token: `python -m benchmarks.proxy [--json]`.

Three processes on loopback: a streaming worker, the proxy, and this load. At concurrency 8 the same load
goes straight to the worker and through the proxy, in turns of a few hundred milliseconds within one run, so
that both see the same noise. Worker and load are bare loops over select(2) and socket calls, so that what
is measured is the proxy. Reported for both ways, with connections kept and with a fresh one a request:
nearest-rank p50, p95, p99 of the time from just before the send to the read that completes the first
content event, and the difference of the p95s. Target: at most 1 ms.

Answers differ in length, as answers do, so that the eight requests do not fall into step. `--in-step` gives
all the same length: then eight streams end, and eight requests begin, in one instant, and each waits for the
seven before it; that is the worst case of any program with one loop, and it is reported, not judged.
The figures need a core for each of the three processes; with fewer they measure the scheduler.
"""

from __future__ import annotations

import argparse
import heapq
import json
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONCURRENCY = 8
TARGET_MS = 1.0
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"' + b"word " * 200 + b'"}]}'
FIRST_TOKEN_SECONDS = 0.010
GAP_SECONDS = 0.005
TOKENS = 10
CONTENT = b'"content":"w'
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ROLE = chunk(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n')
TOKEN = chunk(b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n')
DONE = chunk(b"data: [DONE]\n\n") + END


def serve(in_step: bool) -> None:
    """The worker: head and role chunk at once, then tokens at fixed times after the request was whole."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    received: dict[socket.socket, bytes] = {}
    due: list[tuple[float, int, socket.socket, bytes]] = []
    number = served = 0
    while True:
        wait = max(0.0, due[0][0] - time.monotonic()) if due else None
        for side in select.select([listener, *received], [], [], wait)[0]:
            if side is listener:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                received[client] = b""
                continue
            data = side.recv(65536)
            if not data:
                del received[side]
                side.close()
                continue
            received[side] += data
            if received[side].endswith(BODY):
                received[side] = b""
                now = time.monotonic()
                side.sendall(HEAD + ROLE)
                served += 1
                tokens = TOKENS if in_step else TOKENS - 5 + served * 7 % 11
                gap = GAP_SECONDS if in_step else GAP_SECONDS + served % 8 * 0.0003
                for token in range(tokens):
                    number += 1
                    moment = now + FIRST_TOKEN_SECONDS + token * gap
                    heapq.heappush(due, (moment, number, side, TOKEN if token < tokens - 1 else TOKEN + DONE))
        while due and due[0][0] <= time.monotonic():
            _, _, side, data = heapq.heappop(due)
            if side in received:
                side.sendall(data)


def load(port: int, requests: int, kept: list[socket.socket] | None) -> list[int]:
    """Send `requests` at concurrency 8; return each one's time to first token in nanoseconds."""
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: w\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(BODY)
    ) + BODY
    times: list[int] = []
    slots: dict[socket.socket, list[Any]] = {}
    left = requests

    def begin(side: socket.socket | None) -> None:
        nonlocal left
        left -= 1
        started = time.perf_counter_ns()
        if side is None:
            side = socket.create_connection(("127.0.0.1", port))
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        slots[side] = [started, b"", False]
        side.sendall(request)

    for slot in range(min(CONCURRENCY, requests)):
        begin(kept[slot] if kept else None)
    while slots:
        for side in select.select(list(slots), [], [])[0]:
            data = side.recv(65536)
            now = time.perf_counter_ns()
            state = slots[side]
            state[1] += data
            if not data:
                raise SystemExit("error: a stream ended early")
            if not state[2] and CONTENT in state[1]:
                state[2] = True
                times.append(now - state[0])
            if state[1].endswith(END):
                del slots[side]
                if kept is None:
                    side.close()
                if left:
                    begin(side if kept else None)
    return times


def connect(port: int) -> list[socket.socket]:
    sides = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONCURRENCY)]
    for side in sides:
        side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sides


def rank(values: list[int], percent: int) -> float:
    """Nearest rank, in milliseconds."""
    ordered = sorted(values)
    return ordered[-(-percent * len(ordered) // 100) - 1] / 1e6


def measure(turns: int, per_turn: int, in_step: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.proxy", "--serve", *(["--in-step"] if in_step else [])]
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert worker.stdout
        direct = int(worker.stdout.readline())
        script = str(ROOT / "verifiers" / "receipt-proxy.py")
        options = ["--worker", "worker-1", "--ledger", f"{folder}/ledger.jsonl", "--bodies", f"{folder}/bodies"]
        proxy = subprocess.Popen(
            [sys.executable, script, "--upstream", f"http://127.0.0.1:{direct}", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert proxy.stdout
        proxied = int(proxy.stdout.readline().rpartition(":")[2])
        result: dict[str, Any] = {"concurrency": CONCURRENCY, "targetMs": TARGET_MS, "inStep": in_step, "ways": []}
        try:
            for name in ("kept", "fresh"):
                sides = {port: connect(port) if name == "kept" else None for port in (direct, proxied)}
                times: dict[int, list[int]] = {direct: [], proxied: []}
                for port in (direct, proxied):
                    load(port, CONCURRENCY, sides[port])
                for turn in range(turns):
                    for port in (direct, proxied) if turn % 2 else (proxied, direct):
                        times[port] += load(port, per_turn, sides[port])
                row: dict[str, Any] = {"connections": name, "requests": len(times[proxied])}
                for percent in (50, 95, 99):
                    row[f"directP{percent}Ms"] = round(rank(times[direct], percent), 3)
                    row[f"proxyP{percent}Ms"] = round(rank(times[proxied], percent), 3)
                    row[f"addedP{percent}Ms"] = round(row[f"proxyP{percent}Ms"] - row[f"directP{percent}Ms"], 3)
                row["holds"] = row["addedP95Ms"] <= TARGET_MS
                result["ways"].append(row)
        finally:
            proxy.terminate()
            code = proxy.wait(30)
            worker.kill()
            worker.wait()
        ledger = Path(folder, "ledger.jsonl").read_bytes().splitlines()
        result["receipts"] = len(ledger)
        result["incomplete"] = sum(not json.loads(line)["complete"] for line in ledger)
        result["proxyExitCode"] = code
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description="What the recording proxy adds to the time to first token.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--turns", type=int, default=20, help="turns of each way (20)")
    parser.add_argument("--requests", type=int, default=48, help="requests a turn (48)")
    parser.add_argument("--in-step", action="store_true", help="all answers equally long: the worst case")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.in_step)
    result = measure(options.turns, options.requests, options.in_step)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"time to first token at concurrency {CONCURRENCY}, milliseconds")
        print(f"{'connections':12} {'':4} {'direct':>8} {'proxy':>8} {'added':>8}")
        for row in result["ways"]:
            for percent in (50, 95, 99):
                figures = (row[f"{way}P{percent}Ms"] for way in ("direct", "proxy", "added"))
                print(f"{row['connections']:12} p{percent:<3} " + " ".join(f"{figure:8.3f}" for figure in figures))
            print(f"{'':12} target: p95 adds at most {TARGET_MS} ms: {'holds' if row['holds'] else 'MISSED'}")
    return 0 if options.in_step or all(row["holds"] for row in result["ways"]) else 1


if __name__ == "__main__":
    sys.exit(main())
