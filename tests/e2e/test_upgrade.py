"""A farm that is upgraded with a design running, and one that is uninstalled."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.designs import embedded, write_spec
from tests.e2e.farm import Farm
from tests.e2e.kubectl import Kubectl
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster


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
