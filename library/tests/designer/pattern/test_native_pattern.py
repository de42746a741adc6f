"""Tests a small design of the pattern search with the simulator."""

from library.tests.designer.small_pattern_spec import small_pattern_spec
from library.tests.designer.walk import Walk
from remy_farm.evaluation.local import LocalEvaluator
from remy_proto.v1 import progress_pb2

_SPEC = small_pattern_spec(
    signals="send_ewma, rec_ewma, rtt_ratio", steps=50, race_specimens=32, validation_specimens=32
)


def test_a_design_gains_on_the_validation_specimens() -> None:
    evaluator = LocalEvaluator(2)
    try:
        walk = Walk(_SPEC, evaluator.evaluate)
    finally:
        evaluator.close()
    before = walk.designer.epochs[0].comparison.before
    best = [r.comparison.after for r in walk.designer.epochs if r.comparison.accepted][-1]
    assert walk.designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    assert best.mean > before.mean + 0.02
