"""A user gets from `helm install` to a RemyCC by the chart's notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.designs import embedded, write_spec
from tests.e2e.farm import COORDINATOR, FULL_NAME, Farm
from tests.e2e.kubectl import run
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = [needs_cluster, pytest.mark.ci]


def test_helm_test_passes(farm: Farm) -> None:
    assert "Succeeded" in farm.test()


def test_design_gives_the_same_bytes_as_a_local_one(farm: Farm, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, steps=40)
    job = farm.submit(spec, "first")
    watched = farm.cli("watch", job, "--json")
    assert "SUCCEEDED" in watched.upper()
    assert farm.state(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)
    # The workers exit, and no Job is left.
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")


def test_notes_name_existing_objects(farm: Farm) -> None:
    notes = run(["helm", "get", "notes", "farm", "-n", farm.namespace])
    for words in (
        f"get secret {FULL_NAME}-tokens",
        f"get secret {FULL_NAME}-tls",
        f"port-forward service/{FULL_NAME}-coordinator",
    ):
        assert words in notes
    assert farm.secret("tokens", "submitter")
    assert farm.secret("tls", "ca.crt")


@pytest.mark.parametrize("role", [None, "viewer", "worker"])
def test_submission_needs_the_right_token(farm: Farm, tmp_path: Path, role: str | None) -> None:
    done = farm.try_cli("submit", str(write_spec(tmp_path, steps=1)), role=role)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_too_many_workers_are_refused(farm: Farm, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, steps=1, workers="{image: evil/image}")
    done = farm.try_cli("submit", str(spec))
    assert done.returncode != 0
    assert "workers.image" in done.stderr


def test_coordinator_runs_on_an_on_demand_node(farm: Farm) -> None:
    (pod,) = farm.kubectl.pods(COORDINATOR)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
