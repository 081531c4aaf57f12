"""Adapters that requests selected: the figures and the faults of such a run, from its raw events alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from typing import Any

from evidence.lifecycle.events import Event, pick, settings_of

Vectors = list[list[float]]
Fault = tuple[str, str]
DRIFT_LIMIT = {"embedding": "5e-5", "generation": "1e-3"}
EFFECT_FLOOR = {"embedding": 1e-3, "generation": 1e-4}


def difference(one: Any, other: Any) -> float:
    """The largest difference: of a token's probability (one not observed counts as 0), or of two vectors' values."""
    if isinstance(one, dict):
        tokens = {*one, *other}
        return max(float(round(abs(one.get(token, 0.0) - other.get(token, 0.0)), 12)) for token in tokens)
    pairs = itertools.chain.from_iterable(zip(row, its, strict=True) for row, its in zip(one, other, strict=True))
    return max(float(round(abs(left - right), 9)) for left, right in pairs)


def cosine_distances(one: Vectors, other: Vectors) -> list[float]:
    """One minus the cosine of the two vectors of each text, to twelve decimals."""
    found = []
    with localcontext() as context:
        context.prec = 60
        for row, its in zip(one, other, strict=True):
            left, right = [Decimal(repr(value)) for value in row], [Decimal(repr(value)) for value in its]
            dot = sum((a * b for a, b in zip(left, right, strict=True)), Decimal())
            size = (sum((a * a for a in left), Decimal()) * sum((b * b for b in right), Decimal())).sqrt()
            found.append(abs(float(round(1 - dot / size, 12))))
    return found


def measured_of(event: Event) -> Any:
    """What an answer is compared by: its vectors, or the probabilities of its first token."""
    return event["vectors"] if "vectors" in event else event["first_token_probabilities"]


def resets_of(events: list[Event]) -> list[str]:
    """The phases in which the base was asked after an adapter."""
    return [f"reset_{turn}" for turn in range(len(settings_of(events)["selection_order"]))] + ["warm-base-last"]


def selection_faults(events: list[Event]) -> Iterator[Fault]:
    """Each adapter changes the answer and each time alike; who is resident agrees with what callers were told."""
    settings = settings_of(events)
    for event in pick(events, "response"):
        name = f"{event['phase']}: {event['alias'] or 'the base'}"
        if event["transport"] != "complete":
            yield "ANSWER_MISSING", f"{name}: {event['transport']}"
        elif event["status"] == 200 and not event["answered"]:
            yield "ANSWER_EMPTY", f"{name}: 200 without an answer"
        elif event["status"] == 200 and measured_of(event) is None:
            yield "PROBABILITIES_MISSING", f"{name}: nothing to compare by"
        elif event["status"] == 503 and event["retry_after"] is None:
            yield "RETRY_AFTER_MISSING", f"{name}: 503 without Retry-After"
    yield from process_faults(events, "resident")
    yield from residency_faults(events)
    answers = {event["phase"]: event for event in pick(events, "response", status=200)}
    base = answers.get("warm-base-2")
    if base is None or any(measured_of(event) is None for event in answers.values()):
        return
    limit = float(DRIFT_LIMIT[events[0]["kind"]])
    first: dict[str, Any] = {}
    for turn, alias in enumerate(settings["selection_order"]):
        answer = answers.get(f"turn_{turn}")
        if answer is None:
            continue
        if difference(measured_of(answer), measured_of(base)) <= EFFECT_FLOOR[events[0]["kind"]]:
            yield "ADAPTER_NOT_APPLIED", f"{alias} in turn_{turn} answered as the base does"
        if difference(measured_of(answer), first.setdefault(alias, measured_of(answer))) >= limit:
            yield "ADAPTER_NOT_REPEATED", f"{alias} in turn_{turn} answered otherwise than at first"
    for one, two in itertools.combinations(first, 2):
        if difference(first[one], first[two]) <= EFFECT_FLOOR[events[0]["kind"]]:
            yield "ADAPTERS_ALIKE", f"{one} and {two} answered alike"
    for phase in resets_of(events):
        if phase in answers and difference(measured_of(answers[phase]), measured_of(base)) >= limit:
            yield "BASE_NOT_RESTORED", f"{phase}: another answer than the warm base's"
    for event in pick(events, "response", phase="undeclared", status=200):
        if difference(measured_of(event), measured_of(base)) >= limit:
            yield "UNDECLARED_SERVED", "an undeclared adapter was answered otherwise than by the base"


def process_faults(events: list[Event], kind: str) -> Iterator[Fault]:
    """One known process in every event of this kind."""
    processes = {(event["pid"], event["started_ticks"]) for event in pick(events, kind)}
    if len(processes) > 1:
        yield "PROCESS_CHANGED", "the engine's process is not the one it was"
    if any(ticks is None for _, ticks in processes):
        yield "PROCESS_UNKNOWN", "the engine's process is not known"


def residency_faults(events: list[Event]) -> Iterator[Fault]:
    """Cold exactly when not resident before; resident after; within the capacity."""
    settings = settings_of(events)
    before: list[str] | None = None
    for event in pick(events, "resident"):
        phase, now = event["phase"], event["aliases"]
        if len(now) > settings["resident_adapter_capacity"]:
            yield "CAPACITY_EXCEEDED", f"{phase}: {len(now)} of {settings['resident_adapter_capacity']}"
        if phase.startswith("turn_") and before is not None:
            alias = settings["selection_order"][int(phase[5:])]
            cold = any(one["status"] == 503 for one in pick(events, "response", phase=phase))
            if cold == (alias in before):
                yield "RESIDENCY_DISPUTED", f"{phase}: {alias} was {'cold' if cold else 'warm'}, resident were {before}"
            if alias not in now:
                yield "NOT_LOADED", f"{phase}: {alias} answered and is not resident"
        before = now


def derive_selection(events: list[Event]) -> dict[str, Any]:
    """Turns, effects, drifts, and what became of the undeclared adapter."""
    settings, started = settings_of(events), events[0]
    answers = {event["phase"]: event for event in pick(events, "response", status=200)}
    values = {phase: measured_of(event) for phase, event in answers.items()}
    base, order = values["warm-base-2"], settings["selection_order"]
    resident = {event["phase"]: event["aliases"] for event in pick(events, "resident")}
    turns = [
        {
            "alias": alias,
            "statuses": [one["status"] for one in pick(events, "response", phase=f"turn_{turn}")],
            "resident_aliases": resident[f"turn_{turn}"],
            "effect": difference(values[f"turn_{turn}"], base),
        }
        for turn, alias in enumerate(order)
    ]
    first = {alias: values[f"turn_{order.index(alias)}"] for alias in settings["declared_aliases"]}
    repeats = [difference(values[f"turn_{turn}"], first[alias]) for turn, alias in enumerate(order)]
    undeclared = [measured_of(event) for event in pick(events, "response", phase="undeclared", status=200)]
    statuses = [event["status"] for event in pick(events, "undeclared")]
    gone: set[str] = set()
    again: set[str] = set()
    before = resident["initial"]
    for made in turns:
        again |= {made["alias"]} & gone
        gone |= {*before} - {*made["resident_aliases"]}
        before = made["resident_aliases"]
    figures: dict[str, Any] = {
        "engine_pid_stable": len({(one["pid"], one["started_ticks"]) for one in pick(events, "resident")}) == 1,
        "requests_answered": sum(
            one["answered"] and one["phase"] != "undeclared" for one in pick(events, "response", status=200)
        ),
        "effect_vs_warm_base": {alias: difference(value, base) for alias, value in first.items()},
        "smallest_effect_between_aliases": min(
            difference(one, two) for one, two in itertools.combinations(first.values(), 2)
        ),
        "repeat_drift": max(repeats),
        "warm_repeat_drift": difference(values["warm-base-1"], base),
        "reset_drift": max(difference(values[phase], base) for phase in resets_of(events)),
        "cold_loading_503_then_success_aliases": sorted({one["alias"] for one in turns if len(one["statuses"]) > 1}),
        "evicted_and_served_again": sorted(again),
        "undeclared_adapter": {
            "statuses": statuses,
            "outcome": "answered-by-base" if undeclared else "never-ready" if 503 in statuses else "refused",
            "distance_to_warm_base": max(difference(one, base) for one in undeclared) if undeclared else None,
            "evicted": sorted({*before} - {*resident["after-undeclared"]}),
        },
    }
    protocol: dict[str, Any] = {
        "recorded_completed_runs": 1,
        "adapter_residency": started["residency"],
        "declared_aliases": settings["declared_aliases"],
        "selection_order": order,
        "resident_adapter_capacity": settings["resident_adapter_capacity"],
        "fixture_seeds": settings["fixture_seeds"],
        "harness_deadline_s": settings["harness_deadline_s"],
        **describe_measure(started["kind"]),
    }
    if started["kind"] == "embedding":
        known = [values[phase] for phase in ("warm-base-1", *resets_of(events))]
        protocol["embedding_raw_vector_shape"] = [len(base), len(base[0])]
        figures["cosine_distance_vs_warm_base"] = {
            alias: min(cosine_distances(value, base)) for alias, value in first.items()
        }
        figures["largest_control_cosine_distance"] = max(max(cosine_distances(value, base)) for value in known)
    else:
        texts = {answers[phase]["text_sha256"] for phase in ("warm-base-1", "warm-base-2", *resets_of(events))}
        protocol.update(request_seed=settings["request_seed"], temperature=0.0)
        figures["base_text_restored"] = len(texts) == 1
    return {
        "protocol": protocol,
        "measurements": figures,
        "selected_turns": turns,
        "resident_at_first": resident["initial"],
        "controls": {"cold_vs_warm": difference(values["cold-base"], base)},
    }


def describe_measure(kind: str) -> dict[str, Any]:
    """How answers were compared, and against which limits."""
    embeds = kind == "embedding"
    return {
        "effect_measure": "embedding-max-abs" if embeds else "first-token-probability",
        "effect_thresholds": {"effect_lower_bound": EFFECT_FLOOR[kind], "effect_vs_control_drift_multiplier": 5},
        "base_comparison": "The base after every turn versus the second warm base"
        + (", all values of all vectors" if embeds else ", text identical")
        + f": drift < {DRIFT_LIMIT[kind]}.",
        "instrumentation": "The raw vectors of the answer, to nine decimals; cosine distance is the smallest over the texts."
        if embeds
        else "Probabilities of the first token among the observed candidates; a token outside them counts as 0.",
    }


SELECTION_WORDS: Mapping[str, Mapping[str, Any]] = {
    "LlamaSelector": {
        "transport": "HTTP to the local llama.cpp server",
        "selection_method": 'Each request names the scale of every adapter (`"lora": [{"id", "scale"}]`): 1 for the selected, 0 for the others; `"cache_prompt": false`, because keys computed with another adapter would be used again.',
        "residency_source": "GET /lora-adapters, which lists the adapters given at start.",
        "caller": (
            "An adapter is selected by one request and bears on that request alone; nobody has to wait for it.",
            "An id that is not there is answered with 200 by the base model: a caller cannot see that it got no adapter.",
        ),
        "limitations": (
            "An undeclared adapter is not refused: the answer is the base model's, with status 200.",
            "All adapters were given at start: nothing is loaded, evicted or unloaded at run time, and nothing here shows it.",
            "Prompts were not cached: with the cache on, an answer can come from keys computed with another adapter.",
            "Observed top token probabilities do not bound the tail that was not reported.",
        ),
    },
    "SieSelector": {
        "transport": "HTTP to the local SIE, POST /v1/encode/MODEL",
        "selection_method": "Each request names the adapter in `params.options.lora_id`.",
        "residency_source": "SIE's own log of adapters loaded and evicted; its API lists none. The statuses told to callers are the other source.",
        "caller": (
            "The first request for an adapter that is not loaded is told 503 LORA_LOADING with Retry-After, and so is the first after its eviction.",
            "An adapter that does not exist is told 503 LORA_LOADING with Retry-After each time: a caller cannot see that it will never load.",
        ),
        "limitations": (
            "An undeclared adapter is not refused: it is told to retry for ever, and its attempt evicts a loaded one at capacity.",
            "Adapters have no pin in this SIE, and its API does not list them; residency is read from its log.",
            "Embeddings alone; the one adapter of SIE that takes LoRA here is pytorch_embedding, not the one of its catalog.",
        ),
    },
}
SELECTION_LIMITS = (
    "One protocol run of one engine on one machine; no replication.",
    "Untrained adapters show selection and restoration, not model quality.",
    "Requests came one at a time: nothing is said of adapters mixed in one batch.",
    "No throughput, latency or memory figure of adapters.",
)
