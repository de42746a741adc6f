"""Fixtures: real API servers for tests; see control_plane."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs


@pytest.fixture(scope="module")
def own_control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for the tests of one file, which they may stop."""
    missing = sorted(set(PROGRAMS) - set(programs()))
    if missing:
        pytest.skip(f"not found in KUBEBUILDER_ASSETS or PATH: {', '.join(missing)}")
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="module")
def started(request: pytest.FixtureRequest) -> ControlPlane | None:
    """A control plane, or None if KUBECONFIG names another cluster to use."""
    if "KUBECONFIG" in os.environ:
        return None
    found: ControlPlane = request.getfixturevalue("own_control_plane")
    return found
