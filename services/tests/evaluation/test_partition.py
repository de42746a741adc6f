"""Requests in parts."""

import random

from hypothesis import given
from hypothesis import strategies as st

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.tasks import assemble, partition

_SIZES = st.integers(1, 20)


def _request(candidates: int, specimens: int) -> evaluation_pb2.EvaluationRequest:
    request = evaluation_pb2.EvaluationRequest(
        tables=[{"domain_upper": 5}],
        duration_ms=1000,
        seed=7,
        recording=evaluation_pb2.RECORDING_USES,
    )
    for candidate in range(candidates):
        request.candidates.add().actions.changes.add(rule=candidate)
    for specimen in range(specimens):
        request.specimens.add(key=specimen)
    return request


def _outcome(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationOutcome:
    """Results that tell where they come from."""
    return evaluation_pb2.EvaluationOutcome(
        outcomes=[
            evaluation_pb2.SpecimenOutcome(
                packets_sent=[candidate.actions.changes[0].rule, specimen.key]
            )
            for candidate in request.candidates
            for specimen in request.specimens
        ]
    )


@given(_SIZES, _SIZES, st.integers(1, 500), st.randoms(use_true_random=False))
def test_parts_in_any_order_make_the_whole(
    candidates: int, specimens: int, size: int, order: random.Random
) -> None:
    request = _request(candidates, specimens)
    tasks = partition(request, size)
    assert all(1 <= task.simulations <= size for task in tasks)
    assert sum(task.simulations for task in tasks) == candidates * specimens

    order.shuffle(tasks)
    parts = [(task, _outcome(task.request(request))) for task in tasks]

    assert assemble(request, parts) == _outcome(request)


@given(_SIZES, _SIZES, st.integers(1, 500))
def test_a_part_differs_from_the_whole_in_candidates_and_specimens_only(
    candidates: int, specimens: int, size: int
) -> None:
    request = _request(candidates, specimens)
    for task in partition(request, size):
        part = task.request(request)
        del part.candidates[:], part.specimens[:]
        rest = evaluation_pb2.EvaluationRequest()
        rest.CopyFrom(request)
        del rest.candidates[:], rest.specimens[:]
        assert part == rest
