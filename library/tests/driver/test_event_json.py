"""Tests progress events as lines of JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.driver.progress import from_line, to_line
from remy_proto.v1 import progress_pb2

_U64 = st.integers(0, 2**64 - 1)
_REAL = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def _estimates(draw: st.DrawFn) -> progress_pb2.Estimate:
    estimate = progress_pb2.Estimate(mean=draw(_REAL), specimens=draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        estimate.standard_error = draw(_REAL)
    return estimate


@st.composite
def _events(draw: st.DrawFn) -> progress_pb2.ProgressEvent:
    event = progress_pb2.ProgressEvent(sequence=draw(_U64), step=3, epoch=1)
    if draw(st.booleans()):
        event.wall_seconds, event.cpu_seconds = draw(_REAL), draw(_REAL)
    step = event.step_finished
    step.rules, step.candidates, step.specimens = 0, 1, 2
    step.purpose = draw(
        st.sampled_from([progress_pb2.STEP_PURPOSE_IMPROVE, progress_pb2.STEP_PURPOSE_SPLIT])
    )
    step.simulated_packets = draw(_U64)
    if draw(st.booleans()):
        step.score.CopyFrom(draw(_estimates()))
    return event


@given(_events())
def test_event_round_trip(event: progress_pb2.ProgressEvent) -> None:
    line = to_line(event)
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    assert from_line(line) == event
    assert from_line(line.encode()) == event


def test_64_bit_integers_are_numbers_and_zeros_are_written() -> None:
    event = progress_pb2.ProgressEvent(
        sequence=2**60, rule_chosen=progress_pb2.RuleChosen(rule=0, uses=5)
    )
    assert json.loads(to_line(event)) == {
        "sequence": 2**60,
        "step": 0,
        "epoch": 0,
        "rule_chosen": {"rule": 0, "uses": 5, "uses_of_all_rules": 0},
    }


def test_enums_are_written_as_names() -> None:
    event = progress_pb2.ProgressEvent(
        design_finished=progress_pb2.DesignFinished(reason=progress_pb2.STOP_REASON_RULES)
    )
    assert '"reason": "STOP_REASON_RULES"' in to_line(event)


@pytest.mark.parametrize("line", ["", "{", "[]", '{"sequence": -1}', '{"unknown": 1}', '"text"'])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_line(line)
