"""The words and facts around the figures of an experiment: what was claimed, how it was done, what it does not show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidence.lifecycle.events import Event, pick, settings_of
from evidence.lifecycle.selected import SELECTION_LIMITS, SELECTION_WORDS
from evidence.lifecycle.summarize import DRIFT_MULTIPLE, PROBABILITY_DRIFT, PROBABILITY_FLOOR, Derived

CLAIMS = {
    "co-residency": "{count} models remained resident while they answered alternating requests; under forced memory pressure an unpinned model was evicted before the next load, and the pinned one was not.",
    "crash": "The healthy engine completed all sampled requests while its neighbour was killed and reloaded.",
    "lora": "Declared adapters changed the output and were evicted and loaded again without a restart of their engine; the warm base output was restored.",
    "selection": "Each request selected its adapter: every declared adapter changed the output, alike whenever it was selected again, and the warm base output was restored after each of them without a restart of the engine.",
}
TITLES = {
    "co-residency": "Co-residency and eviction under pressure",
    "crash": "A crash beside a healthy engine",
    "lora": "Adapters at run time",
    "selection": "Adapters selected by request",
}
MEMORY = {
    "nvml": (
        "Device total minus free bytes by NVML after each response; not per-model allocations.",
        "cuMemAlloc in a process of its own takes device memory",
    ),
    "process-rss-against-budget": (
        "A configured budget minus the resident memory of the live engine processes after each response; no GPU is involved.",
        "The supervisor counts a ballast against its budget; no memory is really taken",
    ),
}
CPU_LIMIT = (
    "No GPU: the device is a budget against the resident memory of processes, so nothing is said of device memory."
)
LIMITS = {
    "co-residency": (
        "One protocol run on one machine; no replication or confidence interval.",
        "Forced low free memory at admission does not test recovery from running out of memory.",
        "Admission reservations are configured figures; device usage is measured; they are different quantities.",
        "No throughput, interference or isolation measurement.",
    ),
    "crash": (
        "One crash at a low request rate; the successes are an observation, not an availability guarantee.",
        "The sampling during the crash covers the observed recovery and ends slightly after it.",
        "Errors of the cooldown require a fresh request; recovery was neither transparent nor immediate.",
        "No out-of-memory, repeated crash, retry exhaustion, high load, isolation or throughput result.",
        "Pinning was configured; its benefit against eviction was not isolated here.",
    ),
    "lora": (
        "One protocol run of one engine on one machine; no replication.",
        "Untrained adapters show selection and restoration, not model quality.",
        "Observed top token probabilities do not bound the tail that was not reported.",
        "Warm restoration does not show that cold and warm outputs are equal.",
        "Which adapter goes is the caller's choice: the engine was told to unload it, and did.",
        "No throughput, batching or memory figure of adapters.",
    ),
    "selection": SELECTION_LIMITS,
}


def protocol_words(events: list[Event], source: str) -> dict[str, Any]:
    """How it was done."""
    protocol = str(events[0]["protocol"])
    if protocol == "selection":
        words = SELECTION_WORDS[events[0]["target"]]
        return {key: words[key] for key in ("transport", "selection_method", "residency_source")}
    over = f"HTTP to the local {events[0]['target']}"
    if protocol == "co-residency":
        name = settings_of(events)["next_load_model"]
        memory, ballast = MEMORY[source]
        text = f"Load and unload {name}; {ballast[0].lower() + ballast[1:]} until less is free than its reservation; request its load."
        return {"transport": over, "memory_method": memory, "pressure_method": text}
    if protocol == "crash":
        return {"transport": over}
    return {
        "preselection_controls": "First response and two warm baseline repeats complete before any dynamic adapter is loaded.",
        "base_comparison": f"Restored output versus second warm baseline: text identical, observed probability drift < {PROBABILITY_DRIFT}.",
        "effect_thresholds": {
            "generation_first_token_probability_lower_bound": PROBABILITY_FLOOR,
            "effect_vs_control_drift_multiplier": DRIFT_MULTIPLE,
        },
        "instrumentation": "Probabilities of the first token among the observed candidates; a token outside them counts as 0.",
        "adapter_policy": "caller",
    }


def caller_words(events: list[Event], derived: Derived) -> list[str]:
    """What callers were told on the way."""
    protocol = str(events[0]["protocol"])
    if protocol == "crash":
        wait, cooldown = settings_of(events)["retry_after_s"], settings_of(events)["cooldown_s"]
        tries = sum(event["event"] == "recovery_request" for event in derived["selected_lifecycle_events"])
        return [
            "During the cooldown: 502 MODEL_LOAD_FAILED, permanent=false, no Retry-After; nothing retries by itself.",
            f"After the {cooldown:g}-second cooldown the harness sends a fresh request. Loading returns 503 with Retry-After: {wait}.",
            f"{tries} requests were sent to the victim after the crash; they met one new engine process.",
        ]
    if protocol == "co-residency":
        told = sorted({event["status"] for event in pick(events, "response", lane="pressure")})
        return [
            f"A load under pressure is told by statuses {', '.join(str(one) for one in told)}; 503 comes with Retry-After."
        ]
    if protocol == "selection":
        return [*SELECTION_WORDS[events[0]["target"]]["caller"]]
    return ["An evicted or undeclared adapter is refused; nothing falls back to the base model silently."]


def describe(
    about: Mapping[str, Any], events: list[Event], derived: Derived, manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """An experiment as it is published, without its retained-evidence hashes.

    `about` is the run's section: id, models, software, hardware, reproduction words, limitations of its own.
    """
    protocol = str(events[0]["protocol"])
    source = derived.get("hardware", {}).get("device_memory_source") or about.get("hardware", {}).get(
        "device_memory_source", "process-rss-against-budget"
    )
    cpu = source != "nvml"
    experiment: dict[str, Any] = {
        "id": about["id"],
        "claim": about.get("claim")
        or CLAIMS[protocol].format(count=derived["measurements"].get("co_resident_models", "")),
        "source": {
            "harness": "evidence.lifecycle",
            "harness_version": about["harness_version"],
            "source_content_digest_sha256": manifest["digest"],
            "source_manifest_file_sha256": manifest["file_sha256"],
            "verified_source_files": manifest["files"],
            "source_content_digest_definition": "SHA-256 of json.dumps(file_path_to_sha256, sort_keys=True).encode(); distinct from the manifest file byte hash.",
        },
        "hardware": {
            "device": "cpu" if cpu else "gpu",
            "gpu_count": 0 if cpu else 1,
            **about.get("hardware", {}),
            **derived.get("hardware", {}),
        },
        "software": dict(about["software"]),
        "models": [dict(model) for model in about["models"]],
        **{key: value for key, value in derived.items() if key != "hardware"},
        "caller_behavior": caller_words(events, derived),
        "reproduction": {
            "status": "The harness of the named version with this configuration; figures of another run will differ.",
            "invocation": list(
                about.get(
                    "invocation", ["evidence", "lifecycle", "run", "<lifecycle.toml>", "--runs", "<runs-directory>"]
                )
            ),
            "environment_note": about.get(
                "environment_note", "The software named here, on loopback, with one machine to itself."
            ),
        },
        "limitations": [
            *LIMITS[protocol],
            *(SELECTION_WORDS[events[0]["target"]]["limitations"] if protocol == "selection" else ()),
            *([CPU_LIMIT] if cpu else []),
            *about.get("limitations", []),
        ],
    }
    experiment["protocol"].update(protocol_words(events, source))
    if protocol == "co-residency":
        budgets = {model["model"]: model["kv_token_budget"] for model in about["models"] if "kv_token_budget" in model}
        experiment["measurements"]["kv_token_capacities"] = budgets
    if protocol in ("lora", "selection"):
        experiment["protocol"].update(
            {key: about[key] for key in ("fixtures", "lora_alpha", "fixture_normal_weight_scale")}
        )
    return experiment
