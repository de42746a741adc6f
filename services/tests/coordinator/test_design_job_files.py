"""Tests DesignJobs whose specifications name files in ConfigMaps."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from remy_farm.specification.traces import parse_trace
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator import design_jobs
from remy_services.coordinator.design_jobs import DesignJobController
from remy_services.kubernetes.cluster import Change, Changed, Kind, Listed
from remy_services.kubernetes.manifest import ClusterUnreachable, Owner
from services.tests.coordinator.running_server import RunningServer, settings_for
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]

_TRACE = "".join(f"{each}\n" for each in range(0, 30_000, 5)).encode()
_TABLE = (ROOT / "data" / "remyccs" / "one-x" / "rules.json").read_bytes()
_DESIGN: Mapping[str, Any] = {
    "network": {
        "rtt_ms": {"exact": 50},
        "links": [
            {
                "trace": {"path": "lte/down.trace", "semantics": "mahimahi"},
                "buffer": {"packets": {"exact": 100}},
            }
        ],
        "sender_groups": [{"design": "remycc"}, {"table": {"path": "rivals/one-x.json"}}],
        "traffic": {
            "exponential_time": {"mean_ms": {"exact": 500}},
            "mean_off_ms": {"exact": 500},
        },
    },
    "search": {"mode": "joint", "simulated_seconds": 1, "joint": {"steps": 1}},
}


class _Cluster:
    """A Cluster in memory, with one DesignJob and some ConfigMaps."""

    def __init__(self, design: Mapping[str, Any]) -> None:
        self.config_maps = {"lte": {"down.trace": _TRACE}, "rivals": {"one-x.json": _TABLE}}
        self.is_unreachable = False
        self.object: dict[str, Any] = {
            "metadata": {
                "name": "cellular",
                "namespace": "research",
                "uid": "1",
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"design": design},
        }
        self._changes: asyncio.Queue[None] = asyncio.Queue()

    async def watch(self, kind: Kind) -> AsyncIterator[Change]:
        yield Listed(kind, (copy.deepcopy(self.object),))
        while True:
            await self._changes.get()
            yield Changed(kind, copy.deepcopy(self.object))

    async def apply(self, manifest: Mapping[str, Any], manager: str = "") -> Mapping[str, Any]:
        if not str(manifest["kind"]).startswith("DesignJob"):
            return {"metadata": {"uid": "", "resourceVersion": ""}}
        metadata = {"resourceVersion": str(int(self.object["metadata"]["resourceVersion"]) + 1)}
        self.object["metadata"] |= copy.deepcopy(dict(manifest["metadata"])) | metadata
        self.object |= {key: manifest[key] for key in ("status",) if key in manifest}
        self._changes.put_nowait(None)
        return copy.deepcopy(self.object)

    async def change(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    async def remove(self, name: str, kind: Kind = "Job") -> None:
        raise NotImplementedError

    async def deployment(self, name: str) -> Owner:
        raise NotImplementedError

    async def config_map(self, name: str) -> Mapping[str, bytes] | None:
        if self.is_unreachable:
            raise ClusterUnreachable("the Kubernetes API cannot be reached")
        return self.config_maps.get(name)

    async def close(self) -> None:
        pass

    def until_phase(self, *phases: str) -> dict[str, Any]:
        """Waits until the status has one of these phases, and returns it."""

        def status() -> dict[str, Any] | None:
            found: dict[str, Any] = self.object.get("status", {})
            return found if found.get("phase") in phases else None

        return wait_until(status, f"the object to be {' or '.join(phases)}", every_seconds=0.1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(settings_for(tmp_path)) as running:
        yield running


def _serve(server: RunningServer, cluster: _Cluster) -> DesignJobController:
    async def begin() -> DesignJobController:
        controller = DesignJobController(server.farm, cluster)
        controller.begin()
        return controller

    return server.run(begin())  # type: ignore[no-any-return]


def _design(path: str) -> dict[str, Any]:
    """Returns the design with another trace file."""
    design = json.loads(json.dumps(_DESIGN))
    design["network"]["links"][0]["trace"]["path"] = path
    return design  # type: ignore[no-any-return]


def test_files_are_read_from_config_maps(server: RunningServer) -> None:
    cluster = _Cluster(_DESIGN)
    controller = _serve(server, cluster)
    try:
        status = cluster.until_phase("Succeeded")
        job = server.client().get(status["jobID"])
        trace = job.spec.network.links[0].trace
        assert trace.sha256 == parse_trace(_TRACE, "").sha256.hex()
        # One opportunity of 1504 bytes every 5 ms carries one packet with its header.
        assert trace.mean_rate_mbps == pytest.approx(1500 * 8 / 5000, rel=0.001)
        table = json.loads(job.spec.network.sender_groups[1].table.json)
        assert table.items() <= json.loads(_TABLE).items()
        assert status["result"]["configMapName"] == "cellular-result"
    finally:
        server.run(controller.close())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("wifi/down.trace", "namespace research has no ConfigMap wifi with that key"),
        ("lte/up.trace", "namespace research has no ConfigMap lte with that key"),
        ("down.trace", "names the file 'down.trace', but must name CONFIGMAP/KEY"),
        ("../secrets/token", "but must name CONFIGMAP/KEY"),
        ("lte/broken", "lte/broken, line 2: 3 comes after 5, but times must not fall"),
        ("lte/empty", "lte/empty is empty, but a trace has at least one opportunity"),
        ("lte/large", "names files that are too large: at most 100000 bytes are allowed"),
    ],
)
def test_invalid_files_refuse_the_object_with_a_message(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, path: str, expected: str
) -> None:
    monkeypatch.setattr(design_jobs, "_MOST_FILES_BYTES", 100_000)
    cluster = _Cluster(_design(path))
    cluster.config_maps["lte"] |= {"broken": b"5\n3\n", "empty": b"", "large": b"1\n" * 50_001}
    controller = _serve(server, cluster)
    try:
        message = cluster.until_phase("Refused", "Pending", "Running")["message"]
        assert expected in message
        assert "\n" not in message
        assert server.client().call("ListJobs", messages.ListJobsRequest()).jobs == []
    finally:
        server.run(controller.close())


def test_an_unreachable_cluster_is_retried(server: RunningServer) -> None:
    cluster = _Cluster(_DESIGN)
    cluster.is_unreachable = True
    controller = _serve(server, cluster)
    try:
        wait_until(lambda: controller._backoffs.get("1"), "the controller to wait")
        assert "status" not in cluster.object
        cluster.is_unreachable = False
        cluster.until_phase("Succeeded")
    finally:
        server.run(controller.close())
