"""How true are the times of our client, and of others, against a server that knows when its writes left?

    python -m benchmarks.client_accuracy [--json|--markdown] [--concurrency 1 8 64 256] [--peers all|none|NAME ...]

The server streams by a schedule: first text after 1 ms to 2 s, then 16 more events with gaps of 1 to 50 ms, with role
chunks, reasoning, comments, several events in one write and one event over several writes mixed in. The truth of a request is (left - arrived) on the server's side, its arrival stamped by the kernel; the error
is what the client reports less that, so a client's clocks need not be trusted. The two loopback passages are
in it. A peer runs in an environment of its own (see benchmarks/client_peers). Processor time is all that the client's
process used between the first request and the last, its threads and the preparing of requests included; of ours what
a run folder costs is left out (a recorder in memory), as a peer's result files are. Every client, ours and each peer alike,
first makes a warm-up batch in the same process (as many requests as it then keeps open, at least 4) that counts nowhere, for
an arm has one too: its main batch is never offered by a process that has sent nothing yet.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import client_peers
from benchmarks.client_peers import PEERS, Peer
from benchmarks.client_peers.driving import warm_ups
from benchmarks.emission_cases import CASES, TEXT_AT
from evidence.capture.endings import Known
from evidence.capture.lateness import LagMonitor
from evidence.capture.load import Exchange, Plan, offer_batch

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = {1: 24, 8: 200, 64: 960, 256: 2048}
WANTED_MS = {8: 0.3, 64: 0.5, 256: 1.0}
BODY = json.dumps(
    {"model": "synthetic", "messages": [{"role": "user", "content": "go"}], "stream": True, "max_tokens": 64}
).encode()


class Memory:
    """A recorder that keeps its lines in memory."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def offer(self, plan: Plan, intended_ns: int) -> None:
        self.lines.append(("offer", plan.offer))

    def sample(self, exchange: Exchange) -> None:
        self.lines.append(("sample", exchange.offer))


@contextmanager
def emission_server() -> Iterator[int]:
    """Run the server in a process of its own; yields its port."""
    command = [sys.executable, "-m", "benchmarks.emission_server"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline().split()[1])
    finally:
        server.stdin.close()
        server.wait(10)


def take_truth(port: int) -> dict[str, Any]:
    """What really happened since the last call."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/truth") as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def make_plans(port: int, count: int, path: str = "/v1/chat/completions") -> list[Plan]:
    url = f"http://127.0.0.1:{port}{path}"
    return [Plan(f"b-{n:05}", 1, "A", "main", "native", None, url, BODY, 60.0) for n in range(count)]


def number_of(body: bytes) -> int | None:
    """The request number, which the first text of an answer tells."""
    found = re.search(rb'"content": "n(\d+) "', body)
    return int(found[1]) if found else None


def measure_ours(port: int, concurrency: int, requests: int, *, reuse: bool = False) -> dict[str, Any]:
    """Run our client and report its errors."""

    known: Known = {}

    async def run(count: int) -> tuple[list[Exchange], dict[str, Any]]:
        async with LagMonitor() as monitor:
            found = await offer_batch(
                make_plans(port, count), concurrency=concurrency, recorder=Memory(), reuse=reuse, known=known
            )
        return found, monitor.record()

    asyncio.run(run(warm_ups(concurrency)))
    before = resource.getrusage(resource.RUSAGE_SELF)
    exchanges, client = asyncio.run(run(requests))
    after = resource.getrusage(resource.RUSAGE_SELF)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    measured = {
        number: (e.ttft_ns / 1e6 if e.ttft_ns is not None else None, e.total_ns / 1e6)
        for e in exchanges
        if e.transport == "complete" and (number := number_of(e.response_body)) is not None
    }
    clocks = sorted({e.clock for e in exchanges})
    return compare(port, measured, requests) | {
        "client": "ours",
        "processor_ms": processor / requests * 1e3,
        "clock": "+".join(clocks),
        "late": client["late"],
        "loop_lag_p99_ms": client["loopLagP99Seconds"] * 1e3,
    }


def compare(
    port: int, measured: dict[int, tuple[float | None, float | None]], requests: int, starts_at: str = "first_text"
) -> dict[str, Any]:
    """The errors of measured (TTFT, total) in milliseconds by request number, against the server's truth."""
    truth = take_truth(port)
    first, total = [], []
    for one in truth["requests"]:
        ttft_ms, total_ms = measured.get(one["number"], (None, None))
        if ttft_ms is not None:
            first.append(abs(ttft_ms - (one[starts_at] - one["arrival"]) / 1e6))
        if total_ms is not None:
            total.append(abs(total_ms - (one["end"] - one["arrival"]) / 1e6))
    return {
        "requests": requests,
        "lost": requests - len(first),
        "in_flight": truth["most_open"],
        "ttft_error_ms": spread(first),
        "total_error_ms": spread(total),
    }


def spread(values: list[float]) -> dict[str, float | None]:
    """p50, p99 (nearest rank) and maximum."""
    values = sorted(values)
    if not values:
        return {"p50": None, "p99": None, "max": None}
    return {
        "p50": values[math.ceil(len(values) * 0.50) - 1],
        "p99": values[math.ceil(len(values) * 0.99) - 1],
        "max": values[-1],
    }


def judge_ours(port: int) -> dict[str, str]:
    """Read every case; the answer is `right` or what was wrong."""
    found = {}
    for name, case in CASES.items():
        plans = make_plans(port, 1, f"/case/{name}/v1/chat/completions")
        (exchange,) = asyncio.run(offer_batch(plans, concurrency=1, recorder=Memory()))
        ttft = exchange.ttft_ns / 1e9 if exchange.ttft_ns is not None else None
        found[name] = case_verdict(name, ttft, exchange.whole, exchange.completion_tokens)
        if case.events is not None and len(exchange.event_ns) != case.events:
            found[name] = f"{len(exchange.event_ns)} events, not {case.events}"
    return found


def case_verdict(name: str, ttft: float | None, good: bool, tokens: int | None) -> str:
    """Compare one reading of a case with the right one. What a client calls a failure it need not time."""
    case, wrong = CASES[name], []
    told_a_failure = not good and not case.good and ttft is None
    if case.text and not told_a_failure and (ttft is None or not TEXT_AT - 0.002 <= ttft <= TEXT_AT + 0.018):
        # Anything but the time of the first text shows as at least 20 ms.
        wrong.append(f"first text {'never' if ttft is None else f'{ttft * 1e3:.0f} ms'}, not {TEXT_AT * 1e3:.0f} ms")
    if not case.text and ttft is not None:
        wrong.append(f"first text {ttft * 1e3:.0f} ms, there is none")
    if good != case.good:
        wrong.append("success" if good else "failure")
    if good and case.good and tokens != case.tokens:
        wrong.append(f"{tokens} tokens, not {case.tokens}")
    return "; ".join(wrong) or "right"


def measure_peer(peer: Peer, port: int, concurrency: int, requests: int) -> dict[str, Any]:
    """Run a peer; what it could not do is said in `note`."""
    take_truth(port)
    outcome = peer.measure(port, concurrency, requests)
    result = compare(port, outcome.measured, requests, peer.starts_at)
    return result | {
        "client": peer.name,
        "processor_ms": outcome.processor_seconds / requests * 1e3,
        "note": outcome.note,
    }


def find_misses(one: dict[str, Any]) -> list[str]:
    """What one row of ours misses of what is wanted."""
    at, p99 = f"concurrency {one['concurrency']}: ", one["ttft_error_ms"]["p99"]
    missed = []
    if one["lost"]:
        missed.append(f"{at}{one['lost']} lost")
    if one["in_flight"] < one["concurrency"]:
        missed.append(f"{at}{one['in_flight']} in flight")
    if p99 is None or p99 > WANTED_MS.get(one["concurrency"], 1.0):
        missed.append(f"{at}TTFT error {p99} ms at p99")
    if one["processor_ms"] > 1.0:
        missed.append(f"{at}{one['processor_ms']:.2f} ms of processor a request")
    return missed


def show(results: list[dict[str, Any]]) -> None:
    """Print the table of errors."""
    print(
        f"{'client':16}{'conc.':>6}{'flying':>8}{'lost':>6}{'TTFT error ms p50/p99/max':>30}{'total':>30}{'cpu ms':>8}  clock"
    )
    for one in results:
        texts = []
        for key in ("ttft_error_ms", "total_error_ms"):
            values = one[key].values()
            texts.append(" / ".join("-" if v is None else f"{v:.3f}" for v in values))
        print(
            f"{one['client']:16}{one['concurrency']:>6}{one['in_flight']:>8}{one['lost']:>6}{texts[0]:>30}{texts[1]:>30}"
            f"{one['processor_ms']:>8.2f}  {one.get('clock', one.get('note', ''))}"
        )


def show_markdown(found: dict[str, Any]) -> None:
    """Print the same as markdown, with where and when it was measured."""
    results, cases, absent, missed = found["results"], found["cases"], found["absent"], found["missed"]
    processors = len(os.sched_getaffinity(0))
    print(
        f"Measured on {found['at']}, Python {platform.python_version()}, {processors} processors, shared with "
        f"the server and whatever else ran (load up to {found['load']:.1f}).\n"
    )
    print(
        "| client | concurrency | in flight | requests | lost | TTFT error, ms (p50 / p99 / max) | total error, ms | CPU, ms a request |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for one in results:
        errors = [
            " / ".join("-" if value is None else f"{value:.3f}" for value in one[key].values())
            for key in ("ttft_error_ms", "total_error_ms")
        ]
        print(
            f"| {one['client']} | {one['concurrency']} | {one['in_flight']} | {one['requests']} | {one['lost']} "
            f"| {errors[0]} | {errors[1]} | {one['processor_ms']:.2f} |"
        )
    if cases:
        print("\n| case | fault | " + " | ".join(cases) + " |")
        print("|---|---|" + "---|" * len(cases))
        for name, case in CASES.items():
            print(f"| {name} | {case.fault} | " + " | ".join(found[name] for found in cases.values()) + " |")
        wrong = {name: sum(verdict != "right" for verdict in found.values()) for name, found in cases.items()}
        print(
            f"\nWrong by definition, of {len(CASES)}: " + ", ".join(f"{name} {count}" for name, count in wrong.items())
        )
    for name, why in absent.items():
        print(f"\n{name} was not measured: {why}")
    print("\nMissed: " + "; ".join(missed) if missed else "\nAll that is wanted was met.")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything that the command line asks for."""
    names = list(PEERS) if "all" in options.peers else [name for name in options.peers if name != "none"]
    results, cases, absent = [], {}, {}
    with emission_server() as port:
        for concurrency in [] if options.no_ours else options.concurrency:
            requests = options.requests or REQUESTS.get(concurrency, 8 * concurrency)
            results.append(measure_ours(port, concurrency, requests) | {"concurrency": concurrency})
        if not options.no_cases and not options.no_ours:
            cases["ours"] = judge_ours(port)
            take_truth(port)
        for name in names:
            peer = PEERS[name]
            try:
                peer.prepare()
                for concurrency in options.concurrency:
                    requests = options.requests or REQUESTS.get(concurrency, 8 * concurrency)
                    results.append(measure_peer(peer, port, concurrency, requests) | {"concurrency": concurrency})
                if not options.no_cases and peer.reads:
                    take_truth(port)
                    read = peer.read_cases(port, list(CASES))
                    cases[name] = {case: case_verdict(case, *one) for case, one in zip(CASES, read, strict=True)}
            except (subprocess.SubprocessError, OSError, ValueError) as error:
                absent[name] = str(error)
                print(f"{name}: not measured: {error}", file=sys.stderr)
    missed = [what for one in results if one["client"] == "ours" for what in find_misses(one)]
    missed += [f"case {name}" for name, verdict in cases.get("ours", {}).items() if verdict != "right"]
    return {
        "at": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg()[0],
        "results": results,
        "cases": cases,
        "absent": absent,
        "missed": missed,
    }


def main() -> int:
    """Run the benchmark; 1 when our client misses what is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=client_peers.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="tables as they stand in docs/client-accuracy.md")
    parser.add_argument("--concurrency", type=int, nargs="*", default=[1, 8, 64, 256])
    parser.add_argument("--requests", type=int, help="requests at each concurrency")
    parser.add_argument("--peers", nargs="+", default=["none"], metavar="NAME", help=f"all, none, {', '.join(PEERS)}")
    parser.add_argument("--no-cases", action="store_true")
    parser.add_argument("--no-ours", action="store_true", help="measure the peers alone")
    parser.add_argument(
        "--from", dest="stored", nargs="+", metavar="FILE", help="measure nothing: show what --json said"
    )
    options = parser.parse_args()
    if options.stored:
        told = [json.loads(Path(name).read_text()) for name in options.stored]
        found = {
            "at": ", ".join(sorted({one["at"] for one in told})),
            "load": max(one["load"] for one in told),
            "results": [row for one in told for row in one["results"]],
            "cases": {name: verdicts for one in told for name, verdicts in one["cases"].items()},
            "absent": {name: why for one in told for name, why in one["absent"].items()},
            "missed": [what for one in told for what in one["missed"]],
        }
    else:
        found = measure(options)
    if options.json:
        print(json.dumps(found, indent=2))
    elif options.markdown:
        show_markdown(found)
    else:
        show(found["results"])
        cases = found["cases"]
        if cases:
            print(f"\n{'case':20}" + "".join(f"{name:36}" for name in cases))
            for case in CASES:
                print(f"{case:20}" + "".join(f"{verdicts[case][:34]:36}" for verdicts in cases.values()))
        print("\nmissed: " + "; ".join(found["missed"]) if found["missed"] else "\nall that is wanted was met")
    return 1 if found["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
