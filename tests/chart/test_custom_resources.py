"""A real API server with other projects' CRDs accepts the chart's objects of these kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs
from tests.chart.rendering import EVERYTHING, needs_helm, objects_in, render
from tests.chart.test_kubernetes_schemas import FOREIGN, OPERATED
from tests.e2e.settings import CONTROLLERS
from tests.waiting import wait_until

_DEFINITIONS = {
    "cert-manager": ".",
    "gateway-api": ".",
    "kuberay": "crd/bases",
    "prometheus-operator": ".",
}
_MISSING = [name for name in _DEFINITIONS if not (CONTROLLERS / name / "version").exists()]

pytestmark = [
    needs_helm,
    pytest.mark.skipif(
        bool(set(PROGRAMS) - set(programs())),
        reason="neither KUBEBUILDER_ASSETS nor PATH has a Kubernetes control plane",
    ),
    pytest.mark.skipif(
        bool(_MISSING),
        reason=f"scripts/build_controllers has put no {' or '.join(_MISSING)} in {CONTROLLERS}",
    ),
]

config = pytest.importorskip(
    "kubernetes.config", reason="remy-farm-services[kubernetes] is not installed"
)
dynamic = pytest.importorskip("kubernetes.dynamic")
exceptions = pytest.importorskip("kubernetes.dynamic.exceptions")

_KINDS = {
    "Certificate",
    "GRPCRoute",
    "PodMonitor",
    "PrometheusRule",
    "RayCluster",
    "ServiceMonitor",
}
_CERTIFIED = {"tls": {"source": "cert-manager", "certManager": {"issuer": {"name": "ours"}}}}


class Server:
    """A client of an API server, to which CRDs are added."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = config.new_client_from_config(str(kubeconfig))
        self.api = dynamic.DynamicClient(self._client)
        self._create("v1", "Namespace", {"metadata": {"name": "research"}})

    def close(self) -> None:
        self._client.close()

    def define(self, definition: dict[str, Any]) -> None:
        """Creates a CRD and waits until its kind is served."""
        self._create("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition)
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        wait_until(lambda: self._serves(group, kind), f"{kind} to be served", every_seconds=0.5)

    def refusal(self, each: dict[str, Any]) -> str:
        """Returns the server's error message for an object; empty if the object is accepted."""
        strict = [("dryRun", "All"), ("fieldValidation", "Strict")]
        try:
            self._create(each["apiVersion"], each["kind"], each, query_params=strict)
        except exceptions.DynamicApiError as error:
            return str(error.body)
        return ""

    def _create(self, version: str, kind: str, body: dict[str, Any], **others: Any) -> None:
        resource = self.api.resources.get(api_version=version, kind=kind)
        where = {"namespace": "research"} if resource.namespaced else {}
        resource.create(body=body, **where, **others)

    def _serves(self, group: str, kind: str) -> bool:
        try:
            self.api.resources.invalidate_cache()
            found = self.api.resources.search(group=group, kind=kind)
            return bool(found) and found[0].get(namespace="research") is not None
        except (exceptions.DynamicApiError, exceptions.ResourceNotFoundError):
            return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with ControlPlane(tmp_path_factory.mktemp("definitions")) as plane:
        made = Server(plane.kubeconfig)
        for name, folder in _DEFINITIONS.items():
            path = CONTROLLERS / name / "manifests" / folder
            for kind in sorted(_KINDS):
                for file in path.glob(f"*_{kind.lower()}s.yaml"):
                    (definition,) = objects_in(file.read_text(encoding="utf-8"))
                    made.define(definition)
        yield made
        made.close()


def _foreign(values: dict[str, Any], *flags: str) -> list[dict[str, Any]]:
    objects = render(values, *flags).objects
    return [each for each in objects if each["apiVersion"].partition("/")[0] in FOREIGN]


@pytest.mark.parametrize("values", [{}, OPERATED, _CERTIFIED], ids=["jobs", "ray", "certified"])
def test_objects_of_foreign_kinds_are_accepted(server: Server, values: dict[str, Any]) -> None:
    objects = _foreign(values, "--values", str(EVERYTHING))
    assert {"Certificate", "GRPCRoute", "PodMonitor", "PrometheusRule", "ServiceMonitor"} <= {
        each["kind"] for each in objects
    }
    assert {each["kind"]: server.refusal(each) for each in objects} == {
        each["kind"]: "" for each in objects
    }


def test_default_ray_cluster_is_accepted(server: Server) -> None:
    (cluster,) = _foreign(OPERATED)
    assert cluster["kind"] == "RayCluster"
    assert server.refusal(cluster) == ""


@pytest.mark.parametrize("kind", sorted(_KINDS))
def test_unknown_field_is_refused(server: Server, kind: str) -> None:
    objects = _foreign(OPERATED, "--values", str(EVERYTHING))
    wrong = next(each for each in objects if each["kind"] == kind)
    wrong = {**wrong, "spec": {**wrong["spec"], "slip": 1}}
    assert 'unknown field \\"spec.slip\\"' in server.refusal(wrong)
