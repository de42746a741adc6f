"""What the files of the farm on one machine say of each other, and of the images."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.programs import ROOT

FOLDER = ROOT / "deploy" / "compose"
SERVICES: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]


def mounts() -> Iterator[tuple[str, Path]]:
    """Each service's files of this machine."""
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                yield name, (FOLDER / source).resolve()


@pytest.mark.parametrize(("service", "path"), list(mounts()))
def test_what_is_mounted_is_there(service: str, path: Path) -> None:
    made = path.is_relative_to(FOLDER / "secrets")
    assert made or path.exists(), f"{service} mounts {path}, which is not there"


def test_the_images_are_targets_of_the_dockerfile() -> None:
    targets = re.findall(r"^FROM .* AS (\S+)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.M)
    built = {name: each["build"] for name, each in SERVICES.items() if "build" in each}
    assert set(built) == {"coordinator", "worker-1", "worker-2"}
    for build in built.values():
        assert build["target"] in targets
        assert (FOLDER / build["context"] / build["dockerfile"]).exists()


def test_prometheus_asks_services_that_there_are() -> None:
    scrapes = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())["scrape_configs"]
    asked = {
        target.split(":")[0]
        for scrape in scrapes
        for static in scrape["static_configs"]
        for target in static["targets"]
    }
    assert {"coordinator", "worker-1", "worker-2"} <= asked <= {*SERVICES, "localhost"}


def test_who_waits_for_health_waits_for_something_that_tells_it() -> None:
    """The image's own command is the only one that the coordinator has."""
    waited = {
        name
        for service in SERVICES.values()
        if isinstance(service.get("depends_on"), dict)
        for name, how in service["depends_on"].items()
        if how["condition"] == "service_healthy"
    }
    stages = (ROOT / "deploy" / "Dockerfile").read_text().split("\nFROM ")
    for name in waited:
        target = SERVICES[name].get("build", {}).get("target")
        (stage,) = [each for each in stages if each.startswith(f"base AS {target}\n")] or [""]
        assert "healthcheck" in SERVICES[name] or "\nHEALTHCHECK" in stage, name
    assert waited == {"coordinator", "redis"}
