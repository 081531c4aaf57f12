"""The one door to matplotlib: plain numbers go in, a drawing for the page comes out.

Nothing here knows a package's files. Text in a drawing is never read as mathematics, and sizes are in inches of a
page that the browser scales. Arm A (the baseline) is a solid line and a round mark, arm B (the candidate) a dashed
line and a triangle: colour is never the only difference.
"""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from evidence.report.drawing import COLOURS as C
from evidence.report.drawing import Drawings
from evidence.report.markup import Markup
from evidence.visible import visible

WIDE, NARROW = 9.6, 4.7
_MARKS = {"A": "o", "B": "^"}
_DASHES = {"A": "-", "B": (0, (4, 2))}
_HUES = {"A": C["a"], "B": C["b"]}
_WORDS = {"A": "A baseline", "B": "B candidate"}
_SETTINGS: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "evidence", "text.parse_math": False, "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.edgecolor": C["muted"], "axes.labelcolor": C["ink"], "text.color": C["ink"],
    "xtick.color": C["muted"], "ytick.color": C["muted"], "xtick.labelcolor": C["ink"], "ytick.labelcolor": C["ink"],
    "axes.grid": True, "grid.color": C["grid"], "grid.linewidth": 0.6, "axes.axisbelow": True, "figure.facecolor": "none",
    "axes.facecolor": "none", "legend.frameon": False, "legend.fontsize": 8.5, "savefig.facecolor": "none",
    "axes.formatter.useoffset": False, "path.simplify": True, "lines.solid_capstyle": "butt",
}  # fmt: skip


@dataclass(frozen=True)
class Dot:
    """One sample: `x` and `y` in seconds, `kind` one of A, B, warm, unstreamed, failed, and its words."""

    x: float
    y: float
    kind: str
    title: str


@dataclass(frozen=True)
class Bar:
    """One measured amount of an arm beside another; None when it is not known."""

    label: str
    baseline: float | None
    candidate: float | None


@dataclass(frozen=True)
class Limit:
    """One gate row in percent: where it came out, where its limit is, and on which side of it lies `holds`."""

    label: str
    value: float
    limit: float
    at_most: bool
    holds: bool


class Plots:
    """Draws the plots of one page; `stem` names a drawing where a page keeps it as a file."""

    def __init__(self, drawings: Drawings) -> None:
        self.drawings = drawings

    def slopes(self, pairs: Sequence[tuple[str, float, float]], axis: str, label: str, stem: str = "slopes") -> Markup:
        """One line a repetition from the baseline's figure to the candidate's, with its relative change."""
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(NARROW, 2.9)
            heights = [value for _, *both in pairs for value in both]
            low, high = min(heights), max(heights)
            spread = (high - low) or abs(high) or 1.0
            places = _apart([after for _, _, after in pairs], spread * 0.11)
            for (name, before, after), place, style in zip(pairs, places, ("-", "--", ":"), strict=False):
                axes.plot([0, 1], [before, after], linestyle=style, color=C["ink"], linewidth=1.4)
                axes.plot([0], [before], "o", color=C["a"], markersize=6)
                axes.plot([1], [after], "^", color=C["b"], markersize=7)
                change = f"{(after - before) / before * 100:+.1f} %" if before else "no ratio"
                axes.annotate(f"{name}  {change}", (1, after), (1.07, place), va="center", fontsize=9)
            axes.set_xlim(-0.2, 1.75)
            axes.set_ylim(min(low, *places) - spread * 0.12, max(high, *places) + spread * 0.12)
            axes.set_xticks([0, 1], [_WORDS["A"], _WORDS["B"]])
            axes.set_ylabel(axis)
            return self._take(figure, label, stem)

    def ecdf(
        self, curves: Sequence[tuple[str, str, Sequence[float]]], axis: str, label: str, stem: str = "ecdf"
    ) -> Markup:
        """The share of requests that took at most so long: (name, arm, values) of each arm."""
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(NARROW, 2.9, top=0.32)
            named = set[str]()
            for _, arm, values in curves:
                if values:
                    word = None if arm in named else _WORDS[arm]
                    axes.ecdf(sorted(values), color=_HUES[arm], linestyle=_DASHES[arm], linewidth=1.3, label=word)
                    named.add(arm)
            axes.axhline(0.95, color=C["muted"], linewidth=0.8, linestyle=":")
            axes.annotate("p95", (0, 0.95), xycoords=("axes fraction", "data"), xytext=(3, -10), textcoords="offset points",
                          fontsize=8, color=C["muted"])  # fmt: skip
            axes.set_ylim(0, 1.03)
            axes.set_xlabel(axis)
            axes.set_ylabel("share of requests")
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
            return self._take(figure, label, stem)

    def samples(
        self, arms: Sequence[tuple[str, Sequence[Dot]]], axis: str, label: str, stem: str = "samples"
    ) -> Markup:
        """Every sample of every arm in the order in which it was sent; one band an arm, in the order of the run."""
        kinds: dict[str, tuple[str, dict[str, Any]]] = {
            "warm": ("warm-up", {"marker": "o", "markersize": 4, "mfc": "none", "mec": C["muted"], "mew": 0.9}),
            "unstreamed": ("warm-up, not streamed: total time",
                           {"marker": "s", "markersize": 4, "mfc": "none", "mec": C["muted"], "mew": 0.9}),
            "A": ("main, A baseline", {"marker": "o", "markersize": 4.5, "mfc": C["a"], "mec": "none"}),
            "B": ("main, B candidate", {"marker": "^", "markersize": 5, "mfc": C["b"], "mec": "none"}),
            "failed": ("not a normal answer: total time", {"marker": "x", "markersize": 7, "mfc": C["bad"], "mec": C["bad"], "mew": 2}),
        }  # fmt: skip
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(WIDE, 2.9, bottom=0.32, top=0.32)
            left, ticks = 0.0, []
            placed: list[tuple[float, Dot]] = []
            widths = [
                max((dot.x for dot in dots), default=0) - min((dot.x for dot in dots), default=0) for _, dots in arms
            ]
            gap = max([*widths, 1e-9]) * 0.12
            for (name, dots), width in zip(arms, widths, strict=True):
                start = min((dot.x for dot in dots), default=0)
                placed += [(left + gap / 2 + dot.x - start, dot) for dot in dots]
                ticks.append((left + (width + gap) / 2, name))
                left += width + gap
                axes.axvline(left, color=C["grid"], linewidth=1)
            titles = {}
            for kind, (word, look) in kinds.items():
                these = [(x, dot) for x, dot in placed if dot.kind == kind]
                if these:
                    axes.plot([x for x, _ in these], [dot.y for _, dot in these], linestyle="none", label=word,
                              gid=f"dots-{kind}", **look)  # fmt: skip
                    titles[f"dots-{kind}"] = [dot.title for _, dot in these]
            axes.set_xlim(0, left or 1)
            axes.set_ylim(0, max([dot.y for _, dot in placed], default=1) * 1.08 or 1)
            axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks])
            axes.grid(visible=False, axis="x")
            axes.set_ylabel(axis)
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=5, borderaxespad=0.2, handletextpad=0.2)
            return self._take(figure, label, stem, titles)

    def bars(
        self,
        bars: Sequence[Bar],
        axis: str,
        label: str,
        share: float | None = None,
        wide: bool = False,
        stem: str = "bars",
    ) -> Markup:
        """Baseline and candidate side by side; `share` marks that share of each baseline, as a gate asks for it."""
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(WIDE if wide else NARROW, 2.6, top=0.32)
            for arm, shift in (("A", -0.2), ("B", 0.2)):
                sides = [bar.baseline if arm == "A" else bar.candidate for bar in bars]
                known = [(place + shift, value) for place, value in enumerate(sides) if value is not None]
                axes.bar([x for x, _ in known], [value for _, value in known], 0.36, color=_HUES[arm], label=_WORDS[arm],
                         hatch=None if arm == "A" else "///", edgecolor=C["paper"], linewidth=0)  # fmt: skip
                for place, value in enumerate(sides):
                    words = "unknown" if value is None else f"{value:.4g}"
                    axes.annotate(
                        words, (place + shift, value or 0), (0, 2), textcoords="offset points", ha="center", fontsize=8
                    )
            if share is not None:
                drawn = False
                for place, bar in enumerate(bars):
                    if bar.baseline is not None:
                        axes.plot([place - 0.02, place + 0.42], [bar.baseline * share] * 2, color=C["ink"], linewidth=1.4,
                                  label=None if drawn else f"{share:.0%} of A")  # fmt: skip
                        drawn = True
            axes.set_xticks(range(len(bars)), [bar.label for bar in bars])
            axes.grid(visible=False, axis="x")
            axes.set_ylim(
                0, max([side or 0 for bar in bars for side in (bar.baseline, bar.candidate)], default=1) * 1.15 or 1
            )
            axes.set_ylabel(axis)
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
            return self._take(figure, label, stem)

    def limits(self, rows: Sequence[Limit], label: str, stem: str = "limits") -> Markup:
        """Each gate row against its limit, in percent; the side that holds is shaded."""
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(WIDE, 0.65 + 0.24 * len(rows), _room([row.label for row in rows]), right=0.6)
            reach = [value for row in rows for value in (row.value, row.limit, 0.0)]
            low, high = min(reach), max(reach)
            pad = (high - low or 1) * 0.12
            low, high = low - pad, high + pad
            for place, row in enumerate(rows):
                side = (low, row.limit) if row.at_most else (row.limit, high)
                axes.barh(place, side[1] - side[0], 0.74, left=side[0], color=C["good"], alpha=0.16, linewidth=0)
                axes.plot([row.limit, row.limit], [place - 0.37, place + 0.37], color=C["ink"], linewidth=1.4)
                axes.plot(
                    [row.value],
                    [place],
                    "o" if row.holds else "X",
                    color=C["good" if row.holds else "bad"],
                    markersize=6,
                )
                axes.annotate("holds" if row.holds else "FAILS", (1.005, place), xycoords=("axes fraction", "data"),
                              va="center", fontsize=8.5)  # fmt: skip
            axes.set_yticks(range(len(rows)), [row.label for row in rows])
            axes.set_ylim(len(rows) - 0.5, -0.5)
            axes.set_xlim(low, high)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel("relative to the baseline, %   (bar: the limit; shaded: where the gate holds)")
            return self._take(figure, label, stem)

    def fates(self, rows: Sequence[tuple[str, Mapping[str, int]]], label: str, stem: str = "fates") -> Markup:
        """How the offers of each arm ended, as one stacked bar an arm."""
        looks = {
            "completed": (C["good"], None), "timed-out": (C["warn"], "///"), "failed": (C["bad"], "xxx"),
            "never-started": (C["muted"], "\\\\\\"),
        }  # fmt: skip
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(WIDE, 0.85 + 0.3 * len(rows), _room([name for name, _ in rows]), top=0.32)
            lefts = [0] * len(rows)
            for fate, (hue, hatch) in looks.items():
                counts = [row.get(fate, 0) for _, row in rows]
                axes.barh(range(len(rows)), counts, 0.7, left=lefts, color=hue, hatch=hatch, edgecolor=C["paper"], linewidth=0,
                          label=fate)  # fmt: skip
                for place, count in enumerate(counts):
                    if count:
                        plate = {"boxstyle": "round,pad=0.15", "facecolor": C["paper"], "edgecolor": "none"}
                        axes.annotate(
                            str(count), (lefts[place] + count / 2, place), ha="center", va="center", bbox=plate
                        )
                lefts = [left + count for left, count in zip(lefts, counts, strict=True)]
            axes.set_yticks(range(len(rows)), [name for name, _ in rows])
            axes.set_ylim(len(rows) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel("offers")
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2)
            return self._take(figure, label, stem)

    def residency(
        self, columns: Sequence[str], rows: Mapping[str, Sequence[bool]], label: str, stem: str = "residency"
    ) -> Markup:
        """Which model was resident at each observation, in order; a filled square is a resident one."""
        with mpl.rc_context(_SETTINGS):
            figure, axes = _axes(
                WIDE,
                0.2 + 0.26 * len(rows) + _room(columns) * 0.62,
                max(_room(list(rows)), _room(columns[:1]) * 0.8),
                _room(columns) * 0.62,
            )
            for place, held in enumerate(rows.values()):
                axes.plot([0, len(columns) - 1], [place, place], color=C["grid"], linewidth=1)
                for filled, look in ((True, {"mfc": C["a"]}), (False, {"mfc": C["paper"]})):
                    xs = [x for x, one in enumerate(held) if one is filled]
                    axes.plot(xs, [place] * len(xs), linestyle="none", marker="s", markersize=9, mec=C["a"], **look)
            axes.set_yticks(range(len(rows)), list(rows))
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.set_xlim(-0.5, len(columns) - 0.5)
            axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", fontsize=8)
            axes.grid(visible=False)
            return self._take(figure, label, stem)

    def events(
        self,
        events: Sequence[tuple[float, str]],
        windows: Sequence[tuple[str, float, float]],
        axis: str,
        label: str,
        stem: str = "events",
    ) -> Markup:
        """Named instants on one time axis, above the spans in which something else went on."""
        with mpl.rc_context(_SETTINGS):
            count = len(events)
            figure, axes = _axes(
                WIDE,
                0.65 + 0.26 * (count + len(windows)),
                _room([*(name for _, name in events), *(name for name, *_ in windows)]),
            )
            first = min([at for at, _ in events] + [start for _, start, _ in windows])
            last = max([at for at, _ in events] + [end for _, _, end in windows])
            for place, (at, _) in enumerate(events):
                axes.plot([first, at], [place, place], color=C["grid"], linewidth=1)
                axes.plot([at], [place], "D", color=C["b"], markersize=6)
                axes.annotate(f"{at:.3f} s", (at, place), (7, 0), textcoords="offset points", va="center", fontsize=8.5)
            for place, (_, start, end) in enumerate(windows, count):
                axes.barh(place, end - start, 0.5, left=start, color=C["a"])
            axes.set_yticks(
                range(count + len(windows)), [*(name for _, name in events), *(name for name, _, _ in windows)]
            )
            axes.set_ylim(count + len(windows) - 0.4, -0.6)
            axes.set_xlim(first - (last - first) * 0.02, last + (last - first or 1) * 0.12)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(axis)
            return self._take(figure, label, stem)

    def _take(self, figure: Any, label: str, stem: str, titles: Mapping[str, Sequence[str]] | None = None) -> Markup:
        output = io.BytesIO()
        with warnings.catch_warnings():  # text stays text, so that no font of this machine has to have it
            warnings.filterwarnings("ignore", "Glyph ")
            figure.savefig(output, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        # Labels come from a package, and the library writes them as they are, also what XML cannot hold.
        svg = visible(output.getvalue().decode()).encode()
        return self.drawings.take(svg, label, titles or {}, stem)


def _axes(
    width: float, height: float, left: float = 0.74, bottom: float = 0.48, top: float = 0.12, right: float = 0.12
) -> tuple[Any, Any]:
    """A figure with one plot in it, and room of so many inches on each side of the plot.

    Fixed room costs a third of the time that a layout engine takes, and a page has two hundred drawings.
    """
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    return figure, axes


def _room(labels: Sequence[str]) -> float:
    """Inches that the longest label takes, with its tick; half the drawing at most, so that a plot is left beside it."""
    return min(0.25 + 0.073 * max((len(label) for label in labels), default=0), WIDE / 2)


def _apart(values: Sequence[float], least: float) -> list[float]:
    """The values moved up where needed, so that labels at them do not cover one another."""
    order = sorted(range(len(values)), key=values.__getitem__)
    places = list(values)
    for before, one in itertools.pairwise(order):
        places[one] = max(places[one], places[before] + least)
    return places
