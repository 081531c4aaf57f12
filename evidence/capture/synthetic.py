"""The synthetic engine: a deterministic OpenAI-compatible streaming server with faults to order.

`python -m evidence.capture.synthetic --port N --sequence-cap N ...` serves /v1/chat/completions, /v1/completions,
/v1/embeddings, /v1/models, /health, /version, /metrics, /tokenize and /synthetic/memory, prints `ready HOST:PORT`, and
ends on SIGTERM. Nothing here computes a model: what is made with it speaks of the evidence machinery alone.

* Cap: at most --sequence-cap generations run, the others wait in order of arrival.
* Times: a generation begins when it gets its place; its first text leaves --prefill-ms later and each further piece
  --token-ms after the one before, by deadlines, so that lateness does not add up. The loop waits with select(2), whose
  time-out has microseconds where epoll's has milliseconds; that bounds it to about a thousand connections.
* Memory: /synthetic/memory tells weights + cap * context * bytes per token, or with --memory-fraction that share of all.
* Faults: --fault NAME for the generations --fault-from N to --fault-until N (counted from 1, in this process), or one
  request's header X-Synthetic-Fault or field {"synthetic": {"fault": NAME}}.
"""

import argparse
import asyncio
import contextlib
import os
import selectors
import signal
import sys
from pathlib import Path

from evidence.capture.synthetic_connection import Connection
from evidence.capture.synthetic_engine import FAULTS, Engine, is_fault


def parse_settings(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evidence.capture.synthetic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="faults:\n" + "\n".join(f"  {name:18}{what}" for name, what in FAULTS.items()),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=0, help="0 lets the system choose; the ready line says which")
    add("--model", help="the one name that is served, others are refused with 404; without it any name is served")
    add("--seed", type=int, default=0)
    add("--sequence-cap", type=int, default=8)
    add("--answer-tokens", type=int, default=16, help="pieces of an uncapped answer")
    add("--tokens-per-chunk", type=int, default=1, help="tokens that usage counts for one piece")
    add("--prefill-ms", type=float, default=5.0)
    add("--token-ms", type=float, default=1.0)
    add("--late-role", action="store_true", help="send the role chunk with the first text, not before prefill")
    add("--memory-bytes", type=int, default=16 << 30, help="size of the pretended device")
    add("--weights-bytes", type=int, default=2 << 30)
    add("--context-tokens", type=int, default=4096)
    add("--kv-bytes-per-token", type=int, default=131072)
    add("--memory-fraction", type=float, help="share of the device taken, whatever is needed")
    add("--fault", default="none", help="see below")
    add("--fault-from", type=int, default=1, metavar="N")
    add("--fault-until", type=int, default=sys.maxsize, metavar="N")
    add("--die-after", type=int, metavar="N", help="end the process once N generations have ended")
    add("--start-delay", type=float, default=0.0, metavar="SECONDS", help="answer 503 so long: loading")
    add("--never-ready", action="store_true", help="/health says 200 and no generation is ever answered")
    add("--wrong-token-ids", action="store_true", help="/tokenize tells ids that are off by one")
    add("--memory-not-falling", action="store_true", help="the memory shown follows no setting")
    add("--emission-log", type=Path, metavar="FILE", help="a JSON line for each event written: id, due and written ns")
    settings = parser.parse_args(arguments)
    if settings.sequence_cap < 1 or settings.answer_tokens < 1 or settings.tokens_per_chunk < 1:
        parser.error("--sequence-cap, --answer-tokens and --tokens-per-chunk are at least 1")
    if settings.memory_fraction is not None and not 0 < settings.memory_fraction <= 1:
        parser.error(f"--memory-fraction is {settings.memory_fraction}, expected more than 0 and at most 1")
    if not is_fault(settings.fault):
        parser.error(f"--fault is {settings.fault}, expected one of {', '.join(FAULTS)}")
    return settings


async def serve(settings: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    engine = Engine(settings)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        server = await loop.create_server(lambda: Connection(engine), settings.host, settings.port, backlog=1024)
    except OSError as problem:
        sys.exit(f"error: {settings.host}:{settings.port}: {problem.strerror}")
    host, port = server.sockets[0].getsockname()[:2]
    print(f"ready {host}:{port}", flush=True)
    await ended.wait()
    server.close()


def main(arguments: list[str] | None = None) -> None:
    settings = parse_settings(arguments)
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    with contextlib.suppress(KeyboardInterrupt):
        loop.run_until_complete(serve(settings))
    os._exit(0)  # open streams end with the process, without a trace of cancelled tasks


if __name__ == "__main__":
    main()
