"""Results that cannot be what a task came to."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.designer import Designer
from remy_services.evaluation.check import DamagedResult, ImpossibleResult, check_result
from remy_services.evaluation.tasks import Task as Slice
from services.tests.designer.small_spec import small_spec


def _request() -> evaluation_pb2.EvaluationRequest:
    request = Designer(small_spec()).next_request()
    assert request is not None
    return request


_WHOLE = _request()
_SLICE = Slice(range(len(_WHOLE.candidates)), range(2, 6))
_OUTCOME = remy_simulator.evaluate(_SLICE.request(_WHOLE))


def _check(outcome: evaluation_pb2.EvaluationOutcome) -> evaluation_pb2.EvaluationOutcome:
    content = outcome.SerializeToString()
    return check_result(_WHOLE, _SLICE, content, hashlib.sha256(content).digest())


def test_what_the_simulator_says_passes() -> None:
    assert _WHOLE.recording
    assert _check(_OUTCOME) == _OUTCOME


@given(st.data())
def test_a_flipped_bit_is_noticed(data: st.DataObject) -> None:
    content = bytearray(_OUTCOME.SerializeToString())
    digest = hashlib.sha256(content).digest()
    place = data.draw(st.integers(0, 8 * len(content) - 1))
    content[place // 8] ^= 1 << place % 8
    with pytest.raises(DamagedResult, match="digest"):
        check_result(_WHOLE, _SLICE, bytes(content), digest)


def test_what_is_no_message_is_damaged() -> None:
    with pytest.raises(DamagedResult, match="encoding"):
        check_result(_WHOLE, _SLICE, b"\xff\xff", hashlib.sha256(b"\xff\xff").digest())


_Change = Callable[[evaluation_pb2.SpecimenOutcome], None]


def _set(field: str, value: float) -> _Change:
    def change(result: evaluation_pb2.SpecimenOutcome) -> None:
        getattr(result, field)[0] = value

    return change


def _append(field: str) -> _Change:
    return lambda result: getattr(result, field).append(0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *((_append(field), "one entry for each") for field in ("on_ms", "packets_sent")),
        (_append("rule_uses"), "counts uses of 2 rules, not 1"),
        *(
            (_set(field, value), "not between 0 and what is possible")
            for field in ("on_ms", "share_ms", "delay_sum_ms", "first_on_ms")
            for value in (math.nan, math.inf, -math.inf, -1e-3)
        ),
        (_set("on_ms", _WHOLE.duration_ms * 1.001), "not between 0 and what is possible"),
        (_set("packets_received", 1 << 60), "more packets received than sent"),
        (_set("packets_lost", 1 << 60), "more packets lost than sent"),
        (lambda result: _set("on_ms", 0.5 * result.share_ms[0])(result), "larger share"),
    ],
)
def test_what_no_simulation_comes_to_is_told(change: _Change, words: str) -> None:
    outcome = evaluation_pb2.EvaluationOutcome()
    outcome.CopyFrom(_OUTCOME)
    # One whose first sender has been on.
    result = next(each for each in outcome.outcomes if each.share_ms[0] > 0)
    change(result)
    with pytest.raises(ImpossibleResult, match=words):
        _check(outcome)


def test_the_number_of_outcomes_is_the_slice_s() -> None:
    outcome = evaluation_pb2.EvaluationOutcome(outcomes=_OUTCOME.outcomes[1:])
    with pytest.raises(ImpossibleResult, match="holds 3 outcomes; the task has 4"):
        _check(outcome)
