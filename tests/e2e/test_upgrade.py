"""A running design survives an upgrade, and uninstalling leaves only what the values retain."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.designs import embedded, write_spec
from tests.e2e.farm import Farm
from tests.e2e.kubectl import Kubectl
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster


def test_design_continues_through_an_upgrade(farm: Farm, tmp_path: Path) -> None:
    tokens, authority = farm.secret("tokens", "admin"), farm.secret("tls", "ca.crt")
    # Enough steps for the design to be running after the upgrade.
    spec = write_spec(tmp_path, steps=800)
    job = farm.submit(spec, "upgraded")
    farm.wait_for_step(job, 6)
    (before,) = _jobs_of(farm, job)
    # Changed worker settings replace the design's Job.
    farm.install({"workers": {"podAnnotations": {"upgraded": "yes"}}})
    assert (farm.secret("tokens", "admin"), farm.secret("tls", "ca.crt")) == (tokens, authority)
    wait_until(lambda: _jobs_of(farm, job) not in ([], [before]), "another Job in its place")
    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)


def test_uninstalling_leaves_only_retained_objects(farm: Farm) -> None:
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
