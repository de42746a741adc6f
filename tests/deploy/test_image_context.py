"""The build context of the images has all files that the Dockerfile copies."""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePosixPath

import pytest

from benchmarks.programs import ROOT

_DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def _copied_paths() -> list[str]:
    """Returns the paths in the repository that COPY instructions name."""
    instructions = [line.split() for line in _DOCKERFILE.read_text().splitlines()]
    copies = [line[1:-1] for line in instructions if line[:1] == ["COPY"]]
    return sorted({source for line in copies if "--from" not in line[0] for source in line})


def _context_paths() -> list[PurePosixPath]:
    """Returns the paths that .dockerignore includes in the build context."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    return [PurePosixPath(line[1:]) for line in lines if line.startswith("!")]


@pytest.mark.parametrize("source", _copied_paths())
def test_copied_path_exists_and_is_in_the_context(source: str) -> None:
    path = PurePosixPath(source)
    assert (ROOT / path).exists()
    # The context may have only a part of a copied directory.
    assert any(
        path.is_relative_to(included) or included.is_relative_to(path)
        for included in _context_paths()
    )


@pytest.mark.parametrize("extra", ["kubernetes", "s3"])
def test_coordinator_image_has_the_extras_that_the_chart_uses(extra: str) -> None:
    project = tomllib.loads((ROOT / "services" / "pyproject.toml").read_text())["project"]
    required = {
        re.split(r"[^a-z0-9-]", name)[0] for name in project["optional-dependencies"][extra]
    }
    locked = (ROOT / "requirements" / "services.txt").read_text()
    assert required <= set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))
