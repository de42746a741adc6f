"""A series of numbers as one line of bars. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=^*#@"


def sparkline(values: Sequence[float], width: int, *, bars: str = BLOCKS) -> str:
    """At most `width` bars between the smallest and the largest value.

    Of more values than that, neighbours are drawn as their mean.
    """
    points = _condensed(values, width)
    if not points:
        return ""
    low, high = min(points), max(points)
    if low == high:
        return bars[len(bars) // 2] * len(points)
    scale = (len(bars) - 1) / (high - low)
    return "".join(bars[round((point - low) * scale)] for point in points)


def _condensed(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    ends = [round(number * len(values) / width) for number in range(width + 1)]
    return [fmean(values[first:last]) for first, last in itertools.pairwise(ends)]
