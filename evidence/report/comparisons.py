"""The section of one comparison: what was changed, what came of it, why, and everything that it rests on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from evidence.report import tables
from evidence.report.grids import facts, figure, folded, grid
from evidence.report.markup import Markup, element, join
from evidence.report.plots import Bar, Dot, Limit, Plots
from evidence.report.tables import Json, PackageView, Table

GIB = 2**30
MEMORY = {
    "nvml": "GPU memory in use, read with NVML",
    "process-rss": "Resident memory of the engine process (process-rss), no GPU",
    "synthetic": "Synthetic figure, no memory of anything",
}
SAMPLES = ("offer", "worker", "classification", "finishReason", "startedSeconds", "ttftSeconds", "totalSeconds",
           "promptTokens", "completionTokens")  # fmt: skip


def section(view: PackageView, plots: Plots, entry: Json) -> Markup:
    """The whole section of one complete comparison; `entry` is one of `view.comparisons`."""
    name = entry["id"]
    samples = view.one(f"{entry['folder']}/samples.json")["samples"]
    changed = element("code", change(entry))
    return element(
        "article",
        element("h3", name, " ", _badges(entry)),
        element("p", "One setting changed: ", changed, f" for {entry['profile']} on {entry['engine']}. ", reason(entry),
                class_="lead"),
        rows_of(name, tables.gate_table(view), "gates"),
        gates(plots, entry),
        element("div", *_figures(view, plots, entry, samples), class_="figures"),
        rows_of(name, tables.comparison_table(view), "comparisons"),
        dots(plots, entry, samples),
        folded(f"All {len(samples)} samples", grid(sample_table(samples), "samples", name)),
        folded("How it was run: gateway, launches, timeline, the client's own lateness", running(entry)),
        id=f"comparison-{name}",
    )  # fmt: skip


def rows_of(comparison: str, table: Table, name: str, drop: int = 1) -> Markup:
    """The rows of one comparison, without the first columns, which would say the same in each."""
    rows = [row for row in table.rows if row[0] == comparison]
    return grid(Table(f"{table.title} of {comparison}", table.columns, rows), name, comparison, drop)


def _badges(entry: Json) -> Markup:
    taken = entry["decision"] == "candidate"
    qualified = entry["performanceComparisonQualified"]
    return join((
        element("span", "candidate accepted" if taken else "baseline kept", class_="badge good" if taken else "badge bad"),
        " ", element("span", "qualified" if qualified else "not qualified", class_="badge" if qualified else "badge bad"),
        " ", element("span", "synthetic", class_="badge warn") if entry["synthetic"] else "",
    ))  # fmt: skip


def reason(entry: Json) -> str:
    """One sentence on what was decided and why."""
    decision = entry["decisionFile"]
    if entry["decision"] == "candidate":
        again = (
            " It still needs a functional attempt of its own."
            if decision["requalification"] == "required"
            else " A functional attempt of its own, with that setting, succeeded."
        )
        held = "; ".join(_worst(gate) for gate in decision["gates"])
        return f"The candidate was accepted: every main sample is a normal answer, and every gate holds (nearest to failing: {held}).{again}"
    parts = []
    if decision["disqualifications"]:
        parts.append(
            "not qualified: " + "; ".join(f"{one['code']} ({one['detail']})" for one in decision["disqualifications"])
        )
    for gate in decision["gates"]:
        if gate["gate"] in decision["failedGates"]:
            parts.append(f"fails {_worst(gate)}")
    return f"The baseline was kept: {'; '.join(parts) or 'see the gates'}."


def change(entry: Json) -> str:
    """The one setting that differs between the arms."""
    setting = entry["comparisonFile"]["setting"]
    return f"{setting['argument']} {setting['baseline']} \u2192 {setting['candidate']}"


def _worst(gate: Json) -> str:
    """The row that comes nearest to failing, or fails most, with what is asked for."""
    values = [Fraction(row["relative"]) for row in gate["rows"] if row["relative"] is not None]
    if not values:
        return f"{gate['gate']} could not be computed"
    worst = (max if gate["gate"] in tables.AT_MOST else min)(values)
    shown = tables.percent(worst, tables.LIMITS[gate["gate"]])
    return f"{gate['gate']} {shown}, asked: {tables.asked(gate['gate'])}"


def gates(plots: Plots, entry: Json) -> Markup:
    """Every gate row against its limit."""
    worst = "; ".join(_worst(gate) for gate in entry["decisionFile"]["gates"])
    return figure(
        plots.limits(list(_limits(entry)), f"Gates of {entry['id']}, the row nearest to failing of each: {worst}.",
                     stem=f"{entry['id']}-gates"),
        "Every gate row against its limit. The relative difference is exact; the table has both sides and the margin.",
        wide=True,
    )  # fmt: skip


def _limits(entry: Json) -> Iterator[Limit]:
    for gate in entry["decisionFile"]["gates"]:
        for row in gate["rows"]:
            if row["relative"] is not None:
                where = f"pair {row['repetition']}" if row["repetition"] else "median of pairs"
                label = " ".join(filter(None, (gate["gate"], where, row["device"])))
                at_most = gate["gate"] in tables.AT_MOST
                value, limit = float(Fraction(row["relative"]) * 100), float(tables.LIMITS[gate["gate"]] * 100)
                yield Limit(label, value, limit, at_most, bool(row["holds"]))


def p95(plots: Plots, entry: Json) -> Markup:
    """p95 of TTFT of both arms, pair by pair."""
    name = entry["id"]
    known = [
        (f"pair {pair['repetition']}", *(pair[side]["p95TtftSeconds"] for side in ("baseline", "candidate")))
        for pair in entry["decisionFile"]["pairs"]
    ]
    if any(value is None for row in known for value in row):
        return element("p", "No p95 of TTFT: a pair lacks it.", class_="none")
    spoken = f"p95 TTFT of the three pairs of {name}: " + _spoken(known, "s")
    return figure(
        plots.slopes(known, "p95 TTFT, s", spoken, stem=f"{name}-p95-ttft"),
        "p95 time to first token, baseline to candidate, one line a paired repetition; falling lines are faster. "
        "p95 is the 23rd of 24 (nearest rank).",
    )


def _figures(view: PackageView, plots: Plots, entry: Json, samples: Sequence[Json]) -> Iterator[Markup]:
    name, pairs = entry["id"], entry["decisionFile"]["pairs"]
    yield p95(plots, entry)
    main = [one for one in samples if one["phase"] == "main"]
    for key, title in (("ttftSeconds", "time to first token"), ("totalSeconds", "total time")):
        curves = []
        for repetition, arm in sorted({(one["repetition"], one["arm"]) for one in main}):
            values = [
                one[key]
                for one in main
                if (one["repetition"], one["arm"]) == (repetition, arm) and one[key] is not None
            ]
            curves.append((f"r{repetition}", arm, values))
        if any(values for *_, values in curves):
            yield figure(
                plots.ecdf(
                    curves,
                    f"{title}, s",
                    f"Distribution of {title} in each arm of {name}; the samples table has the values.",
                ),
                f"Distribution of {title} of the main requests, one curve an arm; further left is faster.",
            )
    tokens = [
        Bar(f"pair {pair['repetition']}", *(pair[side]["completionTokens"] for side in ("baseline", "candidate")))
        for pair in pairs
    ]
    yield figure(
        plots.bars(tokens, "completion tokens", f"Completion tokens of {name}: " + _spoken([(b.label, b.baseline, b.candidate) for b in tokens], "tokens")),
        "Completion tokens of the main batch: arms that answer with different amounts of text cannot be compared in time.",
    )  # fmt: skip
    yield memory(view, plots, entry)


def memory(view: PackageView, plots: Plots, entry: Json) -> Markup:
    """What the snapshots read on each device, named by what they were read from; a GPU only where NVML read it."""
    snapshots = view.one(f"{entry['folder']}/snapshots.json")["snapshots"]
    sources = sorted({str(one["source"]) for one in snapshots})
    title = "; ".join(MEMORY.get(source, f"source {source}") for source in sources) or "No snapshot"
    used: dict[tuple[int, str], dict[str, int | None]] = {}
    reasons = []
    for one in snapshots:
        for device in one["devices"]:
            used.setdefault((one["repetition"], device["device"]), {})[one["arm"]] = device["usedBytes"]
            if device["usedBytes"] is None:
                reasons.append(f"r{one['repetition']} {one['arm']} {device['device']}: {device['reason']}")
    bars = [
        Bar(f"pair {repetition}\n{device}", *(None if sides.get(arm) is None else sides[arm] / GIB for arm in "AB"))  # type: ignore[operator]
        for (repetition, device), sides in sorted(used.items())
    ]
    share = 0.7 if entry["kind"] == "memory" else None
    spoken = _spoken([(bar.label.replace("\n", " "), bar.baseline, bar.candidate) for bar in bars], "GiB")
    caption = (
        f"{title}. One reading an arm after the native warm-ups, before the load: neither a peak nor a long idle measurement. "
        + ("The bar across marks 30 % below the baseline. " if share else "")
        + ("Unknown: " + "; ".join(reasons) if reasons else "")
    )
    drawing = plots.bars(
        bars, "GiB", f"{title} of {entry['id']}: {spoken}", share=share, wide=True, stem=f"{entry['id']}-memory"
    )
    return figure(drawing, caption, wide=True)


def _spoken(rows: Sequence[tuple[str, Any, Any]], unit: str) -> str:
    def say(value: Any) -> str:
        return "unknown" if value is None else f"{value:.4g} {unit}"

    return "; ".join(f"{name} baseline {say(before)}, candidate {say(after)}" for name, before, after in rows)


def dots(plots: Plots, entry: Json, samples: Sequence[Json]) -> Markup:
    """Every sample in the order of the run."""
    bands, ranges = [], []
    for arm in sorted(entry["comparisonFile"]["arms"], key=lambda one: one["sequence"]):
        mine = [one for one in samples if (one["repetition"], one["arm"]) == (arm["repetition"], arm["arm"])]
        bands.append((f"{arm['sequence']}.  pair {arm['repetition']}, {arm['arm']}", [_dot(one) for one in mine]))
        main = [one["ttftSeconds"] for one in mine if one["phase"] == "main" and one["ttftSeconds"] is not None]
        if main:
            ranges.append(f"pair {arm['repetition']} {arm['arm']} {min(main):.4g} to {max(main):.4g} s")
    failed = sum(one["classification"] != "NORMAL" for one in samples)
    counts = f"{len(samples)} samples, {failed} of them not a normal answer"
    spoken = f"Every sample of {entry['id']} in time order: {counts}. TTFT of the main requests: {'; '.join(ranges) or 'none'}."
    return figure(
        plots.samples(bands, "time to first token, s", spoken, stem=f"{entry['id']}-samples"),
        f"Every sample in the order in which it was sent, in the order of the arms: {counts}. Warm-ups are hollow and never "
        "counted in a percentile.",
        wide=True,
    )


def _dot(one: Json) -> Dot:
    ttft, total = one["ttftSeconds"], one["totalSeconds"]
    normal = one["classification"] == "NORMAL"
    if not normal:
        kind = "failed"
    elif ttft is None:
        kind = "unstreamed"
    else:
        kind = str(one["arm"]) if one["phase"] == "main" else "warm"
    words = f"{one['offer']} {one['classification']}" if not normal else str(one["offer"])
    return Dot(one["startedSeconds"], total if kind in ("failed", "unstreamed") else ttft, kind, words)


def sample_table(samples: Sequence[Json]) -> Table:
    """One row a sample, in the order of the record."""
    return Table("Samples", SAMPLES, [[one[column] for column in SAMPLES] for one in samples])


def running(entry: Json) -> Markup:
    """Gateway, protocol, launches, timeline, and how late the client itself was."""
    record = entry["comparisonFile"]
    gateway = record["gateway"]
    protocol = [(key, value) for key, value in sorted(record["protocol"].items())]
    return join((
        facts([("case", entry["case"]), ("run", record["run"]), ("gateway", f"{gateway['kind']} {gateway['name']}"),
               ("main request", record["requests"]["main"]["sha256"]), *protocol]),
        launches([(f"r{arm['repetition']} {arm['arm']}", launch) for arm in record["arms"] for launch in arm["launches"]]),
        grid(timeline_table(record["arms"])),
        grid(client_table(record["arms"])),
    ))  # fmt: skip


def launches(rows: Sequence[tuple[str, Json]]) -> Markup:
    """Launch arguments as recorded, each distinct launch once."""
    seen: dict[tuple[str, str], list[str]] = {}
    for where, launch in rows:
        environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(launch["environment"].items()))
        seen.setdefault((shlex.join(launch["arguments"]), environment), []).append(f"{where} {launch['worker']}")
    found = [[", ".join(where), arguments, environment or None] for (arguments, environment), where in seen.items()]
    return grid(
        Table(
            "Launches (values of ports, folders and hosts are placeholders)",
            ("arms and workers", "arguments", "environment"),
            found,
        )
    )


def timeline_table(arms: Sequence[Json]) -> Table:
    """When each arm reached what, in seconds since its start."""
    keys = ("engineStartedSeconds", "readySeconds", "nativeWarmEndedSeconds", "snapshotSeconds", "rrWarmEndedSeconds",
            "firstMainSeconds", "lastMainSeconds")  # fmt: skip
    rows = [
        [arm["sequence"], arm["repetition"], arm["arm"], arm["startedAt"], *((arm["timeline"] or {}).get(key) for key in keys), arm["wallSeconds"]]
        for arm in arms
    ]  # fmt: skip
    return Table("Timeline of the arms, seconds since each arm's start",
                 ("sequence", "pair", "arm", "started", *(key.removesuffix("Seconds") for key in keys), "wall"), rows)  # fmt: skip


def client_table(arms: Sequence[Json]) -> Table:
    """How late the measuring client itself was."""
    keys = ("late", "limitSeconds", "loopLagP99Seconds", "loopLagMaxSeconds", "sendLagP99Seconds", "sendLagMaxSeconds",
            "processorShare", "wallClockStepped", "clock")  # fmt: skip
    rows = [[arm["sequence"], *((arm["client"] or {}).get(key) for key in keys)] for arm in arms]
    return Table("The client's own lateness", ("sequence", *keys), rows)
