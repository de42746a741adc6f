"""Compares the paper's search in the designer with a second, simple implementation."""

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.second_search import SecondSearch
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_proto.v1 import progress_pb2

_EPOCHS = 4


@pytest.mark.parametrize(
    ("signals", "seed", "noise", "grid_steps"),
    [
        ("send_ewma, rec_ewma, rtt_ratio", 1, 0.0, 1),
        ("send_ewma, rec_ewma, rtt_ratio", 2, 4.0, 1),
        ("send_ewma, slow_rec_ewma", 3, 1.0, 2),
        ("rtt_ratio", 4, 2.0, 1),
    ],
)
def test_designer_and_second_search_have_the_same_table_and_scores(
    signals: str, seed: int, noise: float, grid_steps: int
) -> None:
    spec = small_spec(signals=signals, seed=seed, grid_steps=grid_steps, epochs=_EPOCHS)

    table, history = SecondSearch(spec, AnalyticEvaluator(noise=noise)).run(_EPOCHS)
    designer = Designer(spec)
    evaluator = AnalyticEvaluator(noise=noise)
    while (request := designer.next_request()) is not None:
        designer.receive(evaluator.evaluate(request))

    assert designer.table == table
    assert [_row(record.comparison) for record in designer.epochs] == history


def _row(comparison: progress_pb2.Comparison) -> tuple[float, float, bool]:
    return comparison.before.mean, comparison.after.mean, comparison.accepted
