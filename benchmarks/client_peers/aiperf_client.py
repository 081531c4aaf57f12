"""AIPerf's HTTP client and the time to first token that it computes, `AioHttpClient` and `TTFTMetric`.

A worker of AIPerf awaits `post_request` for each credit; the record processor then parses the messages with the chat
endpoint and takes the first with content. Both are done here, the second after the exchange and outside its times.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import uvloop
from aiperf.common.models import ModelEndpointInfo
from aiperf.common.models.model_endpoint_info import EndpointInfo, ModelInfo, ModelListInfo
from aiperf.common.models.record_models import ParsedResponseRecord, TokenCounts
from aiperf.endpoints.openai_chat import ChatEndpoint
from aiperf.plugin.enums import EndpointType
from aiperf.transports.aiohttp_client import AioHttpClient

sys.path.append(str(Path(__file__).parent))
import driving

BODY = b'{"messages":[{"role":"user","content":"go"}],"model":"synthetic","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":64}'
HEADERS = {"Accept": "text/event-stream", "Content-Type": "application/json"}


async def adapt(port: int, path: str, concurrency: int) -> tuple[driving.One, driving.Callable]:
    """One client with its pool of connections, as a worker has."""
    logging.disable(logging.CRITICAL)
    endpoint = ChatEndpoint(
        model_endpoint=ModelEndpointInfo(
            models=ModelListInfo(models=[ModelInfo(name="synthetic")], model_selection_strategy="round_robin"),
            endpoint=EndpointInfo(type=EndpointType.CHAT, base_urls=[f"http://127.0.0.1:{port}"], streaming=True),
        )
    )
    client = AioHttpClient(timeout=600)

    async def one() -> dict:
        record = await client.post_request(f"http://127.0.0.1:{port}{path}", BODY, dict(HEADERS))
        parsed = endpoint.extract_response_data(record)
        told = ParsedResponseRecord(request=record, responses=parsed, token_counts=TokenCounts())
        content = told.content_responses
        ttft = (content[0].perf_ns - record.start_perf_ns) / 1e9 if content else None
        usage = next((one.usage for one in reversed(parsed) if one.usage), None)
        text = "".join(one.data.get_text() for one in content if getattr(one.data, "reasoning", None) is None)
        return driving.row(
            text,
            ttft,
            (record.responses[-1].perf_ns - record.start_perf_ns) / 1e9 if record.responses else None,
            told.valid and record.error is None,
            usage.completion_tokens if usage else None,
        )

    return one, client.close


if __name__ == "__main__":
    driving.main(adapt, uvloop.run)
