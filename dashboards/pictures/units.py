"""Values as Grafana writes them."""

from __future__ import annotations

from decimal import Decimal

_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SUFFIXES = {"pps": " p/s", "ops": " /s"}
_SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_BYTES = ((float(1 << 30), "GiB"), (float(1 << 20), "MiB"), (float(1 << 10), "KiB"), (1.0, "B"))
#: Numbers without a unit are written in full up to here.
_LONG = 1e6


def worded(value: float, unit: str, decimals: int | None = None) -> str:
    """The value with its unit: to three figures, or to a number of decimals."""
    if unit == "percentunit":
        return f"{_figures(100 * value, decimals)} %"
    if unit == "s":
        return _scaled(value, _SPANS)
    if unit == "bytes":
        return _scaled(value, _BYTES)
    if unit == "none" and abs(value) < _LONG:
        return _figures(value, 0 if decimals is None and abs(value) >= 1000 else decimals)
    suffix = _SUFFIXES.get(unit, "")
    for size, letter in _THOUSANDS:
        if abs(value) >= size:
            return f"{_figures(value / size, decimals)} {letter}{suffix.strip()}"
    return f"{_figures(value, decimals)}{suffix}"


def _figures(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{Decimal(f'{value:.3g}'):f}"


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """In the largest unit of which there is a whole one; 0 in one of size 1."""
    fitting = [(size, name) for size, name in units if abs(value) >= size]
    size, name = fitting[0] if fitting else next(each for each in units if each[0] == 1)
    return f"{_figures(value / size, None)} {name}"
