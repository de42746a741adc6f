"""Tests the HTTP endpoint, and that metrics are read in the event loop."""

from __future__ import annotations

import asyncio
import threading
import urllib.request

import pytest

from remy_services.telemetry import catalogue
from remy_services.telemetry.samples import Sample, SampledCollector
from remy_services.telemetry.telemetry import Telemetry, in_loop, served
from services.tests.telemetry.small_jobs import running_job


def get(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        text: str = response.read().decode()
    return text


def test_a_scrape_shows_present_jobs() -> None:
    async def scraped() -> str:
        telemetry = Telemetry()
        telemetry.watch(asyncio.get_running_loop(), lambda: [running_job(name='a "b"')])
        with served(telemetry.registry, "127.0.0.1", 0) as port:
            return await asyncio.to_thread(get, port)

    text = asyncio.run(scraped())
    assert 'remy_farm_job_step{job_id="j1",job_name="a \\"b\\""} 40.0' in text
    assert "# TYPE remy_farm_job_cpu_seconds_total counter" in text


def test_metrics_are_read_in_the_event_loop_thread() -> None:
    threads = []

    def read() -> list[Sample]:
        threads.append(threading.current_thread())
        return [Sample(catalogue.JOBS, 1, ("RUNNING",))]

    async def collect() -> None:
        collector = SampledCollector(
            catalogue.JOB_METRICS, in_loop(asyncio.get_running_loop(), read)
        )
        await asyncio.to_thread(lambda: list(collector.collect()))

    asyncio.run(collect())
    assert threads == [threading.main_thread()]


def test_a_port_in_use_raises_oserror() -> None:
    telemetry = Telemetry()
    with (
        served(telemetry.registry, "127.0.0.1", 0) as port,
        pytest.raises(OSError, match="in use"),
        served(telemetry.registry, "127.0.0.1", port),
    ):
        pass
