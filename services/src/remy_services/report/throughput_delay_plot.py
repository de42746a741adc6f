"""The throughput-delay plot (TCP ex Machina, Figure 4): up and to the right is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from remy_services.report import style

# Delays that span more than this factor are shown on a logarithmic axis.
_LARGEST_LINEAR_SPAN = 3.0


@dataclass(frozen=True, slots=True)
class Cloud:
    """One table's specimens: a point each of (delay over RTT, throughput over link rate)."""

    name: str
    color: str
    points: Sequence[tuple[float, float]]


def plot_throughput_delay(clouds: Sequence[Cloud]) -> bytes:
    """A PNG with every specimen, the medians, and ellipses of one standard deviation.

    Each ellipse is the contour of the two-dimensional normal distribution of maximum likelihood
    in the coordinates of the axes. Clouds without points are left out.
    """
    figure, axes = style.new_figure(7.2, 5.0)
    shown = [cloud for cloud in clouds if cloud.points]
    delays = [delay for cloud in shown for delay, _ in cloud.points]
    is_logarithmic = bool(delays) and max(delays) > _LARGEST_LINEAR_SPAN * min(delays)
    if is_logarithmic:
        _use_logarithmic_delays(axes)
    for cloud in shown:
        _draw(axes, cloud, is_logarithmic)
    axes.set_ylim(bottom=0)
    axes.invert_xaxis()
    style.label(
        axes,
        title="Throughput and delay on fresh specimens",
        x="delay / RTT" + (", logarithmic" if is_logarithmic else "") + "  (less is to the right)",
        y="equal-share throughput / link rate",
    )
    if shown:
        axes.legend(
            frameon=False, fontsize=10, loc="best", labelcolor="linecolor", handletextpad=0.4
        )
    return style.to_png(figure)


def one_sigma_ellipse(points: Sequence[tuple[float, float]]) -> np.ndarray | None:
    """The contour one standard deviation from the mean, 2 x 121 coordinates; None of < 3 points."""
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
