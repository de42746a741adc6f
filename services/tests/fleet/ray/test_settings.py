"""What the driver is told on its command line."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from remy_services.fleet.ray import RayFleet, RaySettings, RayUnavailable


def test_the_driver_is_told_everything() -> None:
    settings = RaySettings("10.0.0.1:6379", 4, 16, "evaluation", 30.0, "debug")
    assert settings.command("/tmp/s") == [
        sys.executable,
        "-m",
        "remy_workers.ray",
        "--coordinator=unix:/tmp/s",
        "--ray-address=10.0.0.1:6379",
        "--threads-per-actor=4",
        "--resource=evaluation",
        "--patience-seconds=30.0",
        "--log-level=debug",
        "--actors=16",
    ]


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RayUnavailable, match=r"needs remy-farm-worker with its extra 'ray'"):
        RayFleet()
