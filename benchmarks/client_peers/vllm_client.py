"""The request function of `vllm bench serve`, driven as its serve.py does: one session, one semaphore."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import resource
import sys

import aiohttp


def load_module() -> object:
    """Import the module that was taken out of the wheel."""
    spec = importlib.util.spec_from_file_location("endpoint_request_func", os.environ["PEER_MODULE"])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def offer(port: int, path: str, concurrency: int, requests: int) -> list[dict]:
    """Offer the requests and return what the module says of each."""
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

        return list(await asyncio.gather(*(one() for _ in range(requests))))


async def offer_each(port: int, paths: list[str]) -> list[dict]:
    """Two requests to each path, one after the other; the second counts, since the first warms the client up."""
    return [(await offer(port, path, 1, 2))[-1] for path in paths]


def main() -> None:
    """Run and print; several paths are joined by commas."""
    paths = sys.argv[2].split(",")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    if len(paths) > 1:
        rows = asyncio.run(offer_each(int(sys.argv[1]), paths))
    else:
        rows = asyncio.run(offer(int(sys.argv[1]), paths[0], int(sys.argv[3]), int(sys.argv[4])))
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    print(json.dumps({"rows": rows, "processor_seconds": spent}))


if __name__ == "__main__":
    main()
