"""Tests `remy_farm.Client` with a real coordinator."""

from pathlib import Path

import pytest

import remy_farm as rf
from services.tests.cli.service.real_coordinator import Coordinator
from tests.waiting import wait_until


def test_job_gives_the_same_table_as_a_local_design(farm: Coordinator, spec_file: Path) -> None:
    spec = rf.load_spec(spec_file)
    with rf.Client(farm.address) as client:
        job = client.submit(spec, name="mine")
        assert job.name == "mine"
        job.watch(progress=False)
        assert job.state == "succeeded"
        assert job.table() == rf.design(spec).table
        assert job.spec == spec
        frame = job.to_pandas()
        assert [*frame["epoch"]] == [0, 1]
        assert job.table(epoch=0).signals == job.table().signals
        assert job.id in [each.id for each in client.jobs()]
        assert client.job(job.id).state == "succeeded"


def test_client_pauses_forks_cancels_and_deletes_a_job(
    farm: Coordinator, endless_spec: Path
) -> None:
    # Without an address, the client uses the command line's settings.
    with rf.Client() as client:
        job = client.submit(rf.load_spec(endless_spec))
        wait_until(lambda: len(job.rows()) > 0 or None, "an epoch")
        assert job.pause().state in ("pausing", "paused")
        other = job.fork({"objective.delta": 3}, name="forked")
        assert other.spec.to_dict()["objective"]["delta"] == 3
        for each in (job, other):
            each.cancel().watch(progress=False)
            assert each.state == "cancelled"
            each.delete()
        with pytest.raises(rf.ServiceError, match=job.id):
            job.refresh()


def test_watch_prints_a_progress_line(
    farm: Coordinator, spec_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with rf.Client(farm.address) as client:
        client.submit(rf.load_spec(spec_file), name="watched").watch(progress=True)
    assert "watched: " in capsys.readouterr().err


def test_unreachable_coordinator_is_an_error_of_one_sentence() -> None:
    client = rf.Client("127.0.0.1:1", patience_seconds=0)
    with pytest.raises(rf.ServiceError, match=r"127\.0\.0\.1:1") as caught:
        client.jobs()
    assert "\n" not in str(caught.value)
    client.close()
