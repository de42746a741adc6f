"""A real Prometheus finds every component by the selectors of the chart's monitors."""

from __future__ import annotations

import json
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
from tests.e2e.waiting import wait_for

pytestmark = [
    needs_cluster,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not on the PATH"),
]


def test_every_component_is_scraped(farm: Farm, tmp_path: Path) -> None:
    job = farm.submit(write_spec(tmp_path, steps=5000), "scraped")
    wait_for("workers", lambda: farm.workers_of(job))
    with _prometheus(_scrapes(farm), tmp_path) as address:
        wait_for("coordinator and worker up", lambda: _up(address) >= {"coordinator", "worker-job"})
    farm.cli("cancel", job)


def _scrapes(farm: Farm) -> list[dict[str, Any]]:
    """What the operator would make of the rendered monitors."""
    flags = ["-f", str(values_file()), "--set", "monitoring.serviceMonitor.enabled=true"]
    rendered = Rendered(
        run(["helm", "template", RELEASE, str(CHART), "-n", farm.namespace, *flags])
    )
    service = rendered.one("ServiceMonitor")["spec"]
    pods = rendered.one("PodMonitor")["spec"]
    return [
        _scrape("services", "endpoints", "service", service, service["endpoints"][0]["port"], farm),
        _scrape("pods", "pod", "pod", pods, pods["podMetricsEndpoints"][0]["port"], farm),
    ]


def _scrape(
    name: str, role: str, labelled: str, monitor: dict[str, Any], port: str, farm: Farm
) -> dict[str, Any]:
    keep = [
        {
            "action": "keep",
            "source_labels": [f"__meta_kubernetes_{labelled}_label_{_escaped(label)}"],
            "regex": value,
        }
        for label, value in monitor["selector"]["matchLabels"].items()
    ]
    port_label = "endpoint_port_name" if role == "endpoints" else "pod_container_port_name"
    return {
        "job_name": name,
        "scrape_interval": "1s",
        "kubernetes_sd_configs": [
            {"role": role, "kubeconfig_file": "", "namespaces": {"names": [farm.namespace]}}
        ],
        "relabel_configs": [
            *keep,
            {
                "action": "keep",
                "source_labels": [f"__meta_kubernetes_{port_label}"],
                "regex": port,
            },
            {
                "source_labels": [
                    "__meta_kubernetes_pod_label_app_kubernetes_io_component",
                ],
                "target_label": "component",
            },
        ],
    }


def _escaped(label: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in label)


@contextmanager
def _prometheus(scrapes: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(run(["kubectl", "config", "view", "--raw", "--flatten"]))
    for scrape in scrapes:
        scrape["kubernetes_sd_configs"][0]["kubeconfig_file"] = str(kubeconfig)
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({"scrape_configs": scrapes}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={folder / 'prometheus.yaml'}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


def _up(address: str) -> set[str]:
    """Components whose last scrape succeeded."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/query?query=up==1") as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return set()
    return {each["metric"].get("component", "") for each in found}
