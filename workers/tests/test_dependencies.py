"""A worker installs without the coordinator and without the designer."""

from __future__ import annotations

import importlib.metadata
import re


def required(distribution: str) -> set[str]:
    """The names of all run-time dependencies of `distribution`, including indirect ones."""
    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        for requirement in importlib.metadata.requires(waiting.pop()) or []:
            name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()
            if "extra ==" not in requirement and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def test_worker_has_no_dependency_of_the_coordinator() -> None:
    needed = required("remy-farm-worker")
    assert {"remy-farm-proto", "remy-farm-rpc", "remy-simulator", "protobuf", "grpcio"} <= needed
    assert not needed & {"remy-farm", "remy-farm-services"}
    assert not needed & {"numpy", "matplotlib", "pyyaml", "redis", "fsspec", "rich"}


def test_rpc_package_depends_on_neither_side() -> None:
    needed = required("remy-farm-rpc")
    assert {"grpcio", "structlog", "tenacity"} <= needed
    assert not needed & {"remy-farm", "remy-farm-services", "remy-farm-worker", "remy-simulator"}
