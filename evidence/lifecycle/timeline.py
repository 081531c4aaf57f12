"""A lifecycle record as rows for tables: what happened when, to which model, and with what it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

HEADINGS = ("experiment", "seconds", "event", "model", "detail")
Row = tuple[str, str, str, str, str]


def bytes_text(size: int) -> str:
    """Bytes with their GiB."""
    return f"{size} bytes ({size / 2**30:.2f} GiB)"


def co_residency_rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Samples in order, then the pressure by its times."""
    for sample in one["selected_samples"]:
        detail = f"{sample['resident_model_count']} resident, free {bytes_text(sample['device_free_bytes'])}"
        yield one["id"], "", f"round {sample['round']}", sample["model"], detail
    if "selected_pressure_events" not in one:
        measured = one["measurements"]
        detail = f"free {bytes_text(measured['forced_pressure_free_bytes'])}, next load needs {bytes_text(measured['next_load_reservation_bytes'])}"
        yield one["id"], "", "forced pressure", "", detail
    for event in one.get("selected_pressure_events", []):
        detail = (
            f"free {bytes_text(event['device_free_bytes'])}; resident {', '.join(event['resident_models']) or 'none'}"
        )
        yield one["id"], f"{event['seconds_after_pressure_began']:.3f}", event["event"], event.get("model", ""), detail


def crash_rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Events and the sampling window, by time relative to the crash."""
    protocol, measured = one["protocol"], one["measurements"]
    window = measured["during_phase_window_relative_to_crash_s"]
    healthy, victim = protocol["pinned_healthy_model"], protocol["victim_model"]
    rows: list[tuple[float, str, str, str]] = [
        (
            window["first_request"],
            "first healthy request",
            healthy,
            f"of {measured['phase_counts']['during']} during the crash",
        ),
        (
            window["last_response"],
            "last healthy response",
            healthy,
            f"{measured['healthy_requests_successful']} of {measured['healthy_requests_total']} succeeded in all",
        ),
    ]
    for event in one["selected_lifecycle_events"]:
        statuses = " ".join(str(status) for status in event["response_statuses"])
        rows.append((event["seconds_after_crash"], event["event"], victim, f"statuses {statuses}" if statuses else ""))
    for seconds, event, model, detail in sorted(rows, key=lambda row: row[0]):
        yield one["id"], f"{seconds:.3f}", event, model, detail


def lora_rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Residency listings in order, with what came and went."""
    order, before = one["protocol"]["churn_request_order"], dict[str, list[str]]()
    for seen in one["selected_residency_observations"]:
        kind, ready = seen["kind"], seen["ready_aliases"]
        was = before.get(kind, ready)
        moved = [f"+{alias}" for alias in ready if alias not in was] + [
            f"-{alias}" for alias in was if alias not in ready
        ]
        asked = order[int(seen["phase"][6:])] if seen["phase"].startswith("churn_") else ""
        yield one["id"], "", f"{kind} {seen['phase']}", asked, " ".join([f"ready {', '.join(ready) or 'none'}", *moved])
        before[kind] = ready


def timeline(record: Mapping[str, Any]) -> list[Row]:
    """(experiment, seconds, event, model, detail) of every experiment of a verified record, in order."""
    rows: list[Row] = []
    for one in record["experiments"]:
        protocol = one["protocol"]
        kind = (
            co_residency_rows
            if "co_residency_rounds" in protocol
            else crash_rows
            if "crashes" in protocol
            else lora_rows
        )
        rows += kind(one)
    return rows


def measurements(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(experiment, figure, value) of every measurement, nested ones by path."""

    def walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from walk(one, f"{path}.{key}" if path else key)
        else:
            yield path, ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)

    return [(one["id"], path, text) for one in record["experiments"] for path, text in walk(one["measurements"], "")]


def render_timeline(record: Mapping[str, Any]) -> str:
    """The rows as a plain table."""
    from tabulate import tabulate

    return tabulate(timeline(record), headers=HEADINGS, disable_numparse=True)
