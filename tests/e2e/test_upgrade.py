"""A farm that is upgraded with a design running, and one that is uninstalled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.programs import ROOT
from tests.e2e.conftest import Figures
from tests.e2e.designs import digest_of, embedded, write_spec
from tests.e2e.farm import FULL_NAME, Farm
from tests.e2e.kubectl import Kubectl, run
from tests.e2e.settings import BEFORE, needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster


@pytest.fixture
def chart_before(tmp_path: Path) -> Path:
    """The chart of the commit that REMY_FARM_E2E_BEFORE names."""
    if not BEFORE:
        pytest.skip("REMY_FARM_E2E_BEFORE names no commit whose images the cluster has")
    archive = tmp_path / "chart.tar"
    run(["git", "-C", str(ROOT), "archive", f"--output={archive}", BEFORE, "charts/remy-farm"])
    run(["tar", "-C", str(tmp_path), "-xf", str(archive)])
    return tmp_path / "charts" / "remy-farm"


@pytest.fixture
def empty_farm(farm: Farm) -> Iterator[Farm]:
    """Nothing is installed, and no volume left; afterwards the farm is as others expect it."""
    farm.uninstall()
    farm.kubectl("delete", "pvc,secret", "--all")
    yield farm
    farm.install()


def test_a_farm_of_before_is_upgraded_with_its_store_and_its_designs(
    empty_farm: Farm, chart_before: Path, tmp_path: Path, figures: Figures
) -> None:
    farm, old = empty_farm, {"image": {"tag": "before"}}
    farm.install({"coordinator": old, "workers": old}, chart=chart_before)
    ended = _submit_there(farm, write_spec(tmp_path, steps=20, seed=6), "ended")
    assert farm.wait_until_done(ended) == "SUCCEEDED"
    table = farm.fetch(ended)
    spec = write_spec(tmp_path, steps=800, seed=7)
    job = _submit_there(farm, spec, "running")
    farm.wait_for_step(job, 6)
    (before,) = _jobs_of(farm, job)
    farm.install()
    # Nothing that was kept is lost, and what was running goes on with other workers.
    assert farm.state(ended) == "SUCCEEDED"
    assert farm.fetch(ended) == table
    wait_until(lambda: _jobs_of(farm, job) not in ([], [before]), "another Job in its place")
    reached = farm.step(job)
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(_with_its_edition(spec))
    figures(f"from {BEFORE} at step {reached} of 800, {digest_of(farm.fetch(job))}")


def test_a_design_goes_on_through_an_upgrade(farm: Farm, tmp_path: Path) -> None:
    tokens, authority = farm.secret("tokens", "admin"), farm.secret("tls", "ca.crt")
    # Long enough that the design still runs when the upgrade is through.
    spec = write_spec(tmp_path, steps=800)
    job = farm.submit(spec, "upgraded")
    farm.wait_for_step(job, 6)
    (before,) = _jobs_of(farm, job)
    # Other workers, so that the design's Job is replaced.
    farm.install({"workers": {"podAnnotations": {"upgraded": "yes"}}})
    assert (farm.secret("tokens", "admin"), farm.secret("tls", "ca.crt")) == (tokens, authority)
    wait_until(lambda: _jobs_of(farm, job) not in ([], [before]), "another Job in its place")
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)


def test_what_the_values_keep_is_what_is_left(farm: Farm) -> None:
    farm.uninstall()
    wait_until(lambda: not farm.kubectl.objects("pods"), "the end of its pods")
    left = _left(farm.kubectl)
    assert left == {
        "persistentvolumeclaim/data-farm-remy-farm-redis-0",
        "secret/farm-remy-farm-redis",
    }


def _submit_there(farm: Farm, spec: Path, name: str) -> str:
    """A new job, by the client in the coordinator's image, which is of before."""
    environment = ["REMY_FARM_COORDINATOR=localhost:7390"]
    environment += ["REMY_FARM_TLS_CA=/etc/remy-farm/tls/ca.crt"]
    environment += [f"REMY_FARM_TOKEN={farm.secret('tokens', 'submitter')}"]
    there = f"/tmp/{name}.yaml"
    script = f"cat >{there} && exec remy-farm submit {there} --name {name} --json"
    command = ["exec", "-i", f"deployment/{FULL_NAME}-coordinator", "--", "env", *environment]
    answer = farm.kubectl(*command, "sh", "-c", script, given=spec.read_text(encoding="utf-8"))
    return str(json.loads(answer)["id"])


def _with_its_edition(spec: Path) -> Path:
    """The specification as this program reads it, for what it meant when none named an edition."""
    made = spec.with_stem(f"{spec.stem}-edition-1")
    made.write_text(f"edition: 1\n{spec.read_text(encoding='utf-8')}", encoding="utf-8")
    return made


def _jobs_of(farm: Farm, job: str) -> list[str]:
    found = farm.kubectl.objects("jobs", f"remy-farm/job-id={job}")
    return sorted(each["metadata"]["name"] for each in found)


def _left(kubectl: Kubectl) -> set[str]:
    kinds = "all,jobs,secrets,configmaps,pvc,networkpolicies,pdb,serviceaccounts,roles,rolebindings"
    names = kubectl("get", kinds, "-o", "json")
    return {
        f"{each['kind'].lower()}/{each['metadata']['name']}"
        for each in json.loads(names)["items"]
        if each["metadata"]["name"] not in ("kube-root-ca.crt", "default")
    }
