"""A real Prometheus scrapes every component by the selectors of the chart's monitors."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import Rendered
from tests.e2e.designs import write_spec
from tests.e2e.farm import CHART, RELEASE, Farm
from tests.e2e.kubectl import run
from tests.e2e.settings import needs_cluster, values_file
from tests.waiting import wait_until

pytestmark = [
    needs_cluster,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not on the PATH"),
]


def test_every_component_is_scraped(farm: Farm, tmp_path: Path) -> None:
    job = farm.submit(write_spec(tmp_path, steps=5000), "scraped")
    wait_until(lambda: farm.workers_of(job), "workers")
    wanted = {"coordinator", "worker"}
    with _prometheus(_scrapes(farm), tmp_path) as (address, process):
        wait_until(lambda: process.poll() is not None or _up(address) >= wanted, "both up")
        assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
        # A worker has one thread per requested CPU, whatever its node has.
        (threads,) = _found(address, "max(remy_farm_worker_threads)")
        assert float(threads["value"][1]) == _asked_cpus(farm.workers_of(job))
    farm.cli("cancel", job)


def _scrapes(farm: Farm) -> list[dict[str, Any]]:
    """Returns the scrape configurations that the operator would derive from the monitors.

    Debian's Prometheus has no Kubernetes service discovery, so that this function resolves the
    selectors.
    """
    flags = ["-f", str(values_file()), "--set", "monitoring.serviceMonitor.enabled=true"]
    flags += ["--set", "monitoring.podMonitor.enabled=true"]
    rendered = Rendered(
        run(["helm", "template", RELEASE, str(CHART), "-n", farm.namespace, *flags])
    )
    services = rendered.one("ServiceMonitor")["spec"]
    pods = rendered.one("PodMonitor")["spec"]
    return [
        _scrape("coordinator", _addresses_of_services(farm, services)),
        _scrape("worker", _addresses_of_pods(farm, pods)),
    ]


def _scrape(name: str, addresses: list[str]) -> dict[str, Any]:
    assert addresses, f"no {name} is selected"
    return {
        "job_name": name,
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "static_configs": [{"targets": addresses}],
    }


def _addresses_of_services(farm: Farm, monitor: dict[str, Any]) -> list[str]:
    (endpoint,) = monitor["endpoints"]
    return [
        f"{service['metadata']['name']}.{farm.namespace}.svc:{port['port']}"
        for service in farm.kubectl.objects("services", _selector(monitor))
        for port in service["spec"]["ports"]
        if port["name"] == endpoint["port"]
    ]


def _addresses_of_pods(farm: Farm, monitor: dict[str, Any]) -> list[str]:
    (endpoint,) = monitor["podMetricsEndpoints"]
    return [
        f"{pod['status']['podIP']}:{port['containerPort']}"
        for pod in farm.kubectl.pods(_selector(monitor))
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port["name"] == endpoint["port"]
    ]


def _selector(monitor: dict[str, Any]) -> str:
    labels = monitor["selector"]["matchLabels"]
    return ",".join(f"{label}={value}" for label, value in labels.items())


@contextmanager
def _prometheus(
    scrapes: list[dict[str, Any]], folder: Path
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({"scrape_configs": scrapes}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={folder / 'prometheus.yaml'}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield address, process
    finally:
        process.terminate()
        process.wait()


def _asked_cpus(workers: list[dict[str, Any]]) -> int:
    """CPUs that each of these pods asks for, as the kubelet tells them: rounded up."""
    (text,) = {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in workers}
    return math.ceil(float(text.rstrip("m")) / (1000 if text.endswith("m") else 1))


def _up(address: str) -> set[str]:
    """Returns the scrape jobs whose last scrape succeeded."""
    try:
        return {each["metric"]["job"] for each in _found(address, "up==1")}
    except OSError:
        return set()


def _found(address: str, query: str) -> list[dict[str, Any]]:
    """Returns the result of an instant query."""
    with urllib.request.urlopen(f"http://{address}/api/v1/query?query={query}") as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found
