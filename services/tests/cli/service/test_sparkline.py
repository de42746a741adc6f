"""Tests the sparkline of scores."""

from hypothesis import given
from hypothesis import strategies as st

from remy_cli.views import BLOCK_BARS, LETTER_BARS, sparkline

VALUES = st.lists(st.floats(-1e9, 1e9), max_size=200)


def test_sparkline_spans_smallest_to_largest_value() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == BLOCK_BARS
    assert sparkline([7, 0], 8, bars=LETTER_BARS) == "@_"


def test_sparkline_of_a_constant_is_in_the_middle() -> None:
    assert sparkline([5.0, 5.0, 5.0], 8) == BLOCK_BARS[4] * 3


def test_sparkline_averages_neighbours() -> None:
    assert sparkline([0, 2, 8, 10], 2, bars="ab") == "ab"
    assert sparkline([0, 10, 0, 10], 2, bars="abc") == "bb"


@given(VALUES, st.integers(1, 60))
def test_sparkline_fits_and_has_the_lowest_and_highest_bar(values: list[float], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(len(values), width)
    if len(set(line)) > 1:
        assert {BLOCK_BARS[0], BLOCK_BARS[-1]} <= set(line)


@given(VALUES, st.integers(1, 60))
def test_sparkline_does_not_change_with_scale(values: list[float], width: int) -> None:
    line = sparkline(values, width, bars="01")
    doubled = sparkline([2 * value for value in values], width, bars="01")
    assert line == doubled
