"""Tests DesignJobs on a real API server: the CRD's schema and rules, and the controller."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.specification import load_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.jobs.states import CANCELLED, PAUSED, RUNNING, SUCCEEDED
from remy_services.kubernetes.design_jobs import (
    API_VERSION,
    KIND,
    mirror_of,
    observed_design_job,
    tree_of,
)
from services.tests.coordinator.running_server import RunningServer, settings_for
from services.tests.kubernetes.control_plane import ControlPlane
from tests.chart.rendering import needs_helm, render
from tests.waiting import wait_until

pytest.importorskip(
    "kubernetes", reason="the extra remy-farm-services[kubernetes] is not installed"
)

from kubernetes import config, dynamic
from kubernetes.client.exceptions import ApiException

ROOT = Path(__file__).resolve().parents[3]

CRD = ROOT / "charts" / "remy-farm" / "files" / "crds" / "designjobs.yaml"
MANIFEST = ROOT / "examples" / "kubernetes" / "design-job.yaml"
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
KUBECTL = shutil.which(
    "kubectl", path=os.pathsep.join([os.environ.get("KUBEBUILDER_ASSETS", ""), os.environ["PATH"]])
)
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl in PATH")
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Namespace:
    """A new namespace, accessed as administrator."""

    api: Any
    name: str

    def kind(self, kind: str) -> Any:
        version = API_VERSION if kind == KIND else "v1"
        return self.api.resources.get(api_version=version, kind=kind)

    def apply(self, name: str, design: Any, *, dry_run: bool = False, **spec: Any) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name},
            "spec": {"design": design, **spec},
        }
        options = {"query_params": [("dryRun", "All")]} if dry_run else {}
        self.kind(KIND).create(body=body, namespace=self.name, **options)

    def change(self, name: str, spec: Any) -> None:
        self.kind(KIND).patch(
            name=name, namespace=self.name, body={"spec": spec}, content_type=MERGE
        )

    def delete(self, name: str) -> None:
        self.kind(KIND).delete(name=name, namespace=self.name)

    def get(self, kind: str, name: str) -> Any:
        """Returns an object as JSON."""
        return self.kind(kind).get(name=name, namespace=self.name).to_dict()

    def names(self) -> list[str]:
        return [each.metadata.name for each in self.kind(KIND).get(namespace=self.name).items]

    def until_phase(self, name: str, phase: str) -> Any:
        def shown() -> Any:
            found = self.get(KIND, name)
            return found if found.get("status", {}).get("phase") == phase else None

        return wait_until(shown, f"{name} to be {phase}", every_seconds=0.2)

    def until_spec(self, name: str, **wanted: Any) -> None:
        def has_wanted() -> bool:
            return bool(self.get(KIND, name)["spec"].items() >= wanted.items())

        wait_until(has_wanted, f"the spec of {name} to have {wanted}", every_seconds=0.2)

    def until_gone(self, name: str) -> None:
        wait_until(lambda: name not in self.names(), f"{name} to be gone", every_seconds=0.2)

    def kubectl(self, *arguments: str) -> str:
        assert KUBECTL is not None
        command = [KUBECTL, "--namespace", self.name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def namespace(
    started: ControlPlane | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Namespace]:
    """A new namespace, and a kubeconfig in KUBECONFIG whose contexts have it as default."""
    original = started.kubeconfig if started is not None else Path(os.environ["KUBECONFIG"])
    name = f"design-jobs-{secrets.token_hex(4)}"
    tree = yaml.safe_load(original.read_text())
    for each in tree["contexts"]:
        each["context"]["namespace"] = name
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(tree))
    monkeypatch.setenv("KUBECONFIG", str(path))
    with config.new_client_from_config(config_file=str(path)) as connected:
        client = dynamic.DynamicClient(connected)
        definitions = client.resources.get(
            api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
        )
        client.server_side_apply(
            definitions,
            body=yaml.safe_load(CRD.read_text()),
            field_manager="tests",
            force_conflicts=True,
        )
        definition = "designjobs.remy-farm.dev"
        wait_until(lambda: _is_established(definitions.get(name=definition)), "the definition")
        client.resources.invalidate_cache()
        made = Namespace(client, name)
        client.resources.get(api_version="v1", kind="Namespace").create(
            body={"metadata": {"name": name}}
        )
        yield made
        for each in made.names():
            body = {"metadata": {"finalizers": None}}
            made.kind(KIND).patch(name=each, namespace=name, body=body, content_type=MERGE)
        client.resources.get(api_version="v1", kind="Namespace").delete(name=name)


def _is_established(definition: Any) -> bool:
    # The status is None until the API server has processed the definition.
    conditions = (definition.to_dict().get("status") or {}).get("conditions") or []
    return {"Established": "True"} in [{each["type"]: each["status"]} for each in conditions]


def design(**joint: Any) -> dict[str, Any]:
    """Returns a design that takes a second or two."""
    return mirrored_design(small_joint_spec(**{"steps": 12, **joint}))


def mirrored_design(spec: spec_pb2.DesignSpec) -> dict[str, Any]:
    """Returns `spec.design` of the object that mirrors a job with this specification."""
    mirror = mirror_of(job_pb2.Job(id="1", spec=spec, weight=1))
    tree: dict[str, Any] = mirror["spec"]["design"]
    return tree


# Tests of the schema.


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_schema_accepts_all_examples(namespace: Namespace, path: Path) -> None:
    spec = load_spec(path)
    namespace.apply("settings-in-use", mirrored_design(spec), dry_run=True)
    namespace.apply("all-settings", tree_of(spec), dry_run=True)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("network.rtt_ms", 150, "must be of type object"),
        ("network.rtt_ms", {"exact": 1.5}, "must be of type integer,string"),
        ("network.rtt_ms", {"exact": "soon"}, "should match"),
        ("network.rtt_ms", {"exact": 0}, "must be a number above 0 and at most 1000000 ms"),
        ("network.rtt_ms", {"exact": "1e7"}, "must be a number above 0 and at most 1000000 ms"),
        ("network.rtt_ms", {}, "must have exactly one of exact, uniform"),
        ("network.rtt_ms", {"exact": 1, "list": {"values": [1]}}, "must have exactly one of"),
        ("network.rtt_ms", {"uniform": {"low": 1}}, "high"),
        ("network.senders", {"exact": 0}, "greater than or equal to 1"),
        ("network.rtt", {"exact": 1}, "unknown field"),
        ("traffic", None, "traffic"),
        ("search.mode", "random", "Unsupported value"),
        ("search.seed", "-1", "should match"),
        ("signals", ["rtt_ratio", "rtt_ratio"], "Duplicate value"),
        ("stop", {"cpu_seconds": "-0.5"}, "must be a number above 0 s"),
    ],
)
def test_the_schema_refuses_invalid_values(
    namespace: Namespace, path: str, value: Any, expected: str
) -> None:
    tree = design()
    *outer, last = path.split(".")
    inside = tree
    for key in outer:
        inside = inside.setdefault(key, {})
    inside[last] = value
    if value is None:
        del inside[last]
    with pytest.raises(ApiException) as caught:
        _create_strictly(namespace, tree)
    assert expected in json.loads(caught.value.body)["message"]


def _create_strictly(namespace: Namespace, tree: Any) -> None:
    body = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "refused"},
        "spec": {"design": tree},
    }
    namespace.kind(KIND).create(
        body=body,
        namespace=namespace.name,
        query_params=[("dryRun", "All"), ("fieldValidation", "Strict")],
    )


@pytest.mark.parametrize(
    "change",
    [
        {"paused": True},
        {"priority": -3},
        {"design": {"stop": {"cpu_seconds": "0.5"}}},
        {"design": {"search": {"joint": {"steps": 99}}}},
        {"design": {"search": {"joint": {"steps": None}}}},
    ],
    ids=str,
)
def test_budgets_priority_and_pause_are_mutable(namespace: Namespace, change: Any) -> None:
    namespace.apply("one", design())
    namespace.change("one", change)
    assert observed_design_job(namespace.get(KIND, "one")).generation == 2


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 2},
        {"queueName": "other"},
        {"design": {"network": {"rtt_ms": {"uniform": {"low": 99}}}}},
        {"design": {"objective": {"delta": "0.5"}}},
        {"design": {"objective": None}},
        {"design": {"workers": {"maximum": 3}}},
        {"design": {"search": {"seed": 2}}},
        {"design": {"search": {"maximum_rules": 2}}},
        {"design": {"search": {"joint": {"step_size": None}}}},
        {"design": {"search": {"joint": {"cpu_seconds": 5}}}},
    ],
    ids=str,
)
def test_other_fields_are_immutable(namespace: Namespace, change: Any) -> None:
    namespace.apply("one", design())
    with pytest.raises(ApiException) as caught:
        namespace.change("one", change)
    assert "change" in json.loads(caught.value.body)["message"]


# Tests of the controller.


@pytest.fixture
def server(namespace: Namespace, tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(settings_for(tmp_path, kubernetes_design_jobs=True)) as server:
        yield server


def test_an_applied_job_equals_a_submitted_one(namespace: Namespace, server: RunningServer) -> None:
    # Long enough to observe it running.
    namespace.apply("mine", design(steps=90), priority=3, weight="0.5", queueName="team")
    found = namespace.until_phase("mine", "Succeeded")
    status, client = found["status"], server.client()
    job = client.get("mine")
    assert (job.id, job.owner) == (status["jobID"], f"kubernetes/{namespace.name}")
    assert (job.priority, job.weight, job.queue_name) == (3, 0.5, "team")
    assert (status["epoch"], status["rules"]) == (job.progress.epoch, job.progress.rules)
    assert float(status["score"]) == pytest.approx(job.progress.validated_score.mean, abs=1e-4)
    kinds = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert kinds["Complete"] == ("True", "ScheduleComplete")
    assert status["observedGeneration"] == found["metadata"]["generation"]
    # Submitting the same specification by gRPC gives the same RemyCC.
    by_grpc = client.submit(small_joint_spec(steps=90), name="by-grpc")
    assert client.until_final(by_grpc.id).state == SUCCEEDED
    published = namespace.get("ConfigMap", status["result"]["configMapName"])
    assert published["data"]["remycc.json"].encode() == client.remycc(by_grpc.id)
    assert published["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
    scores = json.loads(published["data"]["scores.json"])
    assert [each["epoch"] for each in scores] == list(range(job.progress.epoch))
    assert "remycc.dna" in published["binaryData"]
    mirror = namespace.until_phase(f"by-grpc-{by_grpc.id}", "Succeeded")
    assert mirror["status"]["result"]["sha256"] == status["result"]["sha256"]


def test_pause_resume_and_cancel_by_the_object_and_by_grpc(
    namespace: Namespace, server: RunningServer
) -> None:
    client = server.client()
    by_grpc = client.submit(small_joint_spec(steps=1_000_000), name="by-grpc")
    namespace.apply("applied", design(steps=1_000_000))
    for name in (f"by-grpc-{by_grpc.id}", "applied"):
        job_id = id_of_running_job(namespace, name)
        namespace.change(name, {"paused": True, "priority": 7})
        assert client.until_state(job_id, PAUSED).priority == 7
        client.call("ResumeJob", messages.ResumeJobRequest(job=job_id))
        client.until_state(job_id, RUNNING)
        namespace.until_spec(name, paused=False)
        client.call("ExtendJob", messages.ExtendJobRequest(job=job_id, priority=-1))
        namespace.until_spec(name, priority=-1)
        namespace.delete(name)
        assert client.until_final(job_id).state == CANCELLED
        namespace.until_gone(name)


def id_of_running_job(namespace: Namespace, name: str) -> str:
    """Waits until the object's job runs, and returns the job's ID."""
    wait_until(lambda: name in namespace.names(), name, every_seconds=0.2)
    return str(namespace.until_phase(name, "Running")["status"]["jobID"])


def test_a_restarted_coordinator_creates_no_second_job(
    namespace: Namespace, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, kubernetes_design_jobs=True)
    with RunningServer(settings):
        namespace.apply("mine", design(steps=1_000_000))
        job_id = namespace.until_phase("mine", "Running")["status"]["jobID"]
    # Simulates a crash between submission and status write.
    namespace.kind(KIND).status.patch(
        name="mine", namespace=namespace.name, body={"status": None}, content_type=MERGE
    )
    namespace.apply("meanwhile", design())
    namespace.change("mine", {"priority": 5})
    with RunningServer(settings) as server:
        namespace.until_phase("meanwhile", "Succeeded")
        namespace.until_phase("mine", "Running")
        jobs = server.client().call("ListJobs", messages.ListJobsRequest()).jobs
        assert sorted(job.name for job in jobs) == ["meanwhile", "mine"]
        mine = server.client().get("mine")
        assert (mine.id, mine.priority) == (job_id, 5)
        namespace.delete("mine")
        server.client().until_final(job_id)


def test_refusals_of_the_farm_are_reported(namespace: Namespace, server: RunningServer) -> None:
    tree = design()
    tree["network"]["rtt_ms"] = {"uniform": {"low": 200, "high": 100}}
    namespace.apply("backwards", tree)
    found = namespace.until_phase("backwards", "Refused")
    accepted = observed_design_job(found).condition("Accepted")
    assert accepted["status"] == "False"
    assert "network.rtt_ms" in accepted["message"]
    assert "finalizers" not in found["metadata"]
    namespace.delete("backwards")
    assert server.client().call("ListJobs", messages.ListJobsRequest()).jobs == []


def test_traces_are_read_from_config_maps(namespace: Namespace, server: RunningServer) -> None:
    times_ms = range(0, 10_000, 4)
    namespace.kind("ConfigMap").create(
        body={
            "metadata": {"name": "lte"},
            "data": {"down.trace": "".join(f"{each}\n" for each in times_ms)},
        },
        namespace=namespace.name,
    )
    tree = design()
    del tree["network"]["rate_mbps"]
    trace = {"path": "lte/down.trace", "semantics": "ns2"}
    tree["network"] |= {"buffer": {"infinite": {}}, "links": [{"trace": trace}]}
    namespace.apply("cellular", tree)
    found = namespace.until_phase("cellular", "Succeeded")
    job = server.client().get(found["status"]["jobID"])
    assert job.spec.network.links[0].trace.mean_rate_mbps == pytest.approx(3, rel=0.01)


@needs_kubectl
def test_kubectl_output(namespace: Namespace, server: RunningServer) -> None:
    namespace.kubectl("apply", "--filename", str(MANIFEST))
    name = yaml.safe_load(MANIFEST.read_text())["metadata"]["name"]
    namespace.until_phase(name, "Running")
    namespace.kubectl("patch", "dj", name, "--type=merge", '--patch={"spec":{"paused":true}}')
    namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Paused", f"dj/{name}")
    heads, row = namespace.kubectl("get", "designjobs").splitlines()
    assert heads.split() == ["NAME", "PHASE", "EPOCH", "SCORE", "RULES", "WORKERS", "AGE"]
    assert row.split()[:3] == [name, "Paused", "0"]
    described = namespace.kubectl("describe", "designjob", name)
    assert "Type:                  Accepted" in described
    assert "Normal Paused" in " ".join(described.split())
    explained = namespace.kubectl("explain", "designjob.spec.design.network.rtt_ms")
    assert "the RTT without queueing" in " ".join(explained.split())
    namespace.kubectl("delete", "designjob", name)
    assert server.client().get(name).state == CANCELLED


@needs_helm
def test_the_charts_permissions_suffice(
    namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = render({"designJobs": {"enabled": True}, "workers": {"backend": "deployment"}})
    _create_service_account(namespace, role.one("Role")["rules"])
    account = namespace.kind("ServiceAccount").subresources["token"]
    answer = account.create(
        name="coordinator", namespace=namespace.name, body={"spec": {"expirationSeconds": 600}}
    )
    tree = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for user in tree["users"]:
        user["user"] = {"token": answer.status.token}
    restricted = tmp_path / "restricted"
    restricted.write_text(yaml.safe_dump(tree))
    monkeypatch.setenv("KUBECONFIG", str(restricted))
    with RunningServer(settings_for(tmp_path, kubernetes_design_jobs=True)) as server:
        namespace.apply("mine", design(steps=60))
        found = namespace.until_phase("mine", "Succeeded")
        assert namespace.get("ConfigMap", found["status"]["result"]["configMapName"])
        events = namespace.kind("Event").get(namespace=namespace.name).items
        assert "Succeeded" in {each.reason for each in events}
        by_grpc = server.client().submit(small_joint_spec(steps=1_000_000), name="by-grpc")
        id_of_running_job(namespace, f"by-grpc-{by_grpc.id}")
        client = server.client()
        client.call("PauseJob", messages.PauseJobRequest(job=by_grpc.id))
        client.until_state(by_grpc.id, PAUSED)
        client.call("DeleteJob", messages.DeleteJobRequest(job=by_grpc.id))
        namespace.until_gone(f"by-grpc-{by_grpc.id}")


def _create_service_account(namespace: Namespace, rules: Any) -> None:
    """Creates the ServiceAccount `coordinator` with these RBAC rules."""
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "coordinator", "namespace": namespace.name}
    reference = {"apiGroup": group, "kind": "Role", "name": "coordinator"}
    for version, kind, rest in (
        ("v1", "ServiceAccount", {}),
        (f"{group}/v1", "Role", {"rules": rules}),
        (f"{group}/v1", "RoleBinding", {"roleRef": reference, "subjects": [subject]}),
    ):
        body = {"metadata": {"name": "coordinator"}, **rest}
        made = namespace.api.resources.get(api_version=version, kind=kind)
        made.create(body=body, namespace=namespace.name)
