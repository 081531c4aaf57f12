"""inference-perf's session for OpenAI servers, `openAIModelServerClientSession.process_request`.

A worker of inference-perf awaits it for each request; its report takes the first of `output_token_times` less the
start, where there are two. Its tokenizer, which would be fetched, is replaced by one that counts words: the tokens
that it counts by itself are not compared.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

import uvloop
from inference_perf.apis.chat import ChatCompletionAPIData, ChatMessage
from inference_perf.client.modelserver import openai_client
from inference_perf.config import APIConfig, APIType

sys.path.append(str(Path(__file__).parent))
import driving


class Words:
    """Counts words."""

    def __init__(self, config: object) -> None:
        """Takes what a tokenizer takes."""

    def count_tokens(self, text: str, add_special_tokens: bool = True) -> int:
        return len(text.split())


class Collector:
    """Keeps the last metric of each request."""

    def __init__(self) -> None:
        self.found: dict[str, object] = {}

    def record_metric(self, metric: object) -> None:
        self.found[metric.session_id] = metric  # type: ignore[attr-defined]


class Client(openai_client.openAIModelServerClient):
    """The client without what it says of a server's own metrics."""

    def get_prometheus_metric_metadata(self) -> object:
        return None

    def get_supported_apis(self) -> list:
        return [APIType.Chat]


async def adapt(port: int, path: str, concurrency: int) -> tuple[driving.One, driving.Callable]:
    """One session, as a worker process has."""
    logging.disable(logging.CRITICAL)
    openai_client.CustomTokenizer = Words
    collector = Collector()
    client = Client(
        collector, APIConfig(type=APIType.Chat, streaming=True), f"http://127.0.0.1:{port}", "synthetic", None,
        max_tcp_connections=max(concurrency, 1), additional_filters=[],
    )  # fmt: skip
    session = client.new_session()

    class Data(ChatCompletionAPIData):
        def get_route(self) -> str:
            return path

    made = 0

    async def one() -> dict:
        nonlocal made
        made += 1
        data = Data(messages=[ChatMessage(role="user", content="go")], max_tokens=64, session_id=str(made))
        name = data.session_id
        await session.process_request(data, 0, time.perf_counter())
        metric = collector.found.pop(name)
        told = metric.info.response_metrics
        times = told.output_token_times if told else []
        text = ""
        if told and told.response_chunks:
            text = openai_client.json.loads(told.response_chunks[0])["choices"][0]["delta"]["content"]
        usage = told.server_usage if told else None
        return driving.row(
            text,
            times[0] - metric.start_time if len(times) > 1 else None,
            metric.end_time - metric.start_time,
            metric.error is None and told is not None,
            usage.get("completion_tokens") if usage else None,
        )

    return one, session.close


if __name__ == "__main__":
    driving.main(adapt, uvloop.run)
