"""Tests reading files and pipes up to a limit."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remy_farm.files import FileError, read_file


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
def test_the_error_names_the_file_and_the_reason(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError) as caught:
        read_file(tmp_path / name, limit=10)
    assert str(caught.value) == f"{tmp_path / name}: cannot be read ({reason})"


def test_a_pipe_is_read_when_a_writer_opens_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = bytes(range(256)) * 1000
    with ThreadPoolExecutor() as others:
        writer = others.submit(pipe.write_bytes, content)
        assert read_file(pipe, limit=len(content)) == content
        assert writer.result() == len(content)


def test_a_pipe_with_a_slow_writer_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_late() -> None:
        with pipe.open("wb") as file:
            time.sleep(1.5)
            file.write(b"late")

    with ThreadPoolExecutor() as others:
        writer = others.submit(write_late)
        assert read_file(pipe, limit=10) == b"late"
        writer.result()


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileError) as caught:
        read_file(pipe, limit=10)
    assert str(caught.value) == f"{pipe}: cannot be read (a pipe that nobody writes to)"
