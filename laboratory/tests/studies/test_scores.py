"""Tests the league's scores, and the measures of recorded runs relative to their paths."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remy_farm.evaluation import LocalEvaluator
from remy_farm.evaluation.measures import PacketMeasures
from remy_farm.specification.senders import parse_sender
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.draws import Draws
from remy_laboratory.studies.league import (
    MEASURES,
    Entrant,
    Score,
    SetNetwork,
    SetResult,
    cell_score,
    entrant_measures,
    plan_set,
    read_set,
    run_set,
)
from remy_laboratory.studies.networks import study_network
from remy_laboratory.studies.path_history import (
    PathHistory,
    RecordedMeasures,
    measure_recording,
    path_history,
)
from remy_laboratory.studies.verdicts import CellSamples, PacketsByGroup, SenderSample

_ON = SetNetwork("a network", {"rate_mbps": 12.0, "rtt_ms": 40.0}, None, 2)
_PACKETS_PER_MS = 1.0
_HISTORY = PathHistory(np.zeros(1), np.array([_PACKETS_PER_MS]), np.ones(1), np.array([40.0, 40.0]))
_RECORDED = RecordedMeasures(utilization=0.9, rtt_over_path_mean=1.2, rtt_over_path_p95=1.5)


def _cell(lost: int, goodputs: tuple[float, float] = (6.0, 6.0)) -> CellSamples:
    """Two senders of 12 Mbit/s, each with the same goodput and delay whatever they lose."""
    samples = tuple(
        SenderSample(
            run=0,
            group=0,
            sender=sender,
            throughput_mbps=mbps,
            rtt_ms=50.0,
            on_fraction=1.0,
            packets=round(mbps * 1000),
            sent=10_000 + lost,
            lost=lost,
            completions_ms=(),
        )
        for sender, mbps in enumerate(goodputs)
    )
    packets: PacketsByGroup = {None: PacketMeasures(loss=lost / (10_000 + lost), rtt_p95_ms=60.0)}
    return CellSamples(None, _ON.network, 2, 12.0, samples, packets=(packets,))


def _score(score: Score, cell: CellSamples) -> float:
    return cell_score(score, _ON, cell, entrant_measures(_ON, cell, _HISTORY, [_RECORDED]))


_PRICED = (Score.POWER, Score.SQUARED_THROUGHPUT_OVER_DELAY, Score.FAIR_POWER)


@pytest.mark.parametrize("score", _PRICED)
def test_losses_lower_the_score_at_equal_goodput_and_delay(score: Score) -> None:
    without, few, many = (_score(score, _cell(lost)) for lost in (0, 100, 10_000))
    assert without > few > many > 0
    # Half of the transmissions arrive, so that the goodput counts half.
    exponent = 2 if score == Score.SQUARED_THROUGHPUT_OVER_DELAY else 1
    assert many == pytest.approx(without * 0.5**exponent)


def test_power_without_losses_is_goodput_over_mean_rtt() -> None:
    assert _score(Score.POWER, _cell(0)) == pytest.approx(6 / 50)


def test_fair_power_is_the_product_of_its_parts() -> None:
    assert _score(Score.FAIR_POWER, _cell(0)) == pytest.approx(0.9 / 1.2)
    unequal = _score(Score.FAIR_POWER, _cell(0, (9.0, 3.0)))
    assert unequal == pytest.approx(0.9 / 1.2 * 12**2 / (2 * (9**2 + 3**2)))


def test_measures_have_goodput_loss_and_percentiles_beside_means() -> None:
    measures = entrant_measures(_ON, _cell(100), _HISTORY, [])
    assert tuple(measures) == MEASURES
    assert measures["goodput_mbps"] == 6
    assert measures["jain"] == 1
    assert measures["rtt_mean_ms"] == 50
    assert measures["rtt_p95_ms"] == 60
    assert measures["loss"] == pytest.approx(100 / 10_100)
    assert measures["utilization"] == pytest.approx(12_000 / 12_000)
    assert measures["rtt_over_path_p95"] is None
    assert entrant_measures(_ON, _cell(0), None, [])["utilization"] is None


# Recordings.


def _recording(rtt_ms: list[float], waiting: list[float]) -> dict[str, np.ndarray]:
    """One sender that receives 100 packets each 100 ms."""
    steps = len(rtt_ms)
    received = 100.0 * np.arange(1, steps + 1)[:, None]
    return {
        "time_ms": 100.0 * np.arange(1, steps + 1),
        "packets_received": received,
        "packets_in_order": received / 2,
        "rtt_ms": np.array(rtt_ms)[:, None],
        "waiting_packets": np.array(waiting)[:, None],
    }


def _measure(
    recording: dict[str, np.ndarray], history: PathHistory, from_ms: float = 0
) -> RecordedMeasures:
    return measure_recording(recording, history, [0], from_ms=from_ms, megabits_per_packet=0.012)


def test_utilization_counts_packets_in_order_from_a_time_on() -> None:
    # 1 packet per ms, and 4 from 1500 ms on.
    history = PathHistory(
        np.array([0.0, 1500.0]), np.array([1.0, 4.0]), np.ones(2), np.array([40.0])
    )
    measures = _measure(_recording([50] * 30, [0] * 30), history)
    assert measures.utilization == pytest.approx(1500 / (1500 + 4 * 1500))
    assert measures.first_second_mbps == pytest.approx(500 * 0.012)
    assert measures.second_second_mbps == pytest.approx(500 * 0.012)
    later = _measure(_recording([50] * 30, [0] * 30), history, from_ms=2000)
    assert later.utilization == pytest.approx(500 / 4000)


def test_transports_that_do_not_deliver_in_order_count_every_packet() -> None:
    history = PathHistory(np.zeros(1), np.ones(1), np.ones(1), np.array([40.0]))
    recording = _recording([50] * 10, [0] * 10)
    recording["packets_in_order"] = np.zeros((10, 1))
    assert _measure(recording, history).utilization == pytest.approx(1)


def test_rtt_is_relative_to_that_of_the_path_at_the_time() -> None:
    # 41 ms, and 82 ms from 1000 ms on.
    history = PathHistory(
        np.array([0.0, 1000.0]), np.ones(2), np.array([1.0, 42.0]), np.array([40.0])
    )
    rtts_ms = [2 * 41.0] * 9 + [82.0] + [82.0] * 9 + [3 * 82.0]
    measures = _measure(_recording(rtts_ms, [0] * 20), history)
    assert measures.rtt_over_path_mean == pytest.approx((9 * 2 + 10 + 3) / 20)
    assert measures.rtt_over_path_p95 == pytest.approx(2)
    # A packet that was sent before the RTT fell is not late.
    falling = PathHistory(
        np.array([0.0, 1950.0]), np.ones(2), np.array([42.0, 1.0]), np.array([40.0])
    )
    last = _measure(_recording([82.0] * 20, [0] * 20), falling)
    assert last.rtt_over_path_mean == pytest.approx(1)


def test_intervals_without_packets_do_not_count() -> None:
    history = PathHistory(np.zeros(1), np.ones(1), np.ones(1), np.array([40.0]))
    recording = _recording([41.0] * 9 + [820.0], [0] * 10)
    recording["packets_received"][9] = recording["packets_received"][8]
    assert _measure(recording, history).rtt_over_path_mean == pytest.approx(1)


@pytest.mark.parametrize(
    ("thirds", "growth"),
    [((9, 20, 40), 2), ((0, 20, 20), 1), ((0, 20, 21), 1), ((0, 20, 10), 0.5), ((0, 0, 5), 5)],
)
def test_queue_growth_compares_the_last_two_thirds(
    thirds: tuple[float, float, float], growth: float
) -> None:
    history = PathHistory(np.zeros(1), np.ones(1), np.ones(1), np.array([40.0]))
    waiting = [each for third in thirds for each in [third] * 10]
    assert _measure(_recording([50] * 30, waiting), history).queue_growth == growth


_ALWAYS: dict[str, Any] = {"traffic": {"always": {}}, "packet_bytes": 1500}


def _history(network: dict[str, Any]) -> PathHistory | None:
    return path_history(study_network([parse_sender("newreno")], _ALWAYS | network).specimen)


def test_history_follows_a_schedule_with_an_outage() -> None:
    steps = [
        {"at_ms": 1000, "rate_mbps": 0, "delay_ms": 30},
        {"at_ms": 1200, "rate_mbps": 6, "delay_ms": 30},
    ]
    link = {"rate_mbps": 12, "delay_ms": 10, "schedule": {"steps": steps}}
    history = _history({"rtt_ms": 40, "links": [link]})
    assert history is not None
    times_ms = np.array([0.0, 999.0, 1000.0, 1200.0])
    assert list(history.rtt_ms(0, times_ms)) == pytest.approx([51, 51, 71, 72])
    assert history.capacity_packets(500, 2200) == pytest.approx(500 + 0 + 500)


def test_policer_bounds_the_rate_but_not_the_transmission_time() -> None:
    link = {"rate_mbps": 120, "policer": {"rate_mbps": 12, "burst_packets": 10}}
    history = _history({"rtt_ms": 40, "links": [link]})
    assert history is not None
    assert history.capacity_packets(0, 1000) == pytest.approx(1000)
    assert history.rtt_ms(0, np.zeros(1))[0] == pytest.approx(40.1)


def test_random_paths_have_no_history() -> None:
    walk = {"every_ms": 100, "rate_mbps": {"low": 1, "high": 2}}
    assert _history({"rtt_ms": 40, "links": [{"rate_mbps": 1, "walk": walk}]}) is None


# Whole sets.

_SET = """\
title: Recorded
source: nobody
network:
  rate_mbps: {uniform: [4, 8]}
  rtt_ms: {uniform: [20, 40]}
  buffer: {packets: 5}
  traffic: {always: {}}
  starts_apart_ms: 0
senders: 2
draws: 2
score: fair_power
record_every_ms: 20
seconds: 4
runs: 1
"""


def _run(path: Path, store: CellStore, *protocols: str, threads: int = 1) -> SetResult:
    entrants = [Entrant(name, parse_sender(name)) for name in protocols]
    with closing(LocalEvaluator()) as evaluator:
        runner = CellRunner(evaluator.evaluate, store, threads=threads)
        plan = plan_set(read_set(path), entrants, Draws(), quick=False)
        result = run_set(plan, runner, lambda _: None)
        assert runner.simulated + runner.loaded == 2 * len(protocols)
        return result


def test_recorded_set_has_the_same_results_as_one_that_is_not_recorded(tmp_path: Path) -> None:
    recorded, plain = tmp_path / "recorded.yaml", tmp_path / "plain" / "recorded.yaml"
    plain.parent.mkdir()
    recorded.write_text(_SET)
    plain.write_text(_SET.replace("fair_power\nrecord_every_ms: 20", "power"))
    with closing(CellStore(tmp_path / "a.db")) as store:
        result = _run(recorded, store, "newreno", "copa", threads=2)
        again = _run(recorded, store, "newreno", "copa")
    with closing(CellStore(tmp_path / "b.db")) as store:
        unrecorded = _run(plain, store, "newreno", "copa")
    assert again.networks == result.networks
    for with_series, without in zip(result.networks, unrecorded.networks, strict=True):
        for name in ("newreno", "copa"):
            measures, others = with_series.measures[name], without.measures[name]
            assert measures["goodput_mbps"] == others["goodput_mbps"]
            assert measures["loss"] == others["loss"]
            assert measures["utilization"] == pytest.approx(others["utilization"], rel=0.01)
            ratio = measures["rtt_over_path_mean"]
            path_ms = with_series.on.network["rtt_ms"]
            assert ratio is not None
            assert others["rtt_mean_ms"] is not None
            # Samples of the last RTT of every 20 ms against the mean over all packets.
            expected = others["rtt_mean_ms"] / (path_ms + 12 / with_series.on.network["rate_mbps"])
            assert ratio == pytest.approx(expected, rel=0.05)
            assert with_series.scores[name] > 0
