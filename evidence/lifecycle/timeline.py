"""A lifecycle record as rows for tables: what happened when, to which model, and with what it was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evidence.errors import EvidenceError
from evidence.inputs import read_input

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


CRASH_WORDS = {
    "crash": "killed",
    "crash_detected": "listed as gone",
    "recovery_request": "request ended",
    "recovered": "recovered",
}


def crash_rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Events and the sampling window, by time relative to the crash; a request's time is that of its last answer."""
    protocol, measured = one["protocol"], one["measurements"]
    window = measured["during_phase_window_relative_to_crash_s"]
    healthy, victim = protocol["pinned_healthy_model"], protocol["victim_model"]
    counts = measured["phase_counts"]
    rows: list[tuple[float, str, str, str]] = [
        (
            window["first_request"],
            "first healthy request",
            healthy,
            f"of {counts['during']} from the crash to the recovery; {counts['before']} were answered before",
        ),
        (
            window["last_response"],
            "last healthy response",
            healthy,
            f"of that phase; with {counts['after']} after it {measured['healthy_requests_successful']} of "
            f"{measured['healthy_requests_total']} succeeded",
        ),
    ]
    for event in one["selected_lifecycle_events"]:
        statuses = " ".join(str(status) for status in event["response_statuses"])
        detail = f"statuses {statuses}" if statuses else ""
        rows.append((event["seconds_after_crash"], CRASH_WORDS[event["event"]], victim, detail))
    for seconds, event, model, detail in sorted(rows, key=lambda row: row[0]):
        yield one["id"], f"{seconds:.3f}", event, model, detail


def residents(now: list[str], before: list[str], word: str) -> str:
    """Who is there, and who came and went since the listing before."""
    came = [f"{alias} came" for alias in now if alias not in before]
    went = [f"{alias} went" for alias in before if alias not in now]
    return f"{word} {', '.join(now) or 'none'}" + (f" ({', '.join([*came, *went])})" if came or went else "")


def lora_rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Residency listings in order, with what came and went."""
    order, before = one["protocol"]["churn_request_order"], dict[str, list[str]]()
    for seen in one["selected_residency_observations"]:
        kind, ready = seen["kind"], seen["ready_aliases"]
        asked = order[int(seen["phase"][6:])] if seen["phase"].startswith("churn_") else ""
        text = residents(ready, before.get(kind, ready), "ready")
        yield one["id"], "", f"{kind} {seen['phase']}", asked, text
        before[kind] = ready


def selection_rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Turns in order: what callers were told, how far the answer was from the base's, and who was resident then."""
    before = one["resident_at_first"]
    yield one["id"], "", "initial", "", residents(before, before, "resident")
    for number, turn in enumerate(one["selected_turns"]):
        told = f"statuses {' '.join(map(str, turn['statuses']))}; {turn['effect']:.4g} from the base; "
        text = told + residents(turn["resident_aliases"], before, "resident")
        yield one["id"], "", f"turn {number}", turn["alias"], text
        before = turn["resident_aliases"]
    seen = one["measurements"]["undeclared_adapter"]
    now = [alias for alias in before if alias not in seen["evicted"]]
    text = f"statuses {' '.join(map(str, seen['statuses']))}; {seen['outcome']}; " + residents(now, before, "resident")
    yield one["id"], "", "an undeclared adapter", "", text


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
            else selection_rows
            if "selection_order" in protocol
            else lora_rows
        )
        rows += kind(one)
    return rows


def say(value: Any) -> str:
    """A figure as a table shows it: yes and no, lists with commas."""
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or "none"
    return {True: "yes", False: "no", None: "-"}[value] if value is None or isinstance(value, bool) else str(value)


def measurements(record: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(experiment, figure, value) of every measurement, nested ones by path."""

    def walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from walk(one, f"{path}.{key}" if path else key)
        else:
            yield path, say(value)

    return [(one["id"], path, text) for one in record["experiments"] for path, text in walk(one["measurements"], "")]


def find_record(path: Path) -> Path | None:
    """The record file that a path names, or that lies in the folder that it names and is no package; None if none."""
    inside = path / "record.json"
    if inside.is_file() and not (path / "manifest.json").exists():
        return inside
    return path if path.suffix == ".json" and path.is_file() else None


def read_record(path: Path) -> dict[str, Any]:
    """A record file. Raises EvidenceError for what has no rows; whether it is true is for verify-lifecycle.py to say."""
    from evidence.report.tables import record_tables

    hint = f"`python3 verifiers/verify-lifecycle.py {path}` says all that is wrong with it"
    content = read_input(path, "a lifecycle record", "name a record file, or the folder that holds record.json")
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: found no JSON ({error}), expected a lifecycle record", hint, code=1) from None
    try:
        if not isinstance(record, dict):
            raise TypeError("no object")
        record_tables(record)
        _ = [record[key] for key in ("title", "measured_on", "scope")]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        said = f"nothing at {error}" if isinstance(error, KeyError) else str(error)
        raise EvidenceError(f"{path}: found {said}, expected a lifecycle record", hint, code=1) from None
    return dict(record)


def render_timeline(record: Mapping[str, Any]) -> str:
    """The rows as a plain table."""
    from tabulate import tabulate

    from evidence.report.tables import words

    rows = [[words(text, "table") for text in row] for row in timeline(record)]
    return tabulate(rows, headers=HEADINGS, disable_numparse=True)
