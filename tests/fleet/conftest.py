"""Starts one Ray cluster for all tests that need one, because its start takes long."""

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
        pytest.skip("Ray is not installed (remy-farm-worker with its extra 'ray')")
    from benchmarks.ray_cluster import RayCluster

    with RayCluster(
        nodes=2,
        # Ray ends a process that has been without the head for this long; the default is a minute.
        gcs_rpc_server_reconnect_timeout_s="5",
        # The default is 15, with which new actors take minutes to start on a busy machine.
        worker_niceness="0",
    ) as cluster:
        yield cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs tests with Ray first, so that one process runs them all with one cluster.

    They wait for minutes, during which other processes run other tests.
    """
    fleet = Path(__file__).parent
    items.sort(key=lambda item: item.path.parent != fleet or "ray" not in item.nodeid)
