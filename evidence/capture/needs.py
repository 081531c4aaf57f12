"""What a campaign needs of its engine, refused before anything is started when the adapter cannot give it."""

import json

from evidence.campaign import Campaign
from evidence.capture.adapters import find_adapter, list_needs, refuse_unsupported
from evidence.errors import EvidenceError


def refuse_campaign(campaign: Campaign, name: str) -> None:
    """Raise EvidenceError if the case or comparison `name` needs what its engine's adapter cannot give.

    Controls are not needs: an engine without such a route says so itself, and its answer is kept.
    """
    comparison = campaign.comparisons.get(name)
    case = campaign.cases[comparison.case if comparison else name]
    engine = campaign.engines[case.engine]
    if comparison and engine.snapshot == "none":
        raise EvidenceError(
            f"{campaign.path}: {name}: engine {engine.id} takes no snapshot, expected one for a comparison",
            "set `snapshot` of the engine: nvml, or process-rss",
        )
    requests = [comparison.body, comparison.native_body] if comparison else [case.body]
    needs: set[str] = set()
    for body in requests:
        needs |= list_needs(json.loads(body))
    if case.surface == "exact":
        needs.add("tokenize")
    if comparison and comparison.kind == "sequence-cap":
        needs.add("sequence-cap")
    if comparison and comparison.comparison_date:
        needs.add("tokenize")
    arguments = [*engine.arguments, *case.arguments]
    try:
        refuse_unsupported(engine.adapter, needs, arguments)
    except EvidenceError as problem:
        raise EvidenceError(f"{campaign.path}: {name}: {problem.message}", problem.hint) from None


def describe_adapters() -> str:
    """The table of docs/engines.md: what each adapter cannot give."""
    lines = ["| adapter | what it cannot give | note |", "|---|---|---|"]
    for name in ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers-serve", "sie", "synthetic", "command"):
        adapter = find_adapter(name)
        lines.append(f"| {name} | {', '.join(sorted(adapter.lacks)) or '–'} | {adapter.note} |")
    return "\n".join(lines)
