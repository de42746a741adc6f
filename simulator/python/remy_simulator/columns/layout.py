"""Columns of numbers as bytes: little-endian, 8 bytes a number."""

from __future__ import annotations

NUMBER_BYTES = 8


def numbers(column: bytes) -> memoryview[float]:
    """The floats of a column, without a copy."""
    return memoryview(column).cast("d")
