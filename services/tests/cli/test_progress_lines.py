"""Lines on how far a measurement has got come now and then."""

import pytest

from remy_cli.inspect import ProgressLines


def test_a_line_is_said_when_two_seconds_have_passed(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    lines = ProgressLines(clock=lambda: now)
    said = []
    for tenths in range(70):
        now = 100 + tenths / 10
        lines("signals", tenths, 70)
        said += capsys.readouterr().err.splitlines()
    assert said == [
        "signals: 20 of 70 evaluated",
        "signals: 40 of 70 evaluated",
        "signals: 60 of 70 evaluated",
    ]
