"""Tests the formatting of numbers, estimates, durations and reasons."""

import pytest

from remy_farm.analysis.wording import count, duration, format_estimate, number, plural, stop_reason
from remy_farm.evaluation.measures import Estimate
from remy_proto.v1 import progress_pb2


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (-1.23456, 0.0789, "-1.235 ± 0.079"),
        (-1.23456, 0.5, "-1.23 ± 0.50"),
        (1234.5, 67.8, "1234 ± 68"),
        (1234.5, 678.0, "1234 ± 678"),
        (0.5, None, "0.5"),
        (0.5, 0.0, "0.5"),
    ],
)
def test_estimates_are_rounded_to_two_digits_of_the_error(
    mean: float, error: float | None, text: str
) -> None:
    assert format_estimate(Estimate(mean, error, 2)) == text
    assert format_estimate(progress_pb2.Estimate(mean=mean, standard_error=error)) == text


def test_gains_have_a_sign() -> None:
    assert format_estimate(Estimate(0.25, 0.031, 2), signed=True) == "+0.250 ± 0.031"


def test_none_is_shown_as_a_dash() -> None:
    assert format_estimate(None) == "-"
    assert number(None) == "-"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (9999, "9999"), (12_345, "12.3 k"), (4.2e6, "4.2 M"), (3e9, "3 G")],
)
def test_large_counts_have_a_prefix(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (59.9, "59.9 s"),
        (59.99, "1 min 00 s"),
        (61, "1 min 01 s"),
        (7260, "2 h 01 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_nouns_are_singular_for_one_only() -> None:
    assert (plural(1, "rule"), plural(0, "rule"), plural(8, "rule")) == (
        "1 rule",
        "0 rules",
        "8 rules",
    )


def test_every_stop_reason_has_its_own_text() -> None:
    names = set(progress_pb2.StopReason.keys()) - {"STOP_REASON_UNSPECIFIED"}
    words = {stop_reason(getattr(progress_pb2, name)) for name in names}
    assert len(words) == len(names)
    assert "unknown" not in " ".join(words)
