"""The throughput-delay picture of a campaign: a point for each member."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from remy_services.campaign.comparison import undominated
from remy_services.campaign.record import MemberRecord
from remy_services.report import style

# More names than this would leave no room; the page has them beside their numbers.
_MOST_NAMES = 12


def plot_members(records: Sequence[MemberRecord]) -> bytes:
    """A PNG of the medians. Filled: no other member has as much throughput at as little delay."""
    figure, axes = style.new_figure(8.0, 5.4)
    points = [point(record) for record in records]
    best = undominated(points)
    front = sorted(each for each, is_best in zip(points, best, strict=True) if each and is_best)
    if front:
        axes.plot(
            [delay for delay, _ in front],
            [throughput for _, throughput in front],
            color=style.FINAL,
            linewidth=1.0,
            alpha=0.5,
        )
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, (place, is_best) in enumerate(zip(points, best, strict=True), start=1):
        if place is None:
            continue
        numbers.setdefault(place, []).append(str(number))
        axes.plot(
            *place,
            marker="o",
            markersize=7,
            linestyle="none",
            color=style.FINAL,
            markerfacecolor=style.FINAL if is_best else "white",
        )
    for place, here in numbers.items():
        axes.annotate(
            ", ".join(here),
            place,
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=9,
            color=style.INK,
        )
    if 0 < len(records) <= _MOST_NAMES:
        figure.legend(
            handles=[
                Line2D([], [], linestyle="none", label=f"{number}  {record.name}")
                for number, record in enumerate(records, start=1)
            ],
            loc="outside lower left",
            frameon=False,
            fontsize=8.5,
            handlelength=0,
            labelcolor=style.INK,
        )
    axes.margins(x=0.1, y=0.1)
    axes.invert_xaxis()
    style.label(
        axes,
        title="Throughput and delay of the members, medians over specimens",
        x="delay / RTT  (less is to the right)",
        y="equal-share throughput / link rate",
    )
    return style.to_png(figure)


def point(record: MemberRecord) -> tuple[float, float] | None:
    """(delay over RTT, throughput over link rate); None if no packet was received."""
    comparison = record.comparison
    if comparison.delay_over_rtt is None or comparison.throughput_over_link_rate is None:
        return None
    return comparison.delay_over_rtt, comparison.throughput_over_link_rate
