"""A Ray cluster for all tests that need one: it takes its time to start."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from benchmarks.ray_cluster import RayCluster


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed here (remy-farm-worker with its extra 'ray')")
    from benchmarks.ray_cluster import RayCluster

    with RayCluster(
        nodes=2,
        # Ray ends what has not heard of the head for so long; by default it is a minute.
        gcs_rpc_server_reconnect_timeout_s="5",
        # By default actors are at 15, and on a busy machine minutes late to replace what was lost.
        worker_niceness="0",
    ) as cluster:
        yield cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Ray come first, and so in one process, with one cluster: they wait for minutes,
    which other processes' tests may use."""
    fleet = Path(__file__).parent
    items.sort(key=lambda item: item.path.parent != fleet or "ray" not in item.nodeid)
