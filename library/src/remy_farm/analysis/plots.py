"""Draws plots: the score of a design, throughput and delay, campaigns, and rules."""

from __future__ import annotations

import bisect
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from remy_farm.analysis.campaign import MemberRecord, undominated
from remy_farm.analysis.history import History, SizePoint, StepPoint
from remy_farm.remycc import ReadableRule
from remy_proto.v1 import progress_pb2

# Colours that colour-blind readers can tell apart; plots with more curves repeat them.
COLORS = ("#0b63a5", "#c2560c", "#117a55", "#8a3b8f", "#b8860b", "#444c55")
FIRST = "#c2560c"
FINAL = "#0b63a5"
MUTED = "#8a949e"
INK = "#20262c"
GRID = "#e4e8ec"

_DOTS_PER_INCH = 160


def new_figure(width_inches: float, height_inches: float) -> tuple[Figure, Axes]:
    """Makes a figure with one plot, which has only its left and bottom lines."""
    figure = Figure(figsize=(width_inches, height_inches), dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _style(axes)
    return figure, axes


def new_axes(
    width_inches: float, height_inches: float, rows: str, order: str
) -> tuple[Figure, list[Axes]]:
    """Makes a figure with several plots, laid out by letters in rows such as "ab;cb".

    Returns the figure, and the plots in the order of the letters in `order`.
    """
    figure = Figure(figsize=(width_inches, height_inches), dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplot_mosaic(rows)
    for axes in plots.values():
        _style(axes)
    return figure, [plots[letter] for letter in order]


def _style(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.tick_params(colors=INK, labelsize=10, length=3)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def label_axes(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Sets the title, aligned left, and the axis labels."""
    axes.set_title(title, loc="left", fontsize=12.5, color=INK, pad=10)
    axes.set_xlabel(x, fontsize=10.5, color=INK)
    axes.set_ylabel(y, fontsize=10.5, color=INK)


def to_png(figure: Figure) -> bytes:
    """Returns the figure as PNG; the same data always give the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


# Epochs are marked by lines unless there are more than this number.
_MAX_EPOCH_LINES = 40
_CPU_TICKS = 5


def draw_score(history: History) -> Figure:
    """Draws the score of the table at each step, and the validation score of each epoch."""
    figure, axes = new_figure(8.0, 4.6)
    axes.grid(visible=False, axis="x")
    _draw_steps(axes, history.steps)
    _draw_epochs(axes, history.epochs)
    _mark_sizes(axes, history.splits, "^", "a rule is split")
    _mark_sizes(axes, history.merges, "v", "rules are merged")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    label_axes(axes, title="Score over the steps of the design", x="step", y="score")
    _add_cpu_axis(axes, history.cpu_seconds)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9.5, loc="best", labelcolor=INK)
    return figure


def plot_score(history: History) -> bytes:
    """Draws like `draw_score`, and returns the PNG."""
    return to_png(draw_score(history))


def _draw_steps(axes: Axes, points: Sequence[StepPoint]) -> None:
    """Draws the scores of steps; the line breaks between visits, which have other specimens."""
    rows: list[tuple[float, float, float]] = []
    for earlier, point in zip([None, *points], points, strict=False):
        if earlier is not None and earlier.visit != point.visit:
            rows.append((math.nan, math.nan, math.nan))
        rows.append((point.step, point.score, point.standard_error))
    if not rows:
        return
    steps, scores, errors = (np.array(column) for column in zip(*rows, strict=True))
    axes.fill_between(steps, scores - errors, scores + errors, color=MUTED, alpha=0.25, linewidth=0)
    axes.plot(
        steps,
        scores,
        color=MUTED,
        linewidth=1.3,
        marker=".",
        markersize=3,
        label="while a rule is improved, \N{PLUS-MINUS SIGN} standard error",
    )


def _draw_epochs(axes: Axes, epochs: Sequence[progress_pb2.EpochRecord]) -> None:
    if len(epochs) <= _MAX_EPOCH_LINES:
        for epoch in epochs:
            axes.axvline(epoch.step, color=MUTED, linewidth=0.7, alpha=0.5)
    kept = [epoch for epoch in epochs if epoch.comparison.accepted]
    rolled_back = [epoch for epoch in epochs if not epoch.comparison.accepted]
    _draw_validated(axes, kept, "epoch's table on validation specimens: kept", FINAL)
    _draw_validated(axes, rolled_back, "rolled back", "white")


def _draw_validated(
    axes: Axes, epochs: Sequence[progress_pb2.EpochRecord], label: str, face_color: str
) -> None:
    measured = [epoch for epoch in epochs if epoch.comparison.HasField("after")]
    if measured:
        axes.errorbar(
            [epoch.step for epoch in measured],
            [epoch.comparison.after.mean for epoch in measured],
            yerr=[epoch.comparison.after.standard_error for epoch in measured],
            fmt="o",
            markersize=6,
            markerfacecolor=face_color,
            color=FINAL,
            elinewidth=1.3,
            capsize=2.5,
            label=label,
        )


def _mark_sizes(axes: Axes, points: Sequence[SizePoint], marker: str, what: str) -> None:
    if points:
        axes.plot(
            [point.step for point in points],
            [0.015] * len(points),
            marker=marker,
            markersize=8,
            linestyle="none",
            color=FIRST,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            label=f"{what} (in the end {points[-1].rules} rules)",
        )


def _add_cpu_axis(axes: Axes, cpu_seconds: Sequence[tuple[int, float]]) -> None:
    """Adds an axis of CPU time at the top, with ticks at round numbers of seconds."""
    if len(cpu_seconds) < 2:
        return
    total = cpu_seconds[-1][1]
    times = [seconds for _, seconds in cpu_seconds]
    ticks = [
        (cpu_seconds[min(bisect.bisect_left(times, tick), len(times) - 1)][0], tick)
        for tick in MaxNLocator(nbins=_CPU_TICKS).tick_values(0, total)
        if times[0] <= tick <= total
    ]
    top = axes.secondary_xaxis("top")
    top.set_xticks([step for step, _ in ticks], [f"{tick:g} s" for _, tick in ticks])
    top.tick_params(colors=MUTED, labelsize=9, length=3)
    top.spines["top"].set_visible(False)
    top.set_xlabel("CPU time", fontsize=9, color=MUTED, loc="left")


# Delays whose ratio of maximum to minimum exceeds this are drawn on a logarithmic axis.
_LARGEST_LINEAR_SPAN = 3.0


@dataclass(frozen=True, slots=True)
class Cloud:
    """The points of one table, one per specimen: (delay over RTT, throughput over link rate)."""

    name: str
    color: str
    points: Sequence[tuple[float, float]]


def draw_throughput_delay(
    clouds: Sequence[Cloud], title: str = "Throughput and delay on fresh specimens"
) -> Figure:
    """Draws the specimens of each table, their median, and an ellipse of one standard deviation.

    The ellipse is the contour of a two-dimensional normal distribution fitted by maximum likelihood
    in the coordinates of the axes. Clouds without points are left out.
    """
    figure, axes = new_figure(7.2, 5.0)
    shown = [cloud for cloud in clouds if cloud.points]
    delays = [delay for cloud in shown for delay, _ in cloud.points]
    is_logarithmic = bool(delays) and max(delays) > _LARGEST_LINEAR_SPAN * min(delays)
    if is_logarithmic:
        _use_logarithmic_delays(axes)
    for cloud in shown:
        _draw(axes, cloud, is_logarithmic)
    axes.set_ylim(bottom=0)
    axes.invert_xaxis()
    label_axes(
        axes,
        title=title,
        x="delay / RTT" + (", logarithmic" if is_logarithmic else "") + "  (less is to the right)",
        y="equal-share throughput / link rate",
    )
    if shown:
        axes.legend(
            frameon=False, fontsize=10, loc="best", labelcolor="linecolor", handletextpad=0.4
        )
    return figure


def plot_throughput_delay(clouds: Sequence[Cloud]) -> bytes:
    """Draws like `draw_throughput_delay`, and returns the PNG."""
    return to_png(draw_throughput_delay(clouds))


def one_sigma_ellipse(points: Sequence[tuple[float, float]]) -> np.ndarray | None:
    """Returns the contour at one standard deviation, 2 x 121 coordinates; None if < 3 points."""
    if len(points) < 3:
        return None
    samples = np.array(points).T
    variances, directions = np.linalg.eigh(np.cov(samples, bias=True))
    angles = np.linspace(0, 2 * math.pi, 121)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    radii = np.sqrt(np.maximum(variances, 0))
    contour: np.ndarray = samples.mean(axis=1, keepdims=True) + directions @ (
        radii[:, None] * circle
    )
    return contour


def _draw(axes: Axes, cloud: Cloud, is_logarithmic: bool) -> None:
    delays, throughputs = (list(values) for values in zip(*cloud.points, strict=True))
    axes.scatter(delays, throughputs, s=16, color=cloud.color, alpha=0.35, linewidths=0)
    contour = one_sigma_ellipse(
        [(math.log10(d) if is_logarithmic else d, t) for d, t in cloud.points]
    )
    if contour is not None:
        x = 10 ** contour[0] if is_logarithmic else contour[0]
        axes.fill(x, contour[1], color=cloud.color, alpha=0.10, linewidth=0)
        axes.plot(x, contour[1], color=cloud.color, linewidth=1.6)
    axes.plot(
        float(np.median(delays)),
        float(np.median(throughputs)),
        marker="o",
        markersize=8,
        markeredgecolor="white",
        markeredgewidth=1.2,
        linestyle="none",
        color=cloud.color,
        label=f"{cloud.name} (median)",
    )


def _use_logarithmic_delays(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


# Members are named in the plot unless there are more than this number; the page lists all names.
_MAX_NAMES = 12


def draw_members(records: Sequence[MemberRecord]) -> Figure:
    """Draws the medians of throughput and delay of each member; Pareto-optimal ones are filled."""
    figure, axes = new_figure(8.0, 5.4)
    points = [point(record) for record in records]
    best = undominated(points)
    front = sorted(each for each, is_best in zip(points, best, strict=True) if each and is_best)
    if front:
        axes.plot(
            [delay for delay, _ in front],
            [throughput for _, throughput in front],
            color=FINAL,
            linewidth=1.0,
            alpha=0.5,
        )
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, (member, is_best) in enumerate(zip(points, best, strict=True), start=1):
        if member is None:
            continue
        numbers.setdefault(member, []).append(str(number))
        axes.plot(
            *member,
            marker="o",
            markersize=7,
            linestyle="none",
            color=FINAL,
            markerfacecolor=FINAL if is_best else "white",
        )
    for position, at_position in numbers.items():
        axes.annotate(
            ", ".join(at_position),
            position,
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=9,
            color=INK,
        )
    if 0 < len(records) <= _MAX_NAMES:
        figure.legend(
            handles=[
                Line2D([], [], linestyle="none", label=f"{number}  {record.name}")
                for number, record in enumerate(records, start=1)
            ],
            loc="outside lower left",
            frameon=False,
            fontsize=8.5,
            handlelength=0,
            labelcolor=INK,
        )
    axes.margins(x=0.1, y=0.1)
    axes.invert_xaxis()
    label_axes(
        axes,
        title="Throughput and delay of the members, medians over specimens",
        x="delay / RTT  (less is to the right)",
        y="equal-share throughput / link rate",
    )
    return figure


def plot_members(records: Sequence[MemberRecord]) -> bytes:
    """Draws like `draw_members`, and returns the PNG."""
    return to_png(draw_members(records))


def point(record: MemberRecord) -> tuple[float, float] | None:
    """Returns (delay over RTT, throughput over link rate); None if no packet was received."""
    comparison = record.comparison
    if comparison.delay_over_rtt is None or comparison.throughput_over_link_rate is None:
        return None
    return comparison.delay_over_rtt, comparison.throughput_over_link_rate


# Maximum number of rules in a plot.
_MAX_BARS = 24


def draw_rules(rules: Sequence[ReadableRule], name: str) -> Figure:
    """Draws the action of each rule as bars, the most-used rules first."""
    ranked = sorted(rules, key=lambda rule: (-(rule.use_share or 0), rule.number))[:_MAX_BARS]
    figure, panels = new_axes(11.0, 1.6 + 0.24 * len(ranked), "mit", "mit")
    is_relative = any(rule.is_relative for rule in ranked)
    values = [
        ("window multiple", [rule.window_multiple for rule in ranked]),
        (
            "increment, % of the BDP" if is_relative else "increment, packets",
            [rule.window_increment for rule in ranked],
        ),
        (
            "interval, of the measured" if is_relative else "least interval, ms",
            [rule.intersend_ms for rule in ranked],
        ),
    ]
    positions = np.arange(len(ranked))
    for panel, (label, widths) in zip(panels, values, strict=True):
        panel.barh(positions, widths, color=FINAL, height=0.7)
        panel.grid(visible=False, axis="y")
        panel.invert_yaxis()
        label_axes(panel, title="", x=label, y="")
        panel.set_yticks([])
    shown = [
        f"{rule.number}" + ("" if rule.use_share is None else f"  ({100 * rule.use_share:.3g} %)")
        for rule in ranked
    ]
    panels[0].set_yticks(positions, shown)
    label_axes(panels[0], title=f"Rules of {name}", x=values[0][0], y="rule")
    return figure
