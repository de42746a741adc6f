"""Tests that the catalogue is complete and follows the Prometheus conventions."""

from __future__ import annotations

import asyncio
import re

import pytest

from remy_services.telemetry.catalogue import METRICS, Kind, Metric
from remy_services.telemetry.telemetry import Telemetry

_UNITS = ("seconds", "bytes", "ratio", "info", "total")
# Metrics without a unit suffix: counts, states and scores.
_PLAIN = re.compile(
    r"jobs|job_(state|priority|score|score_standard_error|epoch|epoch_gain"
    r"|epoch_gain_standard_error|epochs_without_gain|step|rules|candidates|candidates_left|workers"
    r"|validated_score|validated_score_standard_error|worker_pods)"
    r"|workers_\w+|threads_connected|tasks_(waiting|running)|store_(durable|available)"
    r"|grpc_server_open_calls"
)


def test_names_are_unique() -> None:
    names = [name for metric in METRICS for name in metric.series]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_metrics_have_a_unit_and_a_help_text(metric: Metric) -> None:
    plain = metric.name.removeprefix("remy_farm_")
    assert plain.endswith(_UNITS) or _PLAIN.fullmatch(plain)
    assert metric.help.endswith(".")
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_a_coordinator_exports_exactly_the_catalogue() -> None:
    async def families() -> dict[str, tuple[str, str]]:
        telemetry = Telemetry()
        telemetry.watch(asyncio.get_running_loop(), list)
        collected = await asyncio.to_thread(lambda: list(telemetry.registry.collect()))
        return {family.name: (family.type, family.documentation) for family in collected}

    exported = asyncio.run(families())
    expected = {
        metric.name.removesuffix("_total" if metric.kind is Kind.COUNTER else ""): (
            metric.kind.value,
            metric.help,
        )
        for metric in METRICS
    }
    ours = {name: entry for name, entry in exported.items() if name.startswith("remy_farm_")}
    assert ours == expected
    assert {name for name in exported if name not in ours} <= {
        "process_cpu_seconds",
        "process_max_fds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_virtual_memory_bytes",
    }


@pytest.mark.parametrize(
    ("name", "kind", "buckets"),
    [
        ("other_things", Kind.GAUGE, ()),
        ("remy_farm_things", Kind.COUNTER, ()),
        ("remy_farm_things_total", Kind.GAUGE, ()),
        ("remy_farm_things", Kind.HISTOGRAM, ()),
        ("remy_farm_things", Kind.GAUGE, (1.0,)),
    ],
)
def test_metrics_that_break_the_conventions_are_refused(
    name: str, kind: Kind, buckets: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="metric"):
        Metric(name, kind, "Things.", buckets=buckets)
