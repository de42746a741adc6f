"""Where axes have their ticks: at round values of the unit, which need not be round decimals."""

from __future__ import annotations

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from dashboards.pictures.units import worded

_MOST_TICKS = 5
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
_DAY_SECONDS = 86400


def time_ticks(axis: Axis, span_seconds: float) -> None:
    """For seconds since the beginning."""
    steps = [step for step in _SECONDS if span_seconds / step <= _MOST_TICKS]
    axis.set_major_locator(MultipleLocator(steps[0] if steps else _DAY_SECONDS))
    axis.set_major_formatter(FuncFormatter(lambda value, _: worded(value, "s")))


def value_ticks(axis: Axis, unit: str, *, most: float, whole: bool) -> None:
    """For values of a unit up to `most`, which may be `whole` numbers only."""
    axis.set_major_locator(_binary(most) if unit == "bytes" else _decimal(whole=whole))
    axis.set_major_formatter(FuncFormatter(lambda value, _: worded(value, unit)))


def _binary(most: float) -> MultipleLocator:
    step = 1
    while most / step > _MOST_TICKS:
        step *= 2
    return MultipleLocator(step)


def _decimal(*, whole: bool) -> MaxNLocator:
    return MaxNLocator(nbins=_MOST_TICKS, steps=[1, 2, 5, 10], integer=whole)
