"""Numbers in the drawn dashboards are formatted like Grafana's."""

from __future__ import annotations

import pytest

from dashboards.pictures import worded


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0000832, "short", "0.0000832"),
        (1234.5, "short", "1.23 k"),
        (30000, "none", "30000"),
        (-47.81, "none", "-47.8"),
        (3, "none", "3"),
        (0.0919, "percentunit", "9.19 %"),
        (10.4e6, "pps", "10.4 Mp/s"),
        (500, "ops", "500 /s"),
        (0, "s", "0 s"),
        (0.25, "s", "250 ms"),
        (5400, "s", "1.5 h"),
        (1536, "bytes", "1.5 KiB"),
    ],
)
def test_value_is_formatted_with_its_unit_and_without_exponent(
    value: float, unit: str, text: str
) -> None:
    assert worded(value, unit) == text


def test_panel_can_set_the_number_of_decimals() -> None:
    assert worded(0.0919, "percentunit", 0) == "9 %"
    assert worded(1.7612, "none", 3) == "1.761"
