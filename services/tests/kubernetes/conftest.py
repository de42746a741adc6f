"""The clusters of the tests against a real API server; see control_plane."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for the tests of this file, which they may stop."""
    missing = sorted(set(PROGRAMS) - set(programs()))
    if missing:
        pytest.skip(f"neither KUBEBUILDER_ASSETS nor PATH has {', '.join(missing)}")
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="module")
def started(request: pytest.FixtureRequest) -> ControlPlane | None:
    """The same, where KUBECONFIG names no other cluster; None: it does."""
    if "KUBECONFIG" in os.environ:
        return None
    found: ControlPlane = request.getfixturevalue("own")
    return found
