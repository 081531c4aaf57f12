"""guidellm's backend for OpenAI servers, `OpenAIHTTPBackend.resolve`, driven as its workers drive it.

The scheduler around it, which shares requests out to processes, is left out: what it costs is its client alone.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import uvloop
from guidellm.backends.openai.http import OpenAIHTTPBackend
from guidellm.schemas import GenerationRequest, RequestInfo
from guidellm.schemas.backends import OpenAIHTTPBackendArgs

sys.path.append(str(Path(__file__).parent))
import driving


async def adapt(port: int, path: str, concurrency: int) -> tuple[driving.One, driving.Callable]:
    """One backend, as a worker process has."""
    logging.disable(logging.CRITICAL)
    backend = OpenAIHTTPBackend(
        OpenAIHTTPBackendArgs(
            target=f"http://127.0.0.1:{port}",
            model="synthetic",
            api_routes={"/v1/chat/completions": path.lstrip("/")},
            max_tokens=64,
        )
    )
    await backend.process_startup()

    async def one() -> dict:
        info, response, good = RequestInfo(), None, True
        try:
            async for found, _info in backend.resolve(GenerationRequest(columns={"text_column": ["go"]}), info):
                response = found or response
        except Exception:
            good = False
        times = info.timings
        started = times.request_start
        first, last = times.first_token_iteration, times.request_end
        return driving.row(
            (response.text or "") if response else "",
            first - started if first and started else None,
            last - started if last and started else None,
            good and response is not None,
            response.output_metrics.text_tokens if response else None,
        )

    return one, backend.process_shutdown


if __name__ == "__main__":
    driving.main(adapt, uvloop.run)
