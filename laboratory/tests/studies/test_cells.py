"""Tests that cells are simulated once, on the networks that a study describes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from laboratory.tests.studies.small_studies import SMALL
from remy_farm.evaluation.interface import OnProgress
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.files import FileError
from remy_farm.specification.schema import SpecError
from remy_laboratory.studies.cells import (
    CellRunner,
    CellStore,
    read_tables,
    remycc_path,
    row_cells,
)
from remy_laboratory.studies.networks import REFERENCE_VARIABLE, study_network
from remy_laboratory.studies.study import parse_study
from remy_proto.v1 import evaluation_pb2

STUDY = parse_study(SMALL, "small.yaml", study="small", name="figure")
ROW = STUDY.rows[0]
TABLES = read_tables(ROW, Path())


class _CountingEvaluator:
    """An evaluator that counts the simulations."""

    def __init__(self) -> None:
        self._evaluator = LocalEvaluator()
        self.simulations = 0

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome:
        self.simulations += len(request.specimen_columns.keys) // 8
        return self._evaluator.evaluate(request, on_progress)

    def close(self) -> None:
        self._evaluator.close()


@pytest.fixture
def evaluator() -> Iterator[_CountingEvaluator]:
    with closing(_CountingEvaluator()) as counting:
        yield counting


def test_stored_cells_are_not_simulated_again(
    tmp_path: Path, evaluator: _CountingEvaluator
) -> None:
    cells = list(row_cells(STUDY, ROW, TABLES, quick=True))
    progress: list[float] = []
    with closing(CellStore(tmp_path / "cells.db")) as store:
        runner = CellRunner(evaluator.evaluate, store)
        first = runner.run(TABLES, cells, STUDY.seconds, progress.append)
    assert evaluator.simulations == len(cells) == 4
    assert progress == sorted(progress)
    assert progress[-1] == pytest.approx(STUDY.seconds * sum(cell.packets for cell in cells))
    with closing(CellStore(tmp_path / "cells.db")) as store:
        runner = CellRunner(evaluator.evaluate, store)
        again = runner.run(TABLES, cells, STUDY.seconds, progress.append)
        # The full study includes the runs of the quick one.
        longer = list(row_cells(STUDY, ROW, TABLES, quick=False))
        runner.run(TABLES, longer, STUDY.seconds, progress.append)
    assert [each.SerializeToString() for each in again] == [
        each.SerializeToString() for each in first
    ]
    assert evaluator.simulations == len(longer) == 6
    assert (runner.simulated, runner.loaded) == (2, 8)


def test_cells_have_the_same_outcomes_in_parts_as_in_one_run(
    tmp_path: Path, evaluator: _CountingEvaluator
) -> None:
    cells = list(row_cells(STUDY, ROW, TABLES, quick=True))
    outcomes = []
    for parts in ([cells], [[cell] for cell in cells]):
        with closing(CellStore(tmp_path / f"{len(parts)}.db")) as store:
            runner = CellRunner(evaluator.evaluate, store)
            outcomes_of_parts = [
                each
                for part in parts
                for each in runner.run(TABLES, part, STUDY.seconds, lambda _: None)
            ]
        outcomes.append([each.SerializeToString(deterministic=True) for each in outcomes_of_parts])
    assert outcomes[0] == outcomes[1]


def test_runs_differ_and_rows_share_the_draws_of_a_run() -> None:
    cells = list(row_cells(STUDY, ROW, TABLES, quick=False))
    others = list(row_cells(STUDY, STUDY.rows[1], TABLES, quick=False))
    assert len({cell.digest for cell in (*cells, *others)}) == 12
    assert [cell.specimen.key for cell in cells] == [0, 1, 2, 0, 1, 2]
    assert [cell.specimen.key for cell in others] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("limit", "packets"),
    [
        ({"packets": 7}, 7),
        ({"kilobytes": 30}, 20),
        ({"ms": 10}, 10),
        ({"bdp": 2}, 80),
        ("infinite", None),
    ],
)
def test_buffer_in_each_unit(limit: object, packets: int | None) -> None:
    always = {"traffic": {"always": {}}, "senders": 1}
    network = {"rate_mbps": 12, "rtt_ms": 40, "buffer": limit, **always}
    specimen = study_network(ROW.senders, network).specimen
    assert (specimen.buffer_packets if specimen.HasField("buffer_packets") else None) == packets


def test_load_determines_the_mean_off_time() -> None:
    network = {
        "rate_mbps": 8,
        "rtt_ms": 10,
        "traffic": {"exponential_bytes": {"mean_bytes": 1e5}, "load": 0.5},
        "senders": 10,
    }
    specimen = study_network(ROW.senders, network).run(0)
    # Ten flows of 100 ms at the link rate in 2 s are a load of 0.5.
    assert specimen.senders[0].traffic.mean_off_ms == pytest.approx(2000)
    assert specimen.senders[0].count == 10


def test_flow_lengths_may_be_empirical() -> None:
    network = {
        "rate_mbps": 8,
        "rtt_ms": 10,
        "traffic": {"empirical_bytes": {"extra_bytes": 40}, "mean_off_ms": 10},
        "senders": 1,
    }
    traffic = study_network(ROW.senders, network).run(0).senders[0].traffic
    assert (traffic.empirical_bytes.name, traffic.empirical_bytes.extra_bytes) == ("icsi", 40)


def test_senders_start_apart_or_at_random_times() -> None:
    network = {
        "rate_mbps": 8,
        "rtt_ms": 10,
        "traffic": {"exponential_time": {"mean_ms": 10}, "mean_off_ms": 10},
        "senders": 3,
    }
    apart = study_network(ROW.senders, {**network, "starts_apart_ms": 100}).run(0)
    assert [group.first_on_ms for group in apart.senders] == [0, 100, 200]
    drawn = [
        group.first_on_ms
        for run in range(200)
        for group in study_network(ROW.senders, {**network, "first_on_mean_ms": 100})
        .run(run)
        .senders
    ]
    assert len(set(drawn)) == 600
    assert sum(drawn) / 600 == pytest.approx(100, rel=0.15)


def test_published_tables_are_read_from_the_reference_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REFERENCE_VARIABLE, str(tmp_path))
    assert remycc_path("published/a.dna", Path("x")) == tmp_path / "remyccs" / "a.dna"
    assert remycc_path("remyccs/a.json", Path("x")) == Path("x/remyccs/a.json")
    monkeypatch.delenv(REFERENCE_VARIABLE)
    with pytest.raises(FileError, match=REFERENCE_VARIABLE):
        remycc_path("published/a.dna", Path("x"))


def test_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cells.db").write_bytes(b"not a database, and longer than its head" * 9)
    with pytest.raises(FileError, match="use another --out"):
        CellStore(tmp_path / "cells.db")


def test_first_rtt_offset_applies_to_the_first_sender_only() -> None:
    dumbbell = {
        "rate_mbps": 8,
        "rtt_ms": 10,
        "traffic": {"exponential_time": {"mean_ms": 10}, "mean_off_ms": 10},
        "senders": 3,
    }
    network = {**dumbbell, "links": [{"delay_ms": 5}], "routes": [{}]}
    plain = study_network(ROW.senders, network).run(0)
    assert [group.HasField("rtt_offset_ms") for group in plain.senders] == [False]
    apart = study_network(ROW.senders, {**network, "first_rtt_offset_ms": 4}).run(0)
    offsets = [(group.count, group.rtt_offset_ms) for group in apart.senders]
    assert offsets == [(1, 4), (1, 0), (1, 0)]
    with pytest.raises(SpecError, match="first_rtt_offset_ms requires the key links"):
        study_network(ROW.senders, {**dumbbell, "first_rtt_offset_ms": 4})
