"""Tests pareto.csv: throughput and delay of each epoch's table, from its validation."""

from array import array
from dataclasses import astuple
from pathlib import Path

import pytest

from library.tests.designer.small_spec import small_spec
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.pareto import ParetoFile, ParetoPoint, pareto_point, read_points, to_csv
from remy_farm.driver.run import DesignRun
from remy_farm.files import FileError
from remy_proto.v1 import evaluation_pb2, progress_pb2
from remy_simulator.columns import pack_specimens

SPECIMENS = [
    evaluation_pb2.Specimen(link_rate_packets_per_ms=1.0, rtt_ms=100, senders=[{"count": 1}]),
    evaluation_pb2.Specimen(link_rate_packets_per_ms=2.0, rtt_ms=50, senders=[{"count": 1}]),
    evaluation_pb2.Specimen(link_rate_packets_per_ms=1.0, rtt_ms=100, senders=[{"count": 1}]),
]


def outcome_of(*senders: tuple[int, float], lost: int = 0) -> evaluation_pb2.EvaluationOutcome:
    """Returns simulations of one sender each, on for a second: (packets received, delay in ms).

    Each sender lost `lost` packets in addition.
    """
    seconds = array("d", [1000.0] * len(senders)).tobytes()
    received = [packets for packets, _ in senders]
    sent = [packets + lost for packets in received]
    delays = array("d", [packets * delay_ms for packets, delay_ms in senders]).tobytes()
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=sent,
        senders=evaluation_pb2.SenderColumns(
            packets_received=received,
            packets_sent=sent,
            packets_lost=[lost] * len(senders),
            on_ms=seconds,
            share_ms=seconds,
            delay_sum_ms=delays,
            first_on_ms=bytes(len(seconds)),
        ),
    )


def record(step: int = 7) -> progress_pb2.EpochRecord:
    after = progress_pb2.Estimate(mean=-0.25, specimens=3)
    return progress_pb2.EpochRecord(
        epoch=2,
        step=step,
        rules=5,
        comparison=progress_pb2.Comparison(after=after, accepted=True),
    )


def epoch_event(step: int) -> progress_pb2.ProgressEvent:
    return progress_pb2.ProgressEvent(
        epoch_finished=progress_pb2.EpochFinished(record=record(step))
    )


REQUEST = evaluation_pb2.EvaluationRequest(
    candidates=[evaluation_pb2.Candidate()] * 2, specimen_columns=pack_specimens(SPECIMENS)
)
OUTCOME = outcome_of(
    # The first candidate is the previous table.
    *[(1, 900.0)] * 3,
    (500, 150.0),
    (500, 100.0),
    (0, 0.0),
    lost=20,
)


def test_a_point_has_the_last_candidates_results_on_specimens_with_packets() -> None:
    point = pareto_point(REQUEST, OUTCOME, record())
    throughput, delay = (0.5 + 0.25) / 2, (1.5 + 2) / 2
    loss = (20 / 520 + 20 / 520 + 1) / 3
    expected = ParetoPoint(2, 7, 5, throughput, throughput, delay, delay, -0.25, True, loss)
    assert astuple(point) == pytest.approx(astuple(expected))


def test_points_round_trip(tmp_path: Path) -> None:
    points = [
        ParetoPoint(0, 3, 1, 0.1 + 0.2, 1 / 3, 1.5, 2.5, -1e-17, True, 0.01),
        ParetoPoint(1, 9, 8, None, None, None, None, None, False),
    ]
    path = tmp_path / "pareto.csv"
    path.write_text(to_csv(points))
    assert read_points(path) == points


def test_points_of_an_earlier_version_have_no_loss_and_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "pareto.csv"
    head = to_csv([]).removesuffix(",loss_mean\n")
    path.write_text(f"{head}\n1,10,8,0.5,0.5,1.5,1.5,-2.0,true\n")
    earlier = ParetoPoint(1, 10, 8, 0.5, 0.5, 1.5, 1.5, -2.0, True)
    assert read_points(path) == [earlier]

    log = ParetoFile(path, 10)
    log.observe(REQUEST, OUTCOME, [epoch_event(20)])
    log.save()

    first, second = read_points(path)
    assert first == earlier
    assert second.loss_mean is not None


def test_a_resume_drops_points_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "pareto.csv"
    log = ParetoFile(path, 0)
    for step in (10, 20, 30):
        log.observe(REQUEST, OUTCOME, [epoch_event(step)])
    log.save()

    again = ParetoFile(path, 20)
    again.save()

    assert [point.step for point in read_points(path)] == [10, 20]


def test_a_step_within_an_epoch_adds_no_point(tmp_path: Path) -> None:
    path = tmp_path / "pareto.csv"
    log = ParetoFile(path, 0)
    log.observe(REQUEST, OUTCOME, [progress_pb2.ProgressEvent()])
    log.save()
    assert read_points(path) == []


@pytest.mark.parametrize("text", ["", "epoch,step\n", "HEAD1,2,3\n", "HEAD0,1,1,x,,,,,true\n"])
def test_a_damaged_file_is_refused_and_unchanged(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pareto.csv"
    path.write_text(text.replace("HEAD", to_csv([])))
    with pytest.raises(FileError, match=r"pareto\.csv: line [12] does not hold"):
        read_points(path)
    assert path.read_text() == text.replace("HEAD", to_csv([]))


def test_a_design_writes_a_point_per_epoch(tmp_path: Path) -> None:
    result = DesignRun(small_spec(simulated_seconds=1, epochs=2), tmp_path).run()
    points = read_points(OutDirectory(tmp_path).pareto)
    assert [(p.epoch, p.step, p.rules) for p in points] == [
        (r.epoch, r.step, r.rules) for r in result.epochs
    ]
    for point, epoch in zip(points, result.epochs, strict=True):
        assert point.score == epoch.comparison.after.mean
        assert point.throughput_over_link_rate_mean is not None
        assert point.throughput_over_link_rate_mean > 0
        assert point.delay_over_rtt_mean is not None
        assert point.delay_over_rtt_mean > 1
