"""The exported metrics of a worker."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from remy_workers.telemetry import TaskEnd, WorkerMetrics, served


def scraped(metrics: WorkerMetrics) -> dict[str, float]:
    """Scrapes the metrics over HTTP; returns values by name and by how tasks ended."""
    with (
        served(metrics, "127.0.0.1", 0) as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response,
    ):
        families = list(text_string_to_metric_families(response.read().decode()))
    return {
        sample.name + sample.labels.get("end", ""): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("remy_farm_worker_") and "le" not in sample.labels
    }


def test_tasks_are_counted_by_how_they_end() -> None:
    metrics = WorkerMetrics(threads=4)
    for _ in range(3):
        metrics.task_started()
    metrics.task_done(wall_seconds=0.5, cpu_seconds=0.4, evaluations=8, packets=1000)
    metrics.task_refused()
    metrics.task_dropped(TaskEnd.CANCELLED)
    values = scraped(metrics)
    assert values["remy_farm_worker_tasks_running"] == 1
    assert values["remy_farm_worker_tasks_totaldone"] == 1
    assert values["remy_farm_worker_tasks_totalrefused"] == 1
    assert values["remy_farm_worker_tasks_totalcancelled"] == 1
    assert values["remy_farm_worker_tasks_totalreturned"] == 0
    assert values["remy_farm_worker_task_duration_seconds_sum"] == 0.5
    assert values["remy_farm_worker_cpu_seconds_total"] == 0.4
    assert values["remy_farm_worker_evaluations_total"] == 8
    assert values["remy_farm_worker_simulated_packets_total"] == 1000
    assert values["remy_farm_worker_threads"] == 4


def test_connection_metrics_follow_connects_and_disconnects() -> None:
    metrics = WorkerMetrics(threads=1)
    assert scraped(metrics)["remy_farm_worker_connected"] == 0
    metrics.connected()
    assert scraped(metrics)["remy_farm_worker_connected"] == 1
    metrics.disconnected()
    metrics.connected()
    values = scraped(metrics)
    assert values["remy_farm_worker_connected"] == 1
    assert values["remy_farm_worker_connections_total"] == 2
