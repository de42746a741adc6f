"""Tests the launcher's settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from remy_services.kubernetes.manifest import ConfigurationError, read_settings

GOOD = """
instance: farm
template: {spec: {template: {spec: {containers: [{name: worker, image: "localhost/worker:1"}]}}}}
minimum_workers: 2
maximum_workers: 4
limits: {maximum_workers: 9, images: ["localhost/*"]}
"""


def test_a_valid_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "workers.yaml"
    path.write_text(GOOD, encoding="utf-8")
    settings = read_settings(path)
    assert (settings.minimum_workers, settings.maximum_workers) == (2, 4)
    assert settings.limits.images == ("localhost/*",)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("minimum_workers: 2", "minimum_workers: 5", "minimum_workers is 5, but must be at most"),
        ("minimum_workers: 2", "minimum_workers: 0", "minimum_workers"),
        ("minimum_workers", "fewest_workers", "fewest_workers"),
        ("containers: [", "things: [", "template must be a Job whose pods have a container"),
        ("instance: farm", "instance: Farm_1", "instance"),
        ("limits: {", "limits: {{", "workers.yaml"),
    ],
)
def test_errors_name_the_setting(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = tmp_path / "workers.yaml"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"workers\.yaml") as caught:
        read_settings(path)
    assert expected in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.yaml"):
        read_settings(tmp_path / "absent.yaml")
