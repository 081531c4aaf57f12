"""Records what real engines answer: `python tests/vectors/streams/record.py ADAPTER PROGRAM MODEL [ARGUMENT...]`.

Starts the engine as the runner does, sends the requests below, and keeps each body's bytes as they came beside
`truth.json`, which says what is true of them. The truth is read here by the plainest possible reader, which knows only
streams with LF, and stops where a body is not what the request set out to get.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/capture")]

from real_engines import Spec  # noqa: E402

from evidence.capture.engines import start_engine  # noqa: E402
from evidence.capture.exchange import exchange  # noqa: E402
from evidence.capture.identity import identify  # noqa: E402
from evidence.capture.processes import choose_port  # noqa: E402

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Say hello in three words."}], "temperature": 0}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat-stream": (CHAT, {**ASK, "max_tokens": 64, **USAGE}, "NORMAL"),
    "chat-stream-capped": (CHAT, {**ASK, "max_tokens": 3, **USAGE}, "CAPPED"),
    "chat-stream-without-usage": (CHAT, {**ASK, "max_tokens": 64, "stream": True}, "NORMAL"),
    "chat-json": (CHAT, {**ASK, "max_tokens": 64}, "NORMAL"),
    "chat-unicode": (
        CHAT,
        {"messages": [{"role": "user", "content": "Repeat exactly: 🌊 naïve 松 straße"}], "temperature": 0,
         "max_tokens": 64, **USAGE},
        "ANY",
    ),
    "completions-stream": (TEXT, {"prompt": "One, two, three,", "temperature": 0, "max_tokens": 4, **USAGE}, "CAPPED"),
    "refused": (CHAT, {**ASK, "messages": "no list", **USAGE}, "HTTP_ERROR"),
}  # fmt: skip


def read_truth(body: bytes, path: str, stream: bool, status: int) -> dict[str, Any]:
    """What a body says: text, finish reason, tokens, and for a stream how it says it."""
    if status != 200:
        return {"classification": "HTTP_ERROR"}
    lines = [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")] if stream else [body.decode()]
    objects = [json.loads(line) for line in lines if line != "[DONE]"]
    text, finish, usage, role_first, usage_on = "", None, None, False, None
    for place, value in enumerate(objects):
        choice = (value.get("choices") or [{}])[0]
        part = choice.get("delta") or choice.get("message") or {}
        said = (part.get("content") if path == CHAT else choice.get("text")) or ""
        role_first |= place == 0 and "role" in part and not said
        text += said
        finish = choice.get("finish_reason") or finish
        if value.get("usage"):
            usage = value["usage"]
            usage_on = (
                "own-chunk" if not value.get("choices") else "finish-chunk" if choice.get("finish_reason") else "other"
            )
    kind = "NORMAL" if text and finish == "stop" else "CAPPED" if text and finish == "length" else "OTHER"
    return {
        "classification": kind, "text": text, "finishReason": finish, "done": lines[-1] == "[DONE]" if stream else None,
        "promptTokens": usage and usage["prompt_tokens"], "completionTokens": usage and usage["completion_tokens"],
        "roleChunkFirst": role_first if stream else None, "usageOn": usage_on if stream else None, "events": len(lines),
    }  # fmt: skip


async def record(spec: Spec, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as logs:
        engine = await start_engine(
            spec, worker="worker-1", device="0", port=choose_port(), setting=None, log_path=Path(logs) / "log"
        )
        try:
            await engine.ready()
            told = await identify(engine)
            bodies = []
            for name, (path, request, expected) in REQUESTS.items():
                sent = json.dumps({"model": engine.model_name, **request}).encode()
                answer = await exchange(engine.url + path, "POST", sent, seconds=120)
                stream = request.get("stream") is True
                truth = read_truth(answer.body, path, stream, answer.status)
                if expected not in ("ANY", truth["classification"]):
                    raise SystemExit(f"{name}: found {truth}, expected {expected}: {answer.body[:300]!r}")
                (folder / f"{name}.body").write_bytes(answer.body)
                kind = answer.headers.get("content-type")
                bodies.append({"file": f"{name}.body", "path": path, "request": json.loads(sent), "status": answer.status,
                               "contentType": kind, "stream": stream, **truth})  # fmt: skip
        finally:
            await engine.stop()
    truth = {"adapter": spec.adapter, "version": told.version, "source": told.source, "bodies": bodies}
    (folder / "truth.json").write_text(json.dumps(truth, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def main() -> None:
    adapter, program, model, *arguments = sys.argv[1:]
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1",
                   "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}  # fmt: skip
    spec = Spec(adapter, program=tuple(program.split()), model=model, arguments=tuple(arguments),
                environment=environment, ready_timeout_seconds=300)  # fmt: skip
    folder = Path(__file__).parent / adapter
    folder.mkdir(exist_ok=True)
    asyncio.run(record(spec, folder))


if __name__ == "__main__":
    main()
