"""Values as Grafana writes them."""

from __future__ import annotations

_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SUFFIXES = {"pps": " p/s", "ops": " /s"}
_SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def worded(value: float, unit: str) -> str:
    """The value with its unit, to three figures."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        return _seconds(value)
    if unit == "bytes":
        for factor, prefix in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
            if abs(value) >= factor:
                return f"{value / factor:.3g} {prefix}B"
        return f"{value:.3g} B"
    if unit == "none" and abs(value) < 1e5:
        return f"{value:.4g}"
    for size, letter in _THOUSANDS:
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}{_SUFFIXES.get(unit, '').strip()}"
    return f"{value:.3g}{_SUFFIXES.get(unit, '')}"


def _seconds(value: float) -> str:
    for size, name in _SPANS:
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} s"
