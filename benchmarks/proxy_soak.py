"""Many exchanges with random faults through the proxy: `python -m benchmarks.proxy_soak [--exchanges N] [--json]`.

At concurrency 64, about half of the exchanges are whole (sized, chunked or close-delimited, in odd cuts, some with
bodies beyond what the proxy keeps in memory) and the rest break in a random way, on either side. Afterwards
the ledger is held against what client and worker know they did: 0 lost and 0 doubled receipts, 0 wrong hashes,
every cited body in its place under its true hash, and the proxy's resident memory flat: the peak of the
second half is less than 8 MiB above that of the first. Exit 0 if all of it holds.

Both sides derive every body from its number, so each can tell what the other must have seen.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import hashlib
import json
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

ROOT = Path(__file__).parents[1]
CONCURRENCY = 64
GROWTH_LIMIT = 8 << 20
BLOCK = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(20000))  # 640 KB
WHOLE = ["sized", "chunked", "until-close", "head", "interim"]
FAULTS = {  # what breaks, and the reasons that its receipt may give
    "client-resets-waiting": {"client-closed"},
    "client-closes-inside-body": {"client-closed"},
    "client-resets-inside-answer": {"client-closed"},
    "client-sends-two-lengths": {"refused"},
    "client-sends-bad-chunk": {"refused"},
    "worker-closes-at-once": {"upstream-closed"},
    "worker-closes-inside-answer": {"upstream-closed"},
    "worker-resets-inside-answer": {"upstream-closed"},
    "worker-sends-two-framings": {"upstream-malformed"},
    "worker-sends-bad-chunk": {"upstream-malformed"},
}


def body_of(number: int, side: str) -> bytes:
    """The body that the client or the worker sends in exchange `number`."""
    kind = number % 509 + (1000 if side == "worker" else 0)
    length = 300_000 if kind % 500 == 7 else kind * 7919 % 6000
    start = kind * 104729 % (len(BLOCK) - 300_000)
    return BLOCK[start : start + length]


def chunks_of(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x;n=1\r\n%s\r\n" % (len(part), part) for part in parts)


def reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# -- the worker ------------------------------------------------------------------------------------


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection; the header X-Plan says how each answer is to go."""
    try:
        while await answer_one(reader, writer):
            pass
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(b": ", 1) for line in head[:-4].split(b"\r\n")[1:])
    number, plan = int(fields[b"X-Request-Id"]), fields[b"X-Plan"].decode()
    body = body_of(number, "worker")
    half = body[: len(body) // 2]
    ok = b"HTTP/1.1 200 OK\r\n"
    if plan in ("client-resets-waiting", "client-closes-inside-body", "interim"):
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")  # tells the client that its bytes have come through
    if b"Content-Length" in fields:
        await reader.readexactly(int(fields[b"Content-Length"]))
    else:
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    if plan == "client-resets-waiting":
        await reader.read(1)
        return False
    if plan == "worker-closes-at-once":
        return False
    if plan in ("worker-closes-inside-answer", "worker-resets-inside-answer"):
        writer.write(ok + b"Content-Length: %d\r\n\r\n" % (len(body) + 1) + half)
        await writer.drain()
        if plan == "worker-resets-inside-answer":
            reset(writer)
        return False
    if plan == "worker-sends-two-framings":
        writer.write(ok + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        await reader.read(1)
        return False
    if plan == "worker-sends-bad-chunk":
        writer.write(ok + b"Transfer-Encoding: chunked\r\n\r\n" + chunks_of(half, 700) + b"5x\r\nhello\r\n")
        await reader.read(1)
        return False
    if plan == "client-resets-inside-answer":
        writer.write(ok + b"Content-Length: %d\r\n\r\n" % (len(body) + 1) + body)
        await reader.read(1)
        return False
    if plan in ("chunked", "interim"):
        data = ok + b"Transfer-Encoding: chunked\r\n\r\n" + chunks_of(body, 900) + b"0\r\nX-Sum: 1\r\n\r\n"
        for at in range(0, len(data), 100_000 if len(data) > 9000 else 1777):
            writer.write(data[at : at + (100_000 if len(data) > 9000 else 1777)])
            await writer.drain()
            await asyncio.sleep(0)
        return True
    if plan == "until-close":
        writer.write(ok + b"\r\n" + body)
        await writer.drain()
        return False
    writer.write(ok + b"Content-Length: %d\r\n\r\n" % len(body) + (b"" if plan == "head" else body))
    await writer.drain()
    return True


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 20, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# -- the client ------------------------------------------------------------------------------------


class Load:
    """Sends the exchanges and notes, for each, its plan and how many bytes of the answer came."""

    def __init__(self, port: int, exchanges: int, seed: int) -> None:
        self.port = port
        self.random = random.Random(seed)
        self.left = iter(range(1, exchanges + 1))
        self.done = 0
        self.plans: dict[int, str] = {}
        self.received: dict[int, int] = {}
        self.wrong: list[str] = []

    async def work(self) -> None:
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        for number in self.left:
            plan = self.random.choice([*WHOLE, *WHOLE, *FAULTS])
            self.plans[number] = plan
            if connection is None:
                connection = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
            try:
                kept = await asyncio.wait_for(self.exchange(number, plan, *connection), 60)
            except (asyncio.IncompleteReadError, ConnectionError):
                kept = False
                if plan in WHOLE:
                    self.wrong.append(f"exchange {number} ({plan}) broke")
            except asyncio.TimeoutError:
                kept = False
                self.wrong.append(f"exchange {number} ({plan}) hangs")
            if not kept:
                connection[1].close()
                connection = None
            self.done += 1
        if connection is not None:
            connection[1].close()

    async def exchange(
        self, number: int, plan: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """One exchange after its plan. True if the connection can be used again."""
        body = b"" if plan == "head" else body_of(number, "client")
        method = b"HEAD" if plan == "head" else b"POST"
        head = b"%s /v1/chat/completions HTTP/1.1\r\nHost: w\r\nX-Request-Id: %d\r\nX-Plan: %s\r\n" % (
            method,
            number,
            plan.encode(),
        )
        if plan == "client-sends-two-lengths":
            writer.write(head + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n")
            await reader.read()
            return False
        if plan == "client-sends-bad-chunk":
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks_of(body, 500) + b"-1\r\n")
            await reader.read()
            return False
        if plan == "client-closes-inside-body":
            writer.write(head + b"Content-Length: %d\r\n\r\n" % (len(body) + 1) + body)
            await reader.readuntil(b"\r\n\r\n")
            return False
        if number % 3:
            writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        else:
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
            writer.write(chunks_of(body, 800) + b"0\r\n\r\n")
        await writer.drain()
        answered = await reader.readuntil(b"\r\n\r\n")
        if plan == "client-resets-waiting":
            reset(writer)
            return False
        if plan == "interim":
            answered = await reader.readuntil(b"\r\n\r\n")
        expected = body_of(number, "worker")
        if plan == "client-resets-inside-answer":
            self.received[number] = len(await reader.read(4096))
            reset(writer)
            return False
        if plan in FAULTS:
            await reader.read()
            return False
        if plan == "head":
            found = expected
        elif plan == "until-close":
            found = await reader.read()
        elif b"chunked" in answered:
            found = b""
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                found += (await reader.readexactly(size + 2))[:-2]
            await reader.readuntil(b"\r\n\r\n")
        else:
            found = await reader.readexactly(len(expected))
        if found != expected:
            self.wrong.append(f"exchange {number} ({plan}): the client got other bytes")
        return plan != "until-close"


def resident(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


async def run_load(load: Load, exchanges: int, process: int) -> list[int]:
    """Run all of it; return the proxy's resident bytes at each tenth of the way."""
    memory: list[int] = []

    async def watch() -> None:
        while len(memory) < 10:
            await asyncio.sleep(0.1)
            while len(memory) < 10 and load.done >= exchanges * (len(memory) + 1) // 10:
                memory.append(resident(process))

    await asyncio.gather(watch(), *(load.work() for _ in range(CONCURRENCY)))
    return memory


# -- the account ------------------------------------------------------------------------------------


def prefix_hash(body: bytes, length: int) -> str:
    return hashlib.sha256(body[:length]).hexdigest()


def check_receipt(receipt: dict[str, Any], plan: str, number: int) -> str:
    """What is wrong with a receipt, or nothing."""
    if plan in WHOLE:
        if not receipt["complete"] or receipt["status"] != 200:
            return f"not complete: {receipt['reason']}"
    elif receipt["complete"] or receipt["reason"] not in FAULTS[plan]:
        return f"reason {receipt['reason']}"
    asked = b"" if plan == "head" else body_of(number, "client")
    answered = b"" if plan == "head" else body_of(number, "worker")
    for name, body in (("request", asked), ("response", answered)):
        length = receipt[f"{name}Bytes"]
        if length > len(body) or receipt[f"{name}Sha256"] != prefix_hash(body, length):
            return f"{name} hash"
        if plan in WHOLE and length != len(body):
            return f"{name} length"
    if plan.startswith("worker-") and receipt["requestBytes"] != len(asked):
        return "request length"
    if (
        plan in ("worker-closes-inside-answer", "worker-sends-bad-chunk")
        and receipt["responseBytes"] != len(answered) // 2
    ):
        return "response length"
    return ""


def account(folder: Path, load: Load) -> dict[str, Any]:
    """Hold the ledger against what was done."""
    receipts = [json.loads(line) for line in (folder / "ledger.jsonl").read_bytes().splitlines()]
    opened = [json.loads(line) for line in (folder / "ledger.jsonl.open").read_bytes().splitlines()]
    seen = collections.Counter(int(receipt["requestId"]) for receipt in receipts if receipt["requestId"])
    nameless = sum(plan == "client-sends-two-lengths" for plan in load.plans.values())
    expected = {number for number, plan in load.plans.items() if plan != "client-sends-two-lengths"}
    wrong, cited = [], set()
    for receipt in receipts:
        cited |= {receipt["requestSha256"], receipt["responseSha256"]}
        if receipt["requestId"]:
            number = int(receipt["requestId"])
            fault = check_receipt(receipt, load.plans[number], number)
            if not fault and receipt["responseBytes"] < load.received.get(number, 0):
                fault = "the client got more than was recorded"
            if fault:
                wrong.append(f"exchange {number} ({load.plans[number]}): {fault}")
    stored = {path.name: path for path in (folder / "bodies").iterdir()}
    bad_bodies = sum(hashlib.sha256(path.read_bytes()).hexdigest() != name for name, path in stored.items())
    sequences = sorted(receipt["sequence"] for receipt in receipts)
    return {
        "receipts": len(receipts),
        "lost": len(expected - set(seen)) + max(0, nameless - sum(not receipt["requestId"] for receipt in receipts)),
        "doubled": sum(count - 1 for count in seen.values())
        + max(0, sum(not receipt["requestId"] for receipt in receipts) - nameless),
        "wrong": len(wrong) + len(load.wrong),
        "examples": (wrong + load.wrong)[:10],
        "gaps": sequences != list(range(1, len(receipts) + 1)),
        "openWithoutReceipt": len({line["sequence"] for line in opened} - set(sequences)),
        "bodies": len(stored),
        "bodiesMissing": len(cited - set(stored)),
        "bodiesUncited": len(set(stored) - cited),
        "bodiesWrong": bad_bodies,
        "plans": dict(sorted(collections.Counter(load.plans.values()).items())),
    }


def soak(exchanges: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        worker = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.proxy_soak", "--serve"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout
        upstream = f"http://127.0.0.1:{int(worker.stdout.readline())}"
        script = str(ROOT / "verifiers" / "receipt-proxy.py")
        where = ["--ledger", str(folder / "ledger.jsonl"), "--bodies", str(folder / "bodies")]
        proxy = subprocess.Popen(
            [sys.executable, "-I", script, "--upstream", upstream, "--worker", "worker-1", *where],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert proxy.stdout
            load = Load(int(proxy.stdout.readline().rpartition(":")[2]), exchanges, seed)
            started = time.monotonic()
            memory = asyncio.run(run_load(load, exchanges, proxy.pid))
            seconds = time.monotonic() - started
            proxy.terminate()
            code = proxy.wait(60)
        finally:
            for process in (proxy, worker):
                process.kill()
                process.wait()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = {"exchanges": exchanges, "seed": seed, "seconds": round(seconds, 1), "proxyExitCode": code}
        result |= account(folder, load)
        result["residentMiB"] = [round(value / (1 << 20), 1) for value in memory]
        result["childProcessorSeconds"] = round(used.ru_utime + used.ru_stime, 1)
        zero = (
            "lost",
            "doubled",
            "wrong",
            "gaps",
            "openWithoutReceipt",
            "bodiesMissing",
            "bodiesUncited",
            "bodiesWrong",
        )
        flat = max(memory[5:]) - max(memory[:5]) < GROWTH_LIMIT
        result["holds"] = code == 0 and flat and not any(result[key] for key in zero)
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description="Many exchanges with random faults through the recording proxy.")
    parser.add_argument("--exchanges", type=int, default=200_000, help="how many (200000)")
    parser.add_argument("--seed", type=int, default=1, help="which random run (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
    result = soak(options.exchanges, options.seed)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        for key, value in result.items():
            print(f"{key:22} {value}")
    return 0 if result["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
