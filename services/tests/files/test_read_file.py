"""A file is read up to a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from remy_services.files import FileError, read_file


def test_a_file_of_the_limit_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    assert read_file(path, limit=5) == b"12345"
    with pytest.raises(FileError) as caught:
        read_file(path, limit=4)
    assert str(caught.value) == f"{path} is too large; at most 4 bytes are allowed"


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(FileError, match="too large"):
        read_file("/dev/zero", limit=1000)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent", "no such file or directory"), ("folder", "is a directory")],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError) as caught:
        read_file(tmp_path / name, limit=10)
    assert str(caught.value) == f"{tmp_path / name}: cannot be read ({reason})"
