"""Columns of numbers as bytes: little-endian, 8 bytes per number."""

from __future__ import annotations

NUMBER_BYTES = 8


def numbers(column: bytes) -> memoryview[float]:
    """Returns the floats of a column without copying."""
    return memoryview(column).cast("d")
