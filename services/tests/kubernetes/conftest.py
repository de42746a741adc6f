"""The cluster of the tests against a real API server; see control_plane."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane | None]:
    """A control plane for the tests of this file; None: KUBECONFIG names another."""
    if "KUBECONFIG" in os.environ:
        yield None
        return
    missing = sorted(set(PROGRAMS) - set(programs()))
    if missing:
        pytest.skip(
            f"KUBECONFIG names no cluster, and neither KUBEBUILDER_ASSETS nor PATH has "
            f"{', '.join(missing)}"
        )
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane
