"""What is known of each engine: how it is launched, what it cannot give, and which log lines betray late work.

`lacks` holds what was measured or read of each engine, by these names:

    seed             the same seed repeats, another differs          ignore-eos     honoured in a request
    logprobs         given on request                                min-tokens     honoured in a request
    several          `n` above 1, counted in the usage               model-check    an unknown model is refused
    done             a stream ends with [DONE]                       tokenize       a route that tells token ids
    usage-option     stream_options.include_usage is obeyed          version        a route that tells the version
    usage-chunk      streamed usage in a chunk of its own            metrics, health, models   such routes
    chat, embeddings such routes                                     adapters       LoRA by request or route
    sequence-cap     an argument that limits what runs at once
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.errors import EvidenceError

FEATURES = frozenset(
    {"seed", "logprobs", "ignore-eos", "min-tokens", "several", "model-check", "done", "usage-option", "usage-chunk"}
    | {"tokenize", "version", "metrics", "health", "models", "chat", "embeddings", "adapters", "sequence-cap"}
)


@dataclass(frozen=True)
class Adapter:
    """How one kind of engine is started and what it owes.

    `arguments` follow the program, with {model} {host} {port}; `name_flag` sets the model's name in the API;
    `version_route` and its key tell the version; `wheel` is the distribution whose metadata tells it otherwise.
    """

    name: str
    program: tuple[str, ...]
    arguments: tuple[str, ...]
    lacks: frozenset[str]
    log_patterns: Mapping[str, str] = field(default_factory=dict)
    name_flag: str | None = None
    version_route: tuple[str, str] | None = None
    wheel: str | None = None
    needs_model: bool = True
    from_model_parent: bool = False
    note: str = ""

    @property
    def owes_done(self) -> bool:
        """Whether a stream without [DONE] is a cut one."""
        return "done" not in self.lacks


# Any engine: work that belongs before the measurement.
LOG_PIECE = 1 << 16
_COMMON = {
    "out-of-memory": r"(?i)\bout of memory\b|failed to allocate|cudaErrorMemoryAllocation",
    "compile": r"(?i)torch\.compile|torch_compile|dynamo bytecode transform|\bjit[- ]?compil|compiling (a )?(graph|kernel|cuda)",
    "autotune": r"(?i)\bautotun",
}
_GRAPHS = {"graph-capture": r"(?i)captur\w* (the )?(cuda |cpu )?graph|cuda graph.{0,20}captur"}

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (
        Adapter(
            "vllm",
            ("vllm", "serve"),
            ("{model}", "--host", "{host}", "--port", "{port}"),
            frozenset({"embeddings"}),
            {**_COMMON, **_GRAPHS, "allocation": r"(?i)KV cache size|Available KV cache memory|# (GPU|CPU) blocks",
             "preemption": r"(?i)\bpreempt", "triton-compile": r"(?i)triton.{0,40}compil"},
            name_flag="--served-model-name", version_route=("/version", "version"), wheel="vllm",
            note="embeddings need --runner pooling, which ends chat; greedy text may differ with concurrency",
        ),
        Adapter(
            "sglang",
            ("{python}", "-m", "sglang.launch_server"),
            ("--model-path", "{model}", "--host", "{host}", "--port", "{port}"),
            frozenset({"tokenize", "version"}),
            {**_COMMON, **_GRAPHS, "allocation": r"(?i)KV Cache is allocated|Memory pool end",
             "preemption": r"(?i)retract(ed)? requests|KV cache pool is full"},
            name_flag="--served-model-name", version_route=("/get_server_info", "version"), wheel="sglang",
            note="not run here; arguments and routes from its documentation; a version only in its server information",
        ),
        Adapter(
            "tensorrt-llm",
            ("trtllm-serve",),
            ("{model}", "--host", "{host}", "--port", "{port}"),
            frozenset({"tokenize", "adapters", "embeddings", "model-check"}),
            {**_COMMON, **_GRAPHS, "allocation": r"(?i)\[MemUsageChange\]|Allocated .{1,20} for max tokens in paged KV cache"},
            name_flag="--served_model_name", version_route=("/version", "version"), wheel="tensorrt_llm",
            note="not run here; arguments and routes from its documentation",
        ),
        Adapter(
            "llama.cpp",
            ("llama-server",),
            ("-m", "{model}", "--host", "{host}", "--port", "{port}"),
            frozenset({"min-tokens", "several", "model-check", "version", "embeddings"}),
            {**_COMMON, "allocation": r"(?i)(llama_)?kv_cache\w*:.{0,40}size|sched_reserve|graph_reserve|compute buffer size|ggml_\w+_alloc",
             "context-shift": r"(?i)context shift"},
            name_flag="--alias", wheel="xllamacpp",
            note="min_tokens is accepted and ignored; n = 2 counts one answer; embeddings need a flag",
        ),
        Adapter(
            "transformers-serve",
            ("transformers", "serve"),
            ("{model_name}", "--host", "{host}", "--port", "{port}"),
            frozenset({"seed", "logprobs", "ignore-eos", "min-tokens", "several", "done", "usage-option", "usage-chunk",
                       "tokenize", "version", "metrics", "models", "embeddings", "adapters", "sequence-cap"}),
            dict(_COMMON), wheel="transformers", from_model_parent=True,
            note="usage comes on the finish chunk, asked for or not; seed and logprobs are ignored without a word; "
                 "/v1/models answers only where a hub cache folder exists; a request names the model's folder",
        ),
        Adapter(
            "sie",
            ("sie-server", "serve"),
            ("--host", "{host}", "--port", "{port}"),
            frozenset({"chat", "ignore-eos", "metrics", "health", "tokenize", "version", "sequence-cap"}),
            dict(_COMMON), wheel="sie-server", needs_model=False,
            note="chat only through an upstream; the token counts of embeddings are estimates",
        ),
        Adapter(
            "synthetic",
            ("{synthetic}",),
            ("--host", "{host}", "--port", "{port}"),
            frozenset({"logprobs", "ignore-eos", "min-tokens", "several", "adapters"}),
            {**_COMMON, "allocation": r"synthetic: allocation"},
            name_flag="--model", version_route=("/version", "version"), needs_model=False,
            note="no model: its answers show the machinery and nothing else",
        ),
        Adapter("command", (), (), frozenset(), dict(_COMMON), needs_model=False,
                note="nothing is known of it, so nothing is refused"),
    )
}  # fmt: skip


def find_adapter(name: str) -> Adapter:
    if name not in ADAPTERS:
        raise EvidenceError(f"unknown adapter {name!r}", "expected one of " + ", ".join(ADAPTERS))
    return ADAPTERS[name]


def list_needs(request: Mapping[str, Any], controls: Iterable[str] = ()) -> set[str]:
    """What a request body (and the controls asked for beside it) needs of an engine, by the names above.

    `"temperature": 0` with a seed needs no seed: the greedy answer is the same without.
    """
    needs = {"chat"} if "messages" in request else {"embeddings"} if "input" in request else set()
    if request.get("seed") is not None and request.get("temperature") != 0:
        needs.add("seed")
    if request.get("logprobs") not in (None, False) or request.get("top_logprobs"):
        needs.add("logprobs")
    if request.get("ignore_eos"):
        needs.add("ignore-eos")
    if request.get("min_tokens"):
        needs.add("min-tokens")
    if (request.get("n") or 1) != 1:
        needs.add("several")
    return needs | {name for name in controls if name in FEATURES}


def refuse_unsupported(name: str, needs: Iterable[str], arguments: Iterable[str] = ()) -> None:
    """Raise EvidenceError if the adapter cannot give one of `needs`; `arguments` may switch a route on."""
    adapter, lacks = find_adapter(name), set(find_adapter(name).lacks)
    words = list(arguments)
    if {"--runner", "pooling", "--embedding", "--embeddings"} & set(words) or any("pooling" in word for word in words):
        lacks.discard("embeddings")
    if any(word.split("=")[0] == "--upstreams-file" for word in words):
        lacks.discard("chat")
    if any(word.split("=")[0] == "--continuous-batching" for word in words):
        lacks.discard("sequence-cap")
    asked = set(needs)
    if unknown := sorted(asked - FEATURES):
        raise EvidenceError(f"unknown need {unknown[0]!r}", "expected one of " + ", ".join(sorted(FEATURES)))
    if missing := sorted(asked & lacks):
        raise EvidenceError(
            f"engine adapter {name} cannot give {', '.join(missing)}, which the campaign needs",
            adapter.note or "take it out of the request, or choose another engine",
        )


def find_log_lines(name: str, log_path: Path, offset: int, end: int) -> tuple[list[tuple[str, str]], int]:
    """(pattern name, line) for each line of the log from `offset` to `end` that tells of a compilation or allocation.

    At most LOG_PIECE bytes are read; the second result is where to go on. A line that is not ended yet is not read, unless it is longer
    than that. Lines are cut at 300 characters and folders in them are hidden.
    """
    with log_path.open("rb") as file:
        file.seek(offset)
        piece = file.read(max(0, min(LOG_PIECE, end - offset)))
    whole = piece[: piece.rfind(b"\n") + 1] or (piece if len(piece) == LOG_PIECE else b"")
    found = []
    patterns = {label: re.compile(pattern) for label, pattern in find_adapter(name).log_patterns.items()}
    for raw in whole.splitlines():
        line = raw.decode("utf-8", "replace").strip()
        for label, pattern in patterns.items():
            if pattern.search(line):
                found.append((label, hide_private(line)[:300]))
                break
    return found, offset + len(whole)


_PATH = re.compile(r"(?<![\w}/.-])~?/(?:[^/\s:=,;'\"()\[\]]+/)*(?=[^/\s:=,;'\"()\[\]])")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|\[[0-9a-fA-F:]*::?[0-9a-fA-F:]*\]")


def hide_private(text: str) -> str:
    """`text` with the folders of absolute paths as {folder}/ and addresses as {host}; the last component stays."""
    return _ADDRESS.sub("{host}", _PATH.sub("{folder}/", text))
