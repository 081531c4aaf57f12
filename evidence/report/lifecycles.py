"""Sections of lifecycle records: which model was resident when, what happened, and what the record itself limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evidence.lifecycle import timeline
from evidence.report.grids import facts, figure, folded, grid
from evidence.report.markup import Markup, element, join
from evidence.report.plots import Plots
from evidence.report.tables import Json, PackageView, Table


def sections(view: PackageView, plots: Plots) -> Iterator[Markup]:
    """One article an experiment of every lifecycle record."""
    for entry in view.one("results/lifecycle-index.json")["records"]:
        record = view.one(entry["path"])
        events = timeline.timeline(record)
        figures = timeline.measurements(record)
        for one in record["experiments"]:
            name = one["id"]
            yield element(
                "article",
                element("h3", name),
                element("p", one["claim"], class_="lead"),
                *_drawings(plots, one),
                grid(Table(f"Events of {name}", timeline.HEADINGS[1:], [row[1:] for row in events if row[0] == name]), "events", name),
                folded("Measurements", grid(Table("Measurements", ("figure", "value"), [row[1:] for row in figures if row[0] == name]))),
                *_list("What callers saw", one.get("caller_behavior", [])),
                *_list("Limits that the record states", one["limitations"]),
                folded("Protocol, hardware, software and models", facts([
                    (key, _words(one[key])) for key in ("protocol", "hardware", "software", "models", "source")
                ])),
                element("p", f"Record {entry['id']}, SHA-256 {entry['sha256']}", class_="small"),
                id=f"lifecycle-{entry['id']}-{name}",
            )  # fmt: skip


def _list(title: str, lines: Any) -> Iterator[Markup]:
    if lines:
        yield element("h4", title)
        yield element("ul", join(element("li", line) for line in lines))


def _words(value: Any) -> Markup:
    return element("pre", json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False))


def _drawings(plots: Plots, one: Json) -> Iterator[Markup]:
    name = one["id"]
    if "selected_lifecycle_events" in one:
        events = [(event["seconds_after_crash"], _event(event)) for event in one["selected_lifecycle_events"]]
        window = one["measurements"]["during_phase_window_relative_to_crash_s"]
        spans = [("healthy model answering", window["first_request"], window["last_response"])]
        spoken = "; ".join(f"{words} at {at:.3f} s" for at, words in events)
        yield figure(
            plots.events(
                events,
                spans,
                "seconds after the crash",
                f"Events after the crash in {name}: {spoken}.",
                stem=f"{name}-events",
            ),
            "What happened after the crash (diamonds), above the span in which the healthy neighbour was sampled (bar).",
            wide=True,
        )
    for title, columns, observed in _residencies(one):
        models = sorted({model for resident in observed for model in resident})
        rows = {model: [model in resident for resident in observed] for model in models}
        if rows:
            spoken = "; ".join(f"{model} at {sum(held)} of {len(held)} observations" for model, held in rows.items())
            yield figure(
                plots.residency(columns, rows, f"{title} of {name}: {spoken}.", stem=f"{name}-residency"),
                f"{title}: filled squares were resident at that observation, hollow ones were not; observations in order.",
                wide=True,
            )


def _event(event: Json) -> str:
    statuses = event["response_statuses"]
    words = timeline.CRASH_WORDS.get(event["event"]) or str(event["event"])
    if len(statuses) > 3:
        return f"{words} {statuses[0]} ... {statuses[-1]} ({len(statuses)})"
    return " ".join([words, *(str(status) for status in statuses)])


def _residencies(one: Json) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, what was resident at each) of every series of observations in the experiment."""
    if "selected_samples" in one:
        rows = one["selected_samples"]
        yield (
            "Residency while requests alternate",
            [f"round {row['round']}, {row['model'].rpartition('/')[2]}" for row in rows],
            [list(row["admission_reservations_bytes"]) for row in rows],
        )
    if "selected_pressure_events" in one:
        rows = one["selected_pressure_events"]
        yield (
            "Residency under pressure",
            [f"{row['event']} {row['seconds_after_pressure_began']:.2f} s" for row in rows],
            [row["resident_models"] for row in rows],
        )
    if "selected_turns" in one:
        rows = one["selected_turns"]
        yield (
            "Adapters resident after each turn",
            [f"turn {number}, {row['alias']}" for number, row in enumerate(rows)],
            [row["resident_aliases"] for row in rows],
        )
    observed = one.get("selected_residency_observations", [])
    for kind in dict.fromkeys(row["kind"] for row in observed):
        mine = [row for row in observed if row["kind"] == kind]
        yield f"Adapters ready, {kind}", [row["phase"] for row in mine], [row["ready_aliases"] for row in mine]
