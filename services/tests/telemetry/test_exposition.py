"""Metrics over HTTP, read in the event loop that they belong to."""

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


def test_a_scrape_shows_the_jobs_of_a_running_loop() -> None:
    async def scraped() -> str:
        telemetry = Telemetry()
        telemetry.watch(asyncio.get_running_loop(), lambda: [running_job(name='a "b"')])
        with served(telemetry.registry, "127.0.0.1", 0) as port:
            return await asyncio.to_thread(get, port)

    text = asyncio.run(scraped())
    assert 'remy_farm_job_step{job_id="j1",job_name="a \\"b\\""} 40.0' in text
    assert "# TYPE remy_farm_job_cpu_seconds_total counter" in text


def test_reading_happens_in_the_loop_s_own_thread() -> None:
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


def test_a_port_that_is_taken_is_an_error() -> None:
    telemetry = Telemetry()
    with (
        served(telemetry.registry, "127.0.0.1", 0) as port,
        pytest.raises(OSError, match="in use"),
        served(telemetry.registry, "127.0.0.1", port),
    ):
        pass
