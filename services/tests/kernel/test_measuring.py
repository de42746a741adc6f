"""Real sockets over an emulated link, and what the simulator says of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from remy_services.kernel import measuring
from remy_services.kernel.measuring import (
    Link,
    Measured,
    Workload,
    build_emulator,
    draw,
    jain,
    measure,
    measure_once,
    predict,
)
from remy_services.remycc import read_remycc
from services.tests.kernel.tables import SCALE_FREE, needs_kernel

LINK = Link(10.0, 40.0, queue_packets=100)
RUN = Measured(9.0, 50.0, (9.0,), 0, 0, 1.0, 100.0, True)


def test_fairness_is_jains_index() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 0.0]) == 0.5
    assert jain([]) == 0.0


def test_a_disturbed_run_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    late = iter([900.0, 100.0, 200.0, 5000.0, 4000.0, 6000.0])

    def run(*_: object, **__: object) -> Measured:
        return replace(RUN, late_99_us=next(late))

    monkeypatch.setattr(measuring, "measure_once", run)
    said: list[str] = []
    row = measure(Path("emulator"), LINK, Workload(1), "reno", repeats=3, seed=1, say=said.append)
    assert [each.late_99_us for each in row.details] == [100.0, 200.0, 4000.0]
    assert row.disturbed == 1
    assert len(said) == 3
    assert all("disturbed" in line for line in said)


def test_the_prediction_depends_on_jitter_for_tables_that_divide_finely() -> None:
    table = read_remycc(SCALE_FREE).table
    load = Workload(2, seconds=10.0)
    exact = predict(table, Link(15.0, 150.0), load, jitter_ms=0.0, seed=1)
    noisy = predict(table, Link(15.0, 150.0), load, jitter_ms=0.12, seed=1)
    assert exact.total_mbps == pytest.approx(noisy.total_mbps, rel=0.1)
    assert exact != noisy
    assert predict(table, Link(15.0, 150.0), load, jitter_ms=0.12, seed=1) == noisy
    assert exact.total_mbps < 15
    assert exact.mean_rtt_ms > 150


def test_rows_are_drawn(tmp_path: Path) -> None:
    row = measuring.Row("reno", 1, 9.0, 50.0, 1.0, 1, 0, (RUN,))
    draw(tmp_path / "measured.png", LINK, [row, replace(row, flows=2), replace(row, details=())])
    assert (tmp_path / "measured.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Path]:
    def namespaces() -> str:
        listed = ["ip", "netns", "list"]
        return subprocess.run(listed, capture_output=True, text=True, check=True).stdout

    yield build_emulator(tmp_path)
    assert f"remy-{os.getpid()}-" not in namespaces()


@needs_kernel
def test_real_flows_keep_to_the_link(emulator: Path) -> None:
    run = measure_once(emulator, LINK, Workload(2, seconds=3.0), "reno", seed=1)
    assert len(run.shares_mbps) == 2
    assert 1 < run.total_mbps <= LINK.rate_mbps
    # The emulator's own time: of the empty link at least, and of a full queue at most.
    assert LINK.rtt_ms < run.mean_rtt_ms < LINK.rtt_ms + 102 * 1.2


@needs_kernel
def test_losses_are_sent_again(emulator: Path) -> None:
    lossy = replace(LINK, loss=0.05)
    run = measure_once(emulator, lossy, Workload(1, seconds=3.0), "reno", seed=1)
    assert run.retransmissions > 0


@needs_kernel
def test_an_algorithm_that_is_not_there_is_told(emulator: Path) -> None:
    with pytest.raises(measuring.MeasureError, match="'no_such' cannot be had"):
        measure_once(emulator, LINK, Workload(1, seconds=1.0), "no_such", seed=1)
