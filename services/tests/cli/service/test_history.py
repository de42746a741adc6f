"""Tests a job's history, from a real coordinator and from messages."""

import csv
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from remy_farm.analysis import rows
from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.jobs.history import EPOCH_COLUMNS, STEP_COLUMNS, epoch_rows, step_rows
from services.tests.cli.service.real_coordinator import Coordinator

RunJson = Callable[..., dict[str, Any]]


@pytest.fixture
def finished(farm: Coordinator, run_json: RunJson, spec_file: Path) -> str:
    job_id = run_json("submit", spec_file, "--watch", "--quiet")["id"]
    assert isinstance(job_id, str)
    return job_id


def test_epochs_are_equal_in_every_format(
    run: Any, run_json: RunJson, finished: str, tmp_path: Path
) -> None:
    rows = run_json("history", finished)["rows"]
    assert [row["epoch"] for row in rows] == [0, 1]
    assert all(row["cpu_seconds"] > 0 for row in rows)
    assert all(list(row) == list(EPOCH_COLUMNS) for row in rows)

    for name in ("h.csv", "h.json", "h.parquet"):
        assert run("history", finished, "-o", tmp_path / name).exit_code == 0
    assert json.loads((tmp_path / "h.json").read_text()) == rows
    assert pyarrow.parquet.read_table(tmp_path / "h.parquet").to_pylist() == rows
    printed = run("history", finished)
    assert printed.stdout == (tmp_path / "h.csv").read_bytes().decode()
    as_text = [
        {key: "" if each is None else str(each) for key, each in row.items()} for row in rows
    ]
    assert list(csv.DictReader(io.StringIO(printed.stdout))) == as_text


def test_history_has_every_step(run_json: RunJson, finished: str) -> None:
    job = run_json("status", finished)
    rows = run_json("history", finished, "--steps")["rows"]
    # The comparison after a stop is not counted as a step.
    assert list(dict.fromkeys(row["step"] for row in rows))[: job["progress"]["step"]] == list(
        range(1, job["progress"]["step"] + 1)
    )
    assert {row["purpose"] for row in rows} >= {"count_uses", "improve"}
    assert [row["cpu_seconds"] for row in rows] == sorted(row["cpu_seconds"] for row in rows)


def test_plot_is_a_png(run: Any, finished: str, tmp_path: Path) -> None:
    assert run("history", finished, "--plot", tmp_path / "h.png").exit_code == 0
    content = (tmp_path / "h.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert width > 500
    assert height > 300


def test_history_of_a_running_job_returns_immediately(
    farm: Coordinator, run: Any, run_json: RunJson, endless_spec: Path, until: Any
) -> None:
    job_id = run_json("submit", endless_spec)["id"]
    until(job_id, lambda job: job["progress"] is not None and job["progress"]["step"] > 3)
    assert len(run_json("history", job_id, "--steps")["rows"]) >= 3
    run("cancel", job_id)


@pytest.mark.parametrize("flags", [("-o", "h.xlsx"), ("--plot", "h.svg")])
def test_unknown_format_is_refused(run: Any, flags: tuple[str, str]) -> None:
    result = run("history", "any", *flags)
    assert result.exit_code == 2
    assert "must be a name that ends in" in result.stderr


def test_unknown_values_are_empty() -> None:
    epoch = job_pb2.JobEpoch(record=progress_pb2.EpochRecord(epoch=3))
    event = job_pb2.JobEvent(
        revision=7, progress=progress_pb2.ProgressEvent(step_finished=progress_pb2.StepFinished())
    )
    (by_epoch,) = epoch_rows([epoch])
    (by_step,) = step_rows([event, job_pb2.JobEvent(recovered=job_pb2.Recovered())])
    for name in ("score", "score_standard_error", "gain", "gain_standard_error", "accepted"):
        assert by_epoch[name] is None
    for name in ("score", "gain", "cpu_seconds", "wall_seconds"):
        assert by_step[name] is None
    assert list(by_step) == list(STEP_COLUMNS)


def test_score_of_an_epoch_is_that_of_its_final_table() -> None:
    comparison = progress_pb2.Comparison(
        before=progress_pb2.Estimate(mean=1.0, standard_error=0.1, specimens=4),
        after=progress_pb2.Estimate(mean=2.0, standard_error=0.2, specimens=4),
        accepted=True,
    )
    epoch = job_pb2.JobEpoch(record=progress_pb2.EpochRecord(comparison=comparison))
    comparison.accepted = False
    rolled_back = job_pb2.JobEpoch(record=progress_pb2.EpochRecord(comparison=comparison))
    assert [row["score"] for row in epoch_rows([epoch, rolled_back])] == [2.0, 1.0]


def test_empty_history_has_columns() -> None:
    assert rows.to_csv(EPOCH_COLUMNS, []).decode() == ",".join(EPOCH_COLUMNS) + "\n"
    content = rows.to_parquet(STEP_COLUMNS, [])
    assert pyarrow.parquet.read_schema(io.BytesIO(content)).names == list(STEP_COLUMNS)
