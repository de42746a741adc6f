"""A farm that is upgraded with a design running, and one that is uninstalled."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.programs import ROOT
from tests.e2e.designs import embedded, write_spec
from tests.e2e.farm import CHART, Farm
from tests.e2e.kubectl import Kubectl, run
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster


@pytest.fixture
def previous_chart(tmp_path: Path) -> Iterator[Path]:
    """The chart before its version last changed; the present one, where history has no other."""
    changes = _git("log", "--format=%H", "-G^version:", "--", "charts/remy-farm/Chart.yaml")
    for commit in changes.split()[:1]:
        if _git("ls-tree", f"{commit}^", "charts/remy-farm/Chart.yaml"):
            archive = tmp_path / "chart.tar"
            _git("archive", f"--output={archive}", f"{commit}^", "charts/remy-farm")
            run(["tar", "-C", str(tmp_path), "-xf", str(archive)])
            yield tmp_path / "charts" / "remy-farm"
            return
    yield CHART


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def test_a_design_goes_on_through_an_upgrade(
    farm: Farm, previous_chart: Path, tmp_path: Path
) -> None:
    farm.uninstall()
    farm.install(chart=previous_chart)
    tokens, authority = farm.secret("tokens", "admin"), farm.secret("tls", "ca.crt")
    # Long enough that the design still runs when the upgrade is through.
    spec = write_spec(tmp_path, steps=800)
    job = farm.submit(spec, "upgraded")
    wait_until(lambda: farm.step(job) > 5, "progress")
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
