"""Tests a small design of the pattern search with the simulator."""

from library.tests.designer.recorded_design import RecordedDesign
from library.tests.designer.small_pattern_spec import small_pattern_spec
from remy_farm.evaluation.local import LocalEvaluator
from remy_proto.v1 import progress_pb2

_SPEC = small_pattern_spec(
    signals="send_ewma, rec_ewma, rtt_ratio", steps=50, race_specimens=32, validation_specimens=32
)


def test_a_design_gains_on_the_validation_specimens() -> None:
    evaluator = LocalEvaluator(2)
    try:
        recorded = RecordedDesign(_SPEC, evaluator.evaluate)
    finally:
        evaluator.close()
    before = recorded.designer.epochs[0].comparison.before
    best = [r.comparison.after for r in recorded.designer.epochs if r.comparison.accepted][-1]
    assert recorded.designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    assert best.mean > before.mean + 0.02
