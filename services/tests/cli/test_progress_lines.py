"""Tests that progress lines are printed at most every two seconds."""

import pytest

from remy_cli.inspect import ProgressLines


def test_progress_line_is_printed_after_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    progress = ProgressLines(clock=lambda: now)
    lines = []
    for tenths in range(70):
        now = 100 + tenths / 10
        progress("signals", tenths, 70)
        lines += capsys.readouterr().err.splitlines()
    assert lines == [
        "signals: 20 of 70 evaluated",
        "signals: 40 of 70 evaluated",
        "signals: 60 of 70 evaluated",
    ]
