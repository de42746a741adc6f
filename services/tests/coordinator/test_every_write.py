"""Tests a coordinator that crashes before or after every single write of a job."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_services.coordinator.checkpointing import RunSettings
from remy_services.coordinator.farm import FarmSettings
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.server import ServerSettings
from remy_services.jobs.states import FINAL, SUCCEEDED
from remy_services.stores.contract import CheckpointStore
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.coordinator.gates import Gate, GatedEvaluator
from services.tests.coordinator.running_server import RunningServer, settings_for
from services.tests.stores.failing_store import FailingStore

_SPEC = small_joint_spec(steps=4, steps_per_epoch=2, validation_specimens=8)
#: Commits every step.
_FARM = FarmSettings(runs=RunSettings(checkpoint_seconds=0))


def _settings(folder: Path) -> ServerSettings:
    folder.mkdir()
    return settings_for(folder, farm=_FARM, grace_seconds=0.0)


class _Run:
    """A coordinator that fails at one write."""

    def __init__(self, fail_at: int, when: Literal["before", "after"]) -> None:
        self._fail_at = fail_at
        self._when = when
        self.store: FailingStore | None = None
        self.gate = Gate()
        self.gate.open()

    def instrumentation(self) -> Instrumentation:
        return Instrumentation(
            store=self._wrap, evaluator=lambda inner: GatedEvaluator(inner, self.gate)
        )

    def _wrap(self, inner: CheckpointStore) -> CheckpointStore:
        self.store = FailingStore(inner, fail_at=self._fail_at, when=self._when, stays_down=True)
        return self.store

    @property
    def writes(self) -> int:
        assert self.store is not None
        return len(self.store.calls)


def _writes_of_a_whole_job(folder: Path) -> int:
    run = _Run(0, "before")
    with RunningServer(_settings(folder), run.instrumentation()) as server:
        client = server.client()
        client.until_final(client.submit(_SPEC, client_request_id="job").id)
    return run.writes


def _has_failed_or_finished(run: _Run, number: int, server: RunningServer) -> bool:
    """Returns whether the write was reached or the job finished; the number of writes varies."""
    return run.writes >= number or any(
        handle.job.state in FINAL for handle in server.farm.catalogue
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_another_coordinator_completes_the_job_identically(
    tmp_path: Path, when: Literal["before", "after"]
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    writes = _writes_of_a_whole_job(tmp_path / "whole")
    assert writes > 15
    for number in range(1, writes + 1):
        settings = _settings(tmp_path / f"write-{number}")
        run = _Run(number, when)
        with RunningServer(settings, run.instrumentation()) as server:
            # The submission may fail; the client repeats it with the same request id below.
            server.submit_without_answer(_SPEC, "job")
            server.until(partial(_has_failed_or_finished, run, number, server))
        with RunningServer(settings) as server:
            client = server.client()
            job = client.submit(_SPEC, client_request_id="job").id
            history = client.history(job)
            assert [event.revision for event in history] == list(range(1, len(history) + 1))
            progress = [event.progress for event in history if event.HasField("progress")]
            assert [without_clocks(event) for event in progress] == events, number
            assert client.get(job).state == SUCCEEDED
            assert client.remycc(job) == table, number
            assert len(list(server.farm.catalogue)) == 1
