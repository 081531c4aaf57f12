"""What a run's raw events must show before a record may be made of it: each lie of a target has its code.

The audit looks at raw events alone and says every fault that it finds as (code, text). A target's own word is held
against a second source wherever there is one: the system's account of a process, the device's memory, the answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from evidence.lifecycle.events import Event, pick, settings_of
from evidence.lifecycle.selected import process_faults, selection_faults

Fault = tuple[str, str]


def audit(events: list[Event]) -> list[Fault]:
    """All faults of a run, in the order of the checks; an empty list is a run that bears a record."""
    checks = {
        "co-residency": co_residency_faults,
        "crash": crash_faults,
        "lora": lora_faults,
        "selection": selection_faults,
    }
    found = list(complete_faults(events))
    return [*found, *checks[str(events[0]["protocol"])](events)]


def complete_faults(events: list[Event]) -> Iterator[Fault]:
    """The run ended by itself, its times never go back, every request has one response."""
    if events[-1]["event"] != "run-ended" or events[-1].get("complete") is not True:
        said = next((event.get("message", "") for event in pick(events, "aborted")), "no run-ended")
        yield "RUN_INCOMPLETE", f"the run did not end by itself: {said}"
    for before, after in itertools.pairwise(events):
        if after["t"] < before["t"]:
            yield "TIME_WENT_BACK", f"{after['event']} at {after['t']} after {before['t']}"
    asked = [event["id"] for event in pick(events, "request")]
    answered = [event["id"] for event in pick(events, "response")]
    if sorted(asked) != sorted(answered) or len(set(asked)) < len(asked):
        yield "RESPONSE_MISSING", f"{len(asked)} requests, {len(answered)} responses"


def response_faults(events: list[Event], *lanes: str) -> Iterator[Fault]:
    """Answers are answers: given in time, by the model that was asked, and a caller who must wait is told how long."""
    for event in pick(events, "response"):
        if event.get("lane") not in lanes:
            continue
        name = f"request {event['id']} to {event['model']}"
        if event["transport"] != "complete":
            yield "ANSWER_MISSING", f"{name}: {event['transport']}"
        elif event["status"] == 200 and not event["answered"]:
            yield "ANSWER_EMPTY", f"{name}: 200 without text"
        elif event["status"] == 200 and event["served_model"] != event["model"]:
            yield "WRONG_MODEL", f"{name}: answered by {event['served_model']}"
        elif event["status"] == 503 and event["retry_after"] is None:
            yield "RETRY_AFTER_MISSING", f"{name}: 503 without Retry-After"


def entries(events: list[Event], model: str) -> Iterator[tuple[Event, dict[str, Any]]]:
    """(listing, entry of a model) of every listing."""
    for event in pick(events, "listing"):
        for one in event["models"]:
            if one["model"] == model:
                yield event, one


def listing_faults(events: list[Event]) -> Iterator[Fault]:
    """A loaded model has a live process of its own that the system knows; memory was read and is of this world."""
    owners: dict[int, tuple[int, str]] = {}
    for event in pick(events, "listing"):
        for one in event["models"]:
            if one["state"] != "loaded" or one["pid"] is None:
                continue
            name = f"{one['model']} at {event['t']}"
            if one["alive"] is False and event["label"] != "watch":
                yield "PROCESS_NOT_ALIVE", f"{name}: process {one['pid']} does not run"
            owner = owners.setdefault(one["pid"], (one["started_ticks"], one["model"]))
            if owner != (one["started_ticks"], one["model"]):
                yield "PROCESS_ID_REUSED", f"{name}: process {one['pid']} was that of {owner[1]} started at {owner[0]}"
        total, free = event["total_bytes"], event["free_bytes"]
        if free is None or total is None or not 0 < free < total:
            yield "MEMORY_NOT_READ", f"free {free} of {total} bytes at {event['t']}"


def pids_of(events: list[Event], model: str) -> list[tuple[int, int]]:
    """(process id, start) of a model while loaded, each once, in order of appearance."""
    found: list[tuple[int, int]] = []
    for _, one in entries(events, model):
        identity = (one["pid"], one["started_ticks"])
        if one["state"] == "loaded" and one["pid"] is not None and identity not in found:
            found.append(identity)
    return found


def co_residency_faults(events: list[Event]) -> Iterator[Fault]:
    """Rounds with unchanged processes; an eviction that is real, before the load, and never of the pinned model."""
    settings = settings_of(events)
    yield from response_faults(events, "round", "first-load", "touch", "pressure", "pinned-after")
    yield from listing_faults(events)
    for model in settings["models"]:
        found = pids_of(
            [event for event in events if not str(event.get("label")).startswith(("watch", "served", "ballast"))], model
        )
        if len(found) != 1:
            yield "PROCESS_CHANGED", f"{model} had {len(found)} processes, expected one"
    pinned, wanted = settings["pinned_model"], settings["next_load_model"]
    pressed = False
    last: dict[str, dict[str, Any]] = {}
    for event in pick(events, "listing"):
        pressed = pressed or event["label"] == "ballast taken"
        now = {one["model"]: one for one in event["models"]}
        if pressed and (pinned not in now or now[pinned]["state"] != "loaded"):
            yield "PIN_LOST", f"{pinned} is not loaded at {event['t']}"
        if pinned in now and not now[pinned]["pinned"]:
            yield "PIN_FORGOTTEN", f"{pinned} is listed without its pin at {event['t']}"
        last = now if event["label"] == "served" else last
    if len(pids_of(events, pinned)) != 1:
        yield "PROCESS_CHANGED", f"the pinned {pinned} had {len(pids_of(events, pinned))} processes, expected one"
    yield from unload_faults(events, wanted)
    yield from pressure_faults(events, wanted, last)


def unload_faults(events: list[Event], wanted: str) -> Iterator[Fault]:
    """What was unloaded is gone by three accounts: the listing, the system, the device's memory."""
    loaded = list(pick(events, "listing", label="next loaded"))
    unloaded = list(pick(events, "listing", label="unloaded"))
    if not loaded or not unloaded:
        yield "UNLOAD_MISSING", "no listing before and after the unload"
        return
    before, after = loaded[-1], unloaded[-1]
    entry: dict[str, Any] = next((one for one in before["models"] if one["model"] == wanted), {})
    still: dict[str, Any] = next((one for one in after["models"] if one["model"] == wanted), {})
    if still.get("state") == "loaded":
        yield "STILL_LISTED", f"{wanted} is listed as loaded after its unload"
    for event in pick(events, "process", model=wanted):
        if event["alive"]:
            yield "STILL_RUNNING", f"process {event['pid']} of {wanted} runs after its unload"
    if entry.get("pid") is not None and after["free_bytes"] is not None and after["free_bytes"] <= before["free_bytes"]:
        yield "MEMORY_NOT_FREED", f"{after['free_bytes']} bytes free after the unload, {before['free_bytes']} before"


def pressure_faults(events: list[Event], wanted: str, served: dict[str, dict[str, Any]]) -> Iterator[Fault]:
    """Less was free than the next load needs, a resident model went first, its process ended, memory came back."""
    taken = next(pick(events, "listing", label="ballast taken"), None)
    if taken is None or not served:
        yield "PRESSURE_MISSING", "no listing with the ballast, or none after the load"
        return
    before = {one["model"]: one for one in taken["models"]}
    need = before.get(wanted, {}).get("reservation_bytes") or 0
    if taken["free_bytes"] is None or taken["free_bytes"] >= need:
        yield "NO_PRESSURE", f"{taken['free_bytes']} bytes free, the next load needs {need}"
    gone = [
        name
        for name, one in before.items()
        if one["state"] == "loaded" and served.get(name, {}).get("state") != "loaded"
    ]
    if not gone:
        yield "NOT_EVICTED", "no model left the listing under pressure"
    if served.get(wanted, {}).get("state") != "loaded":
        yield "NOT_LOADED", f"{wanted} is not listed as loaded after it answered"
    for event in pick(events, "listing", label="watch"):
        now = {one["model"]: one["state"] for one in event["models"]}
        if event["t"] > taken["t"] and now.get(wanted) == "loaded" and any(now.get(name) == "loaded" for name in gone):
            yield "EVICTED_LATE", f"{wanted} was loaded at {event['t']} while {', '.join(gone)} still was"
    for name in gone:
        for event in pick(events, "process", model=name):
            if event["alive"]:
                yield "STILL_RUNNING", f"process {event['pid']} of the evicted {name} runs"


def crash_faults(events: list[Event]) -> Iterator[Fault]:
    """The healthy engine answered everything from one process; the victim died, was found dead, and came back once."""
    settings = settings_of(events)
    healthy, victim = settings["healthy_model"], settings["victim_model"]
    yield from response_faults(events, "healthy", "recovery", "load")
    yield from listing_faults(events)
    for event in pick(events, "response", lane="healthy"):
        if event["status"] != 200:
            yield "HEALTHY_FAILED", f"request {event['id']}: status {event['status']}"
    if len(pids_of(events, healthy)) != 1:
        yield "PROCESS_CHANGED", f"the healthy {healthy} had {len(pids_of(events, healthy))} processes, expected one"
    crash = next(pick(events, "crash"), None)
    detected, recovered = next(pick(events, "crash_detected"), None), next(pick(events, "recovered"), None)
    if crash is None or detected is None:
        yield "NOT_DETECTED", "the target did not list the victim as gone"
        return
    killed = (crash["pid"], crash["started_ticks"])
    later = pids_of([event for event in events if event["t"] > detected["t"]], victim)
    if killed in later:
        yield "VICTIM_NOT_DEAD", f"process {killed[0]} is listed again after SIGKILL"
    if any(pid == killed[0] and identity != killed for identity in later for pid in identity[:1]):
        yield "PROCESS_ID_REUSED", f"the victim came back under process id {killed[0]}"
    if len([one for one in later if one != killed]) > 1:
        yield "SECOND_RELOAD", f"the victim had {len(later)} processes after the crash, expected one"
    if recovered is None or not later:
        yield "NOT_RECOVERED", "the victim did not come back"
        return
    if recovered["t"] - crash["t"] > settings["recovery_timeout_s"]:
        yield (
            "RECOVERY_LATE",
            f"recovered {recovered['t'] - crash['t']:.3f} s after the crash, limit {settings['recovery_timeout_s']}",
        )
    yield from recovery_faults(events, settings)


def recovery_faults(events: list[Event], settings: Any) -> Iterator[Fault]:
    """Callers were told the truth on the way: 502 in the cooldown, then 503, then 200; no failure once it loads."""
    seen: list[int | None] = []
    for event in pick(events, "response", lane="recovery"):
        status = event["status"]
        if status == 502 and 503 in seen:
            yield "LOADING_NOT_TOLD", f"request {event['id']}: 502 while the victim loads"
        if status == 502 and event["retry_after"] is not None:
            yield "COOLDOWN_RETRY_AFTER", f"request {event['id']}: 502 of the cooldown with Retry-After"
        if status == 502 and event["permanent"] is not False:
            yield "COOLDOWN_PERMANENT", f"request {event['id']}: 502 with permanent {event['permanent']}"
        seen.append(status)
    if not seen or seen[0] != 502:
        yield (
            "COOLDOWN_NOT_TOLD",
            f"the first request after the crash was told {seen[0] if seen else 'nothing'}, expected 502",
        )
    if 503 not in seen:
        yield "LOADING_NOT_TOLD", "no request was told 503 before the answer"


def lora_faults(events: list[Event]) -> Iterator[Fault]:
    """Adapters change the answer, come and go as listed and are refused when gone; the base comes back."""
    settings = settings_of(events)
    for event in pick(events, "response"):
        expected = event["phase"] not in ("evicted", "undeclared")
        if expected and (event["status"] != 200 or not event["answered"]):
            yield "ANSWER_MISSING", f"{event['phase']}: status {event['status']}, {event['transport']}"
        if expected and event["first_token_probabilities"] is None:
            yield "PROBABILITIES_MISSING", f"{event['phase']}: no probabilities"
        if not expected and event["status"] == 200:
            code = "EVICTED_STILL_SERVED" if event["phase"] == "evicted" else "UNDECLARED_SERVED"
            yield code, f"{event['alias']} was answered with 200"
    for event in pick(events, "load"):
        if event["status"] not in (200, None):
            yield "LOAD_FAILED", f"{event['alias']}: status {event['status']}"
    yield from process_faults(events, "ready")
    gone: set[str] = set()
    for event in events:
        if event["event"] == "unload":
            gone.add(event["alias"])
        elif event["event"] == "load":
            gone.discard(event["alias"])
        elif event["event"] == "ready":
            ready = event["aliases"]
            if len(ready) > settings["ready_adapter_capacity"]:
                yield "CAPACITY_EXCEEDED", f"{event['phase']}: {len(ready)} of {settings['ready_adapter_capacity']}"
            if not set(settings["pinned_aliases"]) <= set(ready):
                yield "PIN_LOST", f"{event['phase']}: ready are {', '.join(ready) or 'none'}"
            if gone & set(ready):
                yield "STILL_LISTED", f"{event['phase']}: {', '.join(sorted(gone & set(ready)))} after the unload"
    by_phase = {event["phase"]: event for event in pick(events, "response", status=200)}
    base = by_phase.get("warm-base-2", {})
    for alias in settings["dynamic_aliases"]:
        answers = [
            by_phase[f"churn_{turn}"]
            for turn, one in enumerate(settings["churn_request_order"])
            if one == alias and f"churn_{turn}" in by_phase
        ]
        for answer in [*answers, *([by_phase[f"effect-{alias}"]] if f"effect-{alias}" in by_phase else [])]:
            if answer["first_token_probabilities"] == base.get("first_token_probabilities"):
                yield "ADAPTER_NOT_APPLIED", f"{alias} in {answer['phase']} answered as the base does"
    for phase in ("reset-after-a-b", "reset-after-churn"):
        if phase in by_phase and by_phase[phase]["text_sha256"] != base.get("text_sha256"):
            yield "BASE_NOT_RESTORED", f"{phase}: another text than the warm base's"
