"""`make release` writes reproducible files, and wheels that install without an index."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
import yaml

from benchmarks.programs import ROOT
from tests.chart.rendering import CHART, HELM, helm

RELEASE = ROOT / "scripts" / "release"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release without the parts that need a compiler or a builder of images."""
    folder = tmp_path_factory.mktemp("dist")
    release(folder)
    return folder


def release(folder: Path) -> None:
    parts = ["python", *(["chart"] if HELM else [])]
    subprocess.run([RELEASE, "--out", folder, *parts], check=True, capture_output=True)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_release_is_reproducible(dist: Path, tmp_path: Path) -> None:
    release(tmp_path)
    assert contents(tmp_path) == contents(dist)


def test_checksums_cover_all_files(dist: Path) -> None:
    lines = [line.split() for line in (dist / "SHA256SUMS").read_text().splitlines()]
    expected = contents(dist)
    del expected["SHA256SUMS"]
    assert {name: digest for digest, name in lines} == expected
    assert len([name for name in expected if name.endswith(".whl")]) == 6


@pytest.mark.skipif(HELM is None, reason="helm, which packages the chart, is not installed")
def test_packaged_chart_has_the_chart_s_values(dist: Path) -> None:
    (packed,) = dist.glob("remy-farm-*.tgz")
    assert helm("lint", str(packed)).returncode == 0
    with tarfile.open(packed) as archive:
        names = archive.getnames()
        read = archive.extractfile("remy-farm/values.yaml")
        assert read is not None
        assert yaml.safe_load(read.read()) == yaml.safe_load((CHART / "values.yaml").read_text())
    assert names == sorted(names)


def test_wheels_install_without_an_index(dist: Path, tmp_path: Path) -> None:
    """The new environment also sees the libraries of this one, after its own packages."""
    venv.create(tmp_path / "fresh", symlinks=True)
    python = tmp_path / "fresh" / "bin" / "python"
    wheels = sorted(dist.glob("*.whl"))
    offline = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", *offline, *wheels], check=True
    )
    (site,) = (tmp_path / "fresh" / "lib").glob("python3*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")

    where = "import remy_services, remy_workers; print(remy_services.__file__)"
    done = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).is_relative_to(site)
    for program in ("remy-farm", "remy-worker"):
        subprocess.run([python.with_name(program), "--help"], check=True, capture_output=True)
