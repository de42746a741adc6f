"""Rows in another simulator: schedules as given times, and the same senders in ns-3."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.programs import ROOT
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.senders import parse_sender
from remy_services.files import FileError
from remy_services.studies.networks import study_network
from remy_services.studies.ns3 import FOLDER, Ns3, outcome_of, with_intervals
from remy_simulator import RuleTable, columns
from remy_simulator.messages import from_native

NETWORK = {"link_mbps": 6, "rtt_ms": 60, "senders": 3, "on_ms": 800, "off_ms": 400}
SECONDS = 20.0
#: Divided on every signal, so that all of them are looked at.
TABLE = (
    RuleTable([0, 1, 2, 3], [([], (0.8, 5.0, 2.0))])
    .split(0, [(2, 1.2)])
    .split(0, [(0, 3.0), (1, 4.0), (3, 3.5)])
)


def _specimen(run: int) -> evaluation_pb2.Specimen:
    senders = [parse_sender("remycc:table.json")]
    return with_intervals(study_network(senders, NETWORK).run(run), SECONDS)


def _ours(run: int) -> evaluation_pb2.SpecimenOutcome:
    request = evaluation_pb2.EvaluationRequest(
        tables=[from_native(TABLE)],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[_specimen(run)],
        duration_ms=SECONDS * 1000,
        seed=1,
    )
    packed = columns.packed(request)
    (outcome,) = columns.specimen_outcomes(packed, columns.evaluate_columns(packed))
    return outcome


@settings(max_examples=20, deadline=None)
@given(run=st.integers(0, 10**6))
def test_times_on_are_those_that_the_simulator_counts(run: int) -> None:
    ours = _ours(run)
    nothing: dict[str, Any] = {"received": [0] * 3, "sent": [0] * 3, "rtt_sum_ms": [0.0] * 3}
    told = outcome_of(nothing, _specimen(run), SECONDS)
    assert list(told.on_ms) == pytest.approx(list(ours.on_ms))
    assert list(told.share_ms) == pytest.approx(list(ours.share_ms))
    assert list(told.first_on_ms) == pytest.approx(list(ours.first_on_ms))


def test_senders_are_on_at_times_of_their_own_in_every_run() -> None:
    begins = [
        tuple(group.traffic.intervals.begin_ms)
        for run in (0, 1)
        for group in _specimen(run).senders
    ]
    assert len(set(begins)) == 6
    assert _specimen(0) == _specimen(0)
    for group in _specimen(0).senders:
        assert group.count == 1
        periods = group.traffic.intervals
        assert sorted([*periods.begin_ms, *periods.end_ms])[::2] == list(periods.begin_ms)


def test_without_ns3_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(FileError, match="REMY_NS3 does not name the folder site-packages/ns3"):
        Ns3(ROOT / "examples" / "studies")


@pytest.mark.skipif(FOLDER not in os.environ, reason=f"{FOLDER} names no wheel of ns-3")
def test_a_table_does_the_same_in_ns3() -> None:
    with closing(Ns3(ROOT / "examples" / "studies")) as ns3:
        message = from_native(TABLE).SerializeToString(deterministic=True)
        theirs = ns3.outcome([message], _specimen(0), SECONDS)
    ours = _ours(0)
    assert sum(ours.packets_received) > 1000
    assert list(ours.packets_received) == pytest.approx(list(theirs.packets_received), rel=0.01)
    for our_ms, their_ms, received in zip(
        ours.delay_sum_ms, theirs.delay_sum_ms, ours.packets_received, strict=True
    ):
        assert our_ms / received == pytest.approx(their_ms / received, abs=1)
