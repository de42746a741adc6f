"""Reads the settings of the end-to-end tests from the environment."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

#: A values file with images, storage class and other settings of the cluster.
VALUES = os.environ.get("REMY_FARM_E2E_VALUES", "")
#: Commands that take the name of a node. The first stops the node without notice, the second
#: starts it again.
KILL_NODE = os.environ.get("REMY_FARM_E2E_KILL_NODE", "")
START_NODE = os.environ.get("REMY_FARM_E2E_START_NODE", "")
#: The directory in which scripts/build_controllers stores the controllers.
CONTROLLERS = Path(
    os.environ.get("REMY_FARM_E2E_CONTROLLERS")
    or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "remy-farm" / "controllers"
).expanduser()


def _lacking() -> str:
    if "KUBECONFIG" not in os.environ:
        return "KUBECONFIG names no cluster"
    if not VALUES:
        return "REMY_FARM_E2E_VALUES names no values file with images that the cluster has"
    programs = [name for name in ("helm", "kubectl") if shutil.which(name) is None]
    if programs:
        return f"{' and '.join(programs)} must be on the PATH"
    return ""


needs_cluster = pytest.mark.skipif(bool(_lacking()), reason=f"no end-to-end tests: {_lacking()}")
kills_nodes = pytest.mark.skipif(
    not (KILL_NODE and START_NODE),
    reason="REMY_FARM_E2E_KILL_NODE and REMY_FARM_E2E_START_NODE name no commands",
)


def values_file() -> Path:
    """Returns the values file for this cluster."""
    return Path(VALUES).resolve()


def kill_node(name: str) -> None:
    """Stops a node without notice, like a reclaimed spot instance."""
    subprocess.run([*shlex.split(KILL_NODE), name], check=True, timeout=120)


def start_node(name: str) -> None:
    """Starts a stopped node again."""
    subprocess.run([*shlex.split(START_NODE), name], check=True, timeout=300)
