"""The price of lost packets, on the fast path, in general networks and on all transports."""

from __future__ import annotations

import math
from array import array

import pytest

import remy_simulator
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import columns, registry
from remy_simulator.objective import sender_scores, specimen_score

_PRICE = 2.5
_FREE = spec_pb2.Objective(alpha=1, beta=1, delta=0.5)
_PRICED = spec_pb2.Objective(alpha=1, beta=1, delta=0.5, loss_price=_PRICE)
_TRAFFIC = evaluation_pb2.Traffic(exponential_time={"mean_ms": 900.0}, mean_off_ms=300.0)
_TRANSPORTS = [
    (entry.name, variant.name)
    for entry in registry.entries(registry.Registry.TRANSPORT).values()
    if registry.RUNS_TABLES in entry.traits
    for variant in entry.variants
]


def _table() -> rule_table_pb2.RuleTable:
    """Makes a table that sends faster than the links of these tests deliver."""
    table = remy_simulator.RuleTable([0, 1, 2], [([], (1.0, 3.0, 0.4))])
    return rule_table_pb2.RuleTable.FromString(table.to_message())


def _dumbbell() -> evaluation_pb2.Specimen:
    """Datagrams over one link with a shallow buffer: the fast path."""
    return evaluation_pb2.Specimen(
        key=3,
        link_rate_packets_per_ms=0.8,
        rtt_ms=70.0,
        buffer_packets=10,
        loss_probability=0.01,
        senders=[evaluation_pb2.SenderGroup(count=3, traffic=_TRAFFIC)],
    )


def _policed(transport: str, variant: str) -> evaluation_pb2.Specimen:
    """A policed link, and a second one with a shallow buffer and loss."""
    specimen = evaluation_pb2.Specimen(
        key=5,
        link_rate_packets_per_ms=0.5,
        rtt_ms=40.0,
        bottleneck={"ack_bytes": 40.0},
        links=[
            {
                "rate_packets_per_ms": 3.0,
                "delay_ms": 4.0,
                "policer": {"rate_packets_per_ms": 0.5, "burst_packets": 8.0},
            },
            {
                "rate_packets_per_ms": 0.7,
                "delay_ms": 4.0,
                "buffer_packets": 12,
                "loss_probability": 0.01,
            },
        ],
        senders=[evaluation_pb2.SenderGroup(count=2, traffic=_TRAFFIC)],
    )
    specimen.senders[0].transport.name = transport
    specimen.senders[0].transport.variant = variant
    return specimen


def _evaluate(
    specimen: evaluation_pb2.Specimen, objective: spec_pb2.Objective | None = None
) -> tuple[evaluation_pb2.EvaluationRequest, evaluation_pb2.EvaluationOutcome]:
    request = evaluation_pb2.EvaluationRequest(
        tables=[_table()],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[specimen],
        duration_ms=8000.0,
        seed=3,
    )
    if objective is not None:
        request.objective.CopyFrom(objective)
    request = columns.packed(request)
    return request, remy_simulator.evaluate_columns(request)


_SPECIMENS = {"dumbbell": _dumbbell()} | {
    f"{transport},variant={variant}": _policed(transport, variant)
    for transport, variant in _TRANSPORTS
}


@pytest.mark.parametrize("name", _SPECIMENS)
def test_each_sender_pays_for_the_packets_that_the_network_lost(name: str) -> None:
    specimen = _SPECIMENS[name]
    request, outcome = _evaluate(specimen)
    (result,) = columns.specimen_outcomes(request, outcome)
    losses = [
        lost / sent for lost, sent in zip(result.packets_lost, result.packets_sent, strict=True)
    ]
    assert min(losses) > 0.005
    free, priced = (
        [
            score
            for score in sender_scores(objective, specimen, result, request.duration_ms)
            if score is not None
        ]
        for objective in (_FREE, _PRICED)
    )
    assert priced == pytest.approx(
        [score - _PRICE * loss for score, loss in zip(free, losses, strict=True)], abs=1e-12
    )


@pytest.mark.parametrize("name", _SPECIMENS)
def test_the_simulator_s_scores_are_those_of_the_results(name: str) -> None:
    specimen = _SPECIMENS[name]
    request, outcome = _evaluate(specimen)
    (result,) = columns.specimen_outcomes(request, outcome)
    scores = {}
    for label, objective in (("free", _FREE), ("priced", _PRICED)):
        (scored,) = array("d", _evaluate(specimen, objective)[1].scores)
        assert scored == specimen_score(objective, specimen, result, request.duration_ms)
        scores[label] = scored
    assert scores["priced"] < scores["free"] - 0.005 * _PRICE


@pytest.mark.parametrize("name", _SPECIMENS)
def test_a_price_of_zero_is_no_price(name: str) -> None:
    specimen = _SPECIMENS[name]
    zero = spec_pb2.Objective(alpha=1, beta=1, delta=0.5, loss_price=0)
    assert _evaluate(specimen, zero)[1].scores == _evaluate(specimen, _FREE)[1].scores


def test_a_group_has_its_own_price() -> None:
    specimen = _dumbbell()
    group = specimen.senders.add()
    group.CopyFrom(specimen.senders[0])
    group.objective.CopyFrom(_PRICED)
    request, outcome = _evaluate(specimen)
    (result,) = columns.specimen_outcomes(request, outcome)
    free = sender_scores(_FREE, _dumbbell_of(6), result, request.duration_ms)
    mixed = sender_scores(_FREE, specimen, result, request.duration_ms)
    assert mixed[:3] == free[:3]
    assert all(
        math.isclose(one - other, -_PRICE * lost / sent, rel_tol=1e-9)
        for one, other, lost, sent in zip(
            mixed[3:], free[3:], result.packets_lost[3:], result.packets_sent[3:], strict=True
        )
        if one is not None and other is not None
    )


def _dumbbell_of(senders: int) -> evaluation_pb2.Specimen:
    specimen = _dumbbell()
    specimen.senders[0].count = senders
    return specimen
