"""The request function of `vllm bench serve`, driven as its serve.py does: one session, one semaphore."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parent))
import driving


def load_module() -> object:
    """Import the module that was taken out of the wheel."""
    spec = importlib.util.spec_from_file_location("endpoint_request_func", os.environ["PEER_MODULE"])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def offer(port: int, path: str, concurrency: int, requests: int, warm: int) -> tuple[list[dict], float]:
    """Offer the requests after `warm` others, and return what the module says of each, and the processor time of all."""
    module = load_module()
    gate = asyncio.Semaphore(concurrency)
    connector = aiohttp.TCPConnector(
        limit=concurrency,
        limit_per_host=concurrency,
        ttl_dns_cache=300,
        use_dns_cache=True,
        keepalive_timeout=60,
        enable_cleanup_closed=True,
        force_close=False,
    )
    timeout = aiohttp.ClientTimeout(total=6 * 60 * 60)
    async with aiohttp.ClientSession(connector=connector, trust_env=True, timeout=timeout) as session:

        async def one() -> dict:
            request = module.RequestFuncInput(
                prompt="go",
                api_url=f"http://127.0.0.1:{port}{path}",
                prompt_len=1,
                output_len=64,
                model="synthetic",
            )
            async with gate:
                output = await module.async_request_openai_chat_completions(request, session)
            number = re.match(r"n(\d+) ", output.generated_text)
            return {
                "number": int(number[1]) if number and output.success else None,
                "ttft_ms": output.ttft * 1e3 if output.success else None,
                "total_ms": output.latency * 1e3,
                "good": output.success,
                "tokens": output.output_tokens,
            }

        await asyncio.gather(*(one() for _ in range(warm)))
        before = driving.processor_seconds()
        rows = list(await asyncio.gather(*(one() for _ in range(requests))))
        return rows, driving.processor_seconds() - before


async def offer_each(port: int, paths: list[str]) -> tuple[list[dict], float]:
    """One request to each path, after one that warms the client up."""
    found = [await offer(port, path, 1, 1, 1) for path in paths]
    return [row for rows, _seconds in found for row in rows], sum(seconds for _rows, seconds in found)


def main() -> None:
    """Run and print; several paths are joined by commas."""
    paths = sys.argv[2].split(",")
    port, concurrency, requests = int(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
    if len(paths) > 1:
        rows, spent = asyncio.run(offer_each(port, paths))
    else:
        rows, spent = asyncio.run(offer(port, paths[0], concurrency, requests, driving.warm_ups(concurrency)))
    print(json.dumps({"rows": rows, "processor_seconds": spent}))


if __name__ == "__main__":
    main()
