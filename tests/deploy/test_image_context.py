"""What the images are made from is sent to whoever builds them."""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePosixPath

import pytest

from benchmarks.programs import ROOT

_DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def _copied() -> list[str]:
    """The sources, in the repository, of all COPY instructions."""
    words = [line.split() for line in _DOCKERFILE.read_text().splitlines()]
    copies = [line[1:-1] for line in words if line[:1] == ["COPY"]]
    return sorted({source for line in copies if "--from" not in line[0] for source in line})


def _sent() -> list[PurePosixPath]:
    """What .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    return [PurePosixPath(line[1:]) for line in lines if line.startswith("!")]


@pytest.mark.parametrize("source", _copied())
def test_what_is_copied_is_there_and_not_ignored(source: str) -> None:
    path = PurePosixPath(source)
    assert (ROOT / path).exists()
    # A folder may be sent in parts.
    assert any(path.is_relative_to(sent) or sent.is_relative_to(path) for sent in _sent())


@pytest.mark.parametrize("extra", ["kubernetes", "s3"])
def test_the_coordinators_image_holds_what_the_chart_may_ask_it_for(extra: str) -> None:
    project = tomllib.loads((ROOT / "services" / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[^a-z0-9-]", each)[0] for each in project["optional-dependencies"][extra]}
    locked = (ROOT / "requirements" / "services.txt").read_text()
    assert wanted <= set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))
