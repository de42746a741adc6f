"""Draws figures in the style of the papers, readable in print and without colour vision.

Every row has its own colour, marker and dash pattern, and its name next to it or in the legend.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from remy_farm.analysis.plots import GRID, INK, MUTED, label_axes, new_figure, to_png
from remy_laboratory.studies.study import Drawing, Measure, Statistic, StudyRow
from remy_laboratory.studies.verdicts import (
    STATISTICS,
    FigureResult,
    PublishedPoint,
    RowResult,
    SenderSample,
    jain_by_records,
)

# Okabe and Ito's colour-blind safe colours; their yellow is too light on paper.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#20262c", "#8a6d3b")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

MEASURES: Mapping[Measure, str] = {
    Measure.THROUGHPUT_MBPS: "throughput, Mbit/s",
    Measure.RTT_MS: "RTT, ms",
    Measure.RTT_P50_MS: "median RTT, ms",
    Measure.RTT_P95_MS: "95th percentile of the RTT, ms",
    Measure.RTT_P99_MS: "99th percentile of the RTT, ms",
    Measure.SAMPLED_RTT_MS: "RTT sampled, ms",
    Measure.SAMPLED_RTT_OVER_TIME_MS: "RTT sampled, over time, ms",
    Measure.QUEUEING_DELAY_MS: "queueing delay, ms",
    Measure.OBJECTIVE: "ln(throughput / fair share) - ln(RTT / base RTT)",
    Measure.OBJECTIVE_OVER_LINK: "ln(throughput / link rate) - ln(RTT / base RTT)",
    Measure.SHARE: "share of all senders' throughput",
    Measure.UTILIZATION: "throughput over link rate",
    Measure.JAIN: "Jain's index",
    Measure.SMALLEST_OVER_LARGEST: "smallest over largest throughput",
    Measure.COMPLETION_MS: "completion time, ms",
    Measure.COMPLETION_P50_MS: "median completion time, ms",
    Measure.COMPLETION_P95_MS: "95th percentile of the completion time, ms",
    Measure.COMPLETION_P99_MS: "99th percentile of the completion time, ms",
    Measure.PACKETS_RETRANSMITTED: "retransmissions",
    Measure.LOSS: "packets lost over packets sent",
    Measure.POWER: "power, Mbit/s per ms",
    Measure.ALONE_OVER_SHARED: "rate alone over rate with another sender",
    Measure.ON_FRACTION: "share of time on",
    Measure.RECORDED_JAIN: "Jain's index between records",
    Measure.CONVERGENCE_S: "time until shares are equal, s",
}


@dataclass(frozen=True)
class Style:
    """The style of a row in a figure."""

    color: str
    marker: str
    dash: str | tuple[int, tuple[int, ...]]


def row_styles(names: Sequence[str]) -> dict[str, Style]:
    """Returns a style for each row."""
    return {
        name: Style(
            _COLORS[index % len(_COLORS)],
            _MARKERS[index % len(_MARKERS)],
            _DASHES[index // 2 % len(_DASHES)],
        )
        for index, name in enumerate(names)
    }


def draw_figure(result: FigureResult) -> Figure | None:
    """Draws the figure; None if there is nothing to draw."""
    draw = _DRAWINGS.get(result.study.picture.drawing)
    if draw is None or not result.rows:
        return None
    figure, axes = new_figure(8.6, 5.2)
    draw(axes, result, row_styles([row.name for row in result.study.rows]))
    return figure


def to_svg(figure: Figure) -> bytes:
    """Returns the figure as an SVG file, with the same bytes for the same data."""
    buffer = io.BytesIO()
    # By default ids are random, and text is converted to shapes.
    with mpl.rc_context({"svg.hashsalt": "remy-farm", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None})
    return buffer.getvalue()


def figure_files(figure: Figure) -> dict[str, bytes]:
    """Returns the figure's files by suffix."""
    return {".png": to_png(figure), ".svg": to_svg(figure)}


# Throughput over queueing delay.

# Shorter queueing delays are drawn at this value, because the axis may be logarithmic.
_MIN_DELAY_MS = 0.05
_MAX_POINTS = 400
# Approximate width of a letter of a label, in points.
_LETTER_WIDTH_POINTS = 6.0


def _draw_ellipses(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    picture = result.study.picture
    centers: dict[str, tuple[float, float]] = {}
    for name, row in result.rows.items():
        cell = row.cells[0]
        pairs = np.array(
            [
                (max(each.rtt_ms - cell.lone_rtt_ms, _MIN_DELAY_MS), each.throughput_mbps)
                for each in cell.samples
                if each.rtt_ms is not None
            ]
        ).reshape(-1, 2)
        if not len(pairs):
            continue
        style = styles[name]
        sample = pairs[:: max(1, len(pairs) // _MAX_POINTS)]
        axes.scatter(sample[:, 0], sample[:, 1], s=5, color=style.color, alpha=0.18, linewidths=0)
        centers[name] = (float(np.median(pairs[:, 0])), float(np.median(pairs[:, 1])))
        # As in the papers, the Gaussian is fitted to the logarithm of the delay on a logarithmic
        # axis.
        fitted = pairs.copy()
        if picture.logarithmic_x:
            fitted[:, 0] = np.log2(fitted[:, 0])
        outline = _ellipse(fitted, picture.sigma)
        if picture.logarithmic_x:
            outline[:, 0] = np.exp2(outline[:, 0])
        axes.fill(outline[:, 0], outline[:, 1], color=style.color, alpha=0.10, linewidth=0)
        axes.plot(outline[:, 0], outline[:, 1], color=style.color, linewidth=1.3)
        axes.plot(
            *centers[name],
            marker=style.marker,
            markersize=8.5,
            color=style.color,
            markeredgecolor="white",
            linestyle="none",
            zorder=5,
        )
    frontier = [centers[name] for name in picture.frontier if name in centers]
    if len(frontier) > 1:
        axes.plot(*zip(*frontier, strict=True), color=INK, linewidth=1.1, linestyle="--", zorder=4)
    if picture.logarithmic_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(2, numticks=24))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    _fit(axes, centers)
    axes.invert_xaxis()
    label_axes(
        axes,
        title=result.study.title,
        x="queueing delay, ms (lower is to the right)",
        y=MEASURES[Measure.THROUGHPUT_MBPS],
    )
    _note(axes, f"marks: medians; ellipses: {picture.sigma:g} sigma; points: one sender, one run")
    _label_points(axes, centers, styles)


def _note(axes: Axes, text: str, above: float = 0.0) -> None:
    axes.annotate(
        text,
        (0.0, above),
        xycoords="axes fraction",
        xytext=(6, 6),
        textcoords="offset points",
        fontsize=8.5,
        color=MUTED,
    )


def _fit(axes: Axes, centers: Mapping[str, tuple[float, float]]) -> None:
    """Sets the limits to show ellipses and medians, but not distant samples."""
    axes.set_ylim(bottom=0)
    lines = [line.get_xydata() for line in axes.lines]
    points = np.concatenate([np.asarray(each, dtype=float) for each in lines])
    low, high = points[:, 0].min(), points[:, 0].max()
    min_delay = min((delay for delay, _ in centers.values()), default=_MIN_DELAY_MS)
    if axes.get_xscale() == "log":
        low = max(low, min_delay / 6)
        axes.set_xlim(low / 1.25, high * 1.25)
    else:
        margin = 0.06 * (high - min(low, 0.0))
        axes.set_xlim(max(low, 0.0) - margin, high + margin)
    axes.set_ylim(top=1.08 * points[:, 1].max())


def _ellipse(pairs: np.ndarray, sigma: float) -> np.ndarray:
    """Returns the outline of a maximum-likelihood Gaussian's ellipse around the mean."""
    center = pairs.mean(axis=0)
    offsets = pairs - center
    values, vectors = np.linalg.eigh(offsets.T @ offsets / len(pairs))
    angle = np.linspace(0.0, 2.0 * math.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    axes = sigma * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(center + (circle * axes) @ vectors.T)


def _label_points(
    axes: Axes, centers: Mapping[str, tuple[float, float]], styles: Mapping[str, Style]
) -> None:
    """Labels the points, and moves labels up or down so that they cover no label or point."""
    # Positions in typographic points.
    positions = {
        name: tuple(axes.transData.transform(center) * 72.0 / axes.figure.dpi)
        for name, center in centers.items()
    }
    placed: list[tuple[float, float, float]] = []
    for name in sorted(centers, key=lambda name: -centers[name][1]):
        x, y = positions[name]
        width = 7.0 + _LETTER_WIDTH_POINTS * len(name)
        shift = 7.0
        for shift in (7.0, -13.0, 19.0, -25.0, 31.0, -37.0, 43.0, -49.0, 55.0, -61.0):
            is_free = all(
                abs(y + shift - other_y) > 11.5 or x + width < left or left + other_width < x
                for left, other_y, other_width in placed
            )
            covers_point = any(
                other != name and 0 < point[0] - x < width and abs(point[1] - y - shift - 3) < 9
                for other, point in positions.items()
            )
            if is_free and not covers_point:
                break
        axes.annotate(
            name,
            centers[name],
            xytext=(7.0, shift),
            textcoords="offset points",
            fontsize=9.5,
            color=styles[name].color,
            fontweight="bold",
            zorder=6,
            arrowprops=None
            if abs(shift) < 14
            else {"arrowstyle": "-", "color": styles[name].color, "linewidth": 0.6},
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.7, "linewidth": 0},
        )


# A measure over the swept field.


def _draw_curves(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    study, picture = result.study, result.study.picture
    assert study.sweep is not None
    _shade_ranges(axes, [row.row for row in result.rows.values()], styles)
    for name, row in result.rows.items():
        style = styles[name]
        points = [
            (cell.x, STATISTICS[picture.statistic](values))
            for cell in row.cells
            if (values := cell.values(picture.measure))
        ]
        if not points:
            continue
        axes.plot(
            *zip(*points, strict=True),
            color=style.color,
            marker=style.marker,
            markersize=5,
            linestyle=style.dash,
            linewidth=1.6,
            label=name,
        )
        published = _published_curve(row, result.curves, picture.measure)
        if published:
            axes.plot(*zip(*published, strict=True), color=style.color, linewidth=0.9, alpha=0.55)
    if picture.bound:
        axes.axhline(0.0, color=INK, linewidth=1.0)
        axes.annotate(
            "omniscient",
            (0.5, 0.0),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=INK,
        )
        axes.margins(y=0.07)
    _scale(axes, picture.logarithmic_x, picture.logarithmic_y)
    label_axes(axes, title=study.title, x=study.sweep.label, y=MEASURES[picture.measure])
    handles, labels = axes.get_legend_handles_labels()
    if result.curves:
        handles.append(Line2D([], [], color=MUTED, linewidth=0.9))
        labels.append("thin: published (ns-2)")
    _legend(axes, handles, labels)


def _scale(axes: Axes, logarithmic_x: bool, logarithmic_y: bool) -> None:
    for is_logarithmic, axis in ((logarithmic_x, axes.xaxis), (logarithmic_y, axes.yaxis)):
        if not is_logarithmic:
            continue
        if axis is axes.xaxis:
            axes.set_xscale("log")
        else:
            axes.set_yscale("log")
        axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _shade_ranges(axes: Axes, rows: Sequence[StudyRow], styles: Mapping[str, Style]) -> None:
    """Shades the range for which each RemyCC was designed, as strips along the lower edge."""
    ranges = [(row.name, row.design_range) for row in rows if row.design_range is not None]
    if len({each for _, each in ranges}) == 1:
        low, high = ranges[0][1] or (0.0, 0.0)
        axes.axvspan(low, high, color=GRID, alpha=0.8, linewidth=0, zorder=0)
        return
    if ranges:
        _note(axes, "strips: design ranges of RemyCCs", above=0.02 * len(ranges) + 0.01)
    for index, (name, limits) in enumerate(ranges):
        assert limits is not None
        low = 0.012 + 0.02 * index
        axes.axvspan(
            *limits, low, low + 0.013, color=styles[name].color, alpha=0.75, linewidth=0, zorder=1.6
        )


_PUBLISHED_NAMES = {
    ("cubic", "drop-tail"): "cubic",
    ("cubic", "sfq-codel"): "cubic-sfqcodel",
}


def _published_curve(
    row: RowResult, curves: Sequence[PublishedPoint], measure: Measure
) -> list[tuple[float, float]]:
    """Returns the published curve for a row's sender; empty if there is none."""
    (sender, *others) = row.row.senders
    if others or not curves:
        return []
    if sender.remycc is not None:
        name = f"remycc:{sender.remycc.rpartition('/')[2]}"
    else:
        queue = row.cells[0].network.get("queue")
        assert sender.protocol is not None
        kind = (sender.protocol.name, queue or "drop-tail")
        name = _PUBLISHED_NAMES.get(kind, "")
    points = []
    for each in curves:
        if each.protocol == name:
            cell = row.cell_at(each.x)
            published = SenderSample(0, 0, 0, each.throughput_mbps, each.rtt_ms, 1.0, 0, 0, 0, ())
            fields = {"rate_mbps", "rtt_ms"} & {_swept_field(row)}
            network = {**cell.network, **dict.fromkeys(fields, each.x)}
            senders = int(each.x) if _swept_field(row) == "senders" else cell.senders
            published_cell = type(cell)(each.x, network, senders, cell.seconds, (published,))
            points += [(each.x, value) for value in published_cell.values(measure)]
    return points


def _swept_field(row: RowResult) -> str:
    """Returns the field whose values are the cells' x; empty if there is none."""
    for field in ("rate_mbps", "rtt_ms", "senders"):
        if all(cell.network.get(field) == cell.x for cell in row.cells):
            return field
    return ""


# Other drawings.


def _draw_bars(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    picture = result.study.picture
    names = list(result.rows)
    for index, (name, row) in enumerate(result.rows.items()):
        groups = range(len(row.row.senders))
        width = 0.76 / max(1, len(groups))
        for group in groups:
            values = row.cells[0].values(picture.measure, group if len(groups) > 1 else None)
            if not values:
                continue
            height = STATISTICS[picture.statistic](values)
            error = (
                STATISTICS[Statistic.DEVIATION](values) / math.sqrt(len(values))
                if len(values) > 1
                else 0.0
            )
            x = index + (group - (len(groups) - 1) / 2) * width
            axes.bar(
                x,
                height,
                0.92 * width,
                color=styles[name].color,
                alpha=0.9 if group == 0 else 0.45,
                hatch="" if group == 0 else "///",
                edgecolor="white",
            )
            axes.errorbar(x, height, error, color=INK, capsize=3, linewidth=1.0)
            label = f"{height:.3g}"
            if len(groups) > 1:
                sender = row.row.senders[group]
                kind = "RemyCC" if sender.remycc else sender.name.partition(",")[0]
                label += f"\n{kind if sender.rtt_ms is None else f'{sender.rtt_ms:g} ms'}"
            axes.annotate(
                label,
                (x, height + error),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=INK,
            )
    axes.set_xticks(range(len(names)), [_wrap(name) for name in names], fontsize=9)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)
    label_axes(axes, title=result.study.title, x="", y=MEASURES[picture.measure])


def _wrap(name: str) -> str:
    words = name.split()
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 13:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _draw_distribution(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    picture = result.study.picture
    for name, row in result.rows.items():
        values = np.sort(row.cells[0].values(picture.measure))
        if not len(values):
            continue
        # The last step of the distribution is at the largest sample.
        share = np.arange(1, len(values) + 1) / len(values)
        keep = np.unique(np.linspace(0, len(values) - 1, 500).astype(int))
        axes.plot(
            values[keep],
            share[keep],
            color=styles[name].color,
            linestyle=styles[name].dash,
            linewidth=1.7,
            drawstyle="steps-post",
            label=name,
        )
    _scale(axes, picture.logarithmic_x, False)
    axes.set_ylim(0, 1.02)
    label_axes(axes, title=result.study.title, x=MEASURES[picture.measure], y="fraction of samples")
    _legend(axes, *axes.get_legend_handles_labels())


def _draw_sequence(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    lines = []
    for name, row in result.rows.items():
        (recording, *_) = row.cells[0].recordings
        seconds = recording["time_ms"] / 1000.0
        for sender, received in enumerate(recording["packets_received"].T):
            (line,) = axes.plot(
                seconds,
                received,
                color=styles[name].color,
                linestyle=_DASHES[sender % len(_DASHES)],
                linewidth=1.5,
                label=f"{name}: sender {sender + 1}",
            )
            lines.append(line)
    label_axes(axes, title=result.study.title, x="time, s", y="packets received")
    _legend(axes, lines, [str(line.get_label()) for line in lines])


def _draw_queue(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    for name, row in result.rows.items():
        (recording, *_) = row.cells[0].recordings
        axes.plot(
            recording["time_ms"] / 1000.0,
            recording["waiting_packets"][:, 0],
            color=styles[name].color,
            linestyle=styles[name].dash,
            linewidth=1.1,
            label=name,
        )
    axes.set_ylim(bottom=0)
    label_axes(axes, title=result.study.title, x="time, s", y="packets in the queue")
    _legend(axes, *axes.get_legend_handles_labels())


# Time scales, as numbers of records.
_RECORDS = (1, 2, 5, 10, 20, 50, 100)


def _draw_fairness(axes: Axes, result: FigureResult, styles: Mapping[str, Style]) -> None:
    for name, row in result.rows.items():
        recordings = row.cells[0].recordings
        step_s = float(np.diff(recordings[0]["time_ms"][:2])[0]) / 1000.0
        points = []
        for records in _RECORDS:
            indices = [each for seen in recordings for each in jain_by_records(seen, records)]
            if indices:
                points.append((records * step_s, math.fsum(indices) / len(indices)))
        axes.plot(
            *zip(*points, strict=True),
            color=styles[name].color,
            marker=styles[name].marker,
            markersize=5,
            linestyle=styles[name].dash,
            linewidth=1.6,
            label=name,
        )
    _scale(axes, True, False)
    axes.set_ylim(top=1.0)
    label_axes(axes, title=result.study.title, x="time scale, s", y=MEASURES[Measure.JAIN])
    _legend(axes, *axes.get_legend_handles_labels())


def _legend(axes: Axes, handles: Sequence[object], labels: Sequence[str]) -> None:
    """Draws the legend below the axes."""
    assert isinstance(axes.figure, Figure)
    axes.figure.legend(
        handles=handles,
        labels=labels,
        loc="outside lower center",
        ncols=min(len(labels), 3),
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
        handlelength=3.0,
    )


_DRAWINGS: Mapping[Drawing, Callable[[Axes, FigureResult, Mapping[str, Style]], None]] = {
    Drawing.ELLIPSES: _draw_ellipses,
    Drawing.CURVES: _draw_curves,
    Drawing.BARS: _draw_bars,
    Drawing.DISTRIBUTION: _draw_distribution,
    Drawing.SEQUENCE: _draw_sequence,
    Drawing.QUEUE: _draw_queue,
    Drawing.FAIRNESS: _draw_fairness,
}
