"""Tests that files are written atomically: complete, or unchanged after an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remy_farm.files import FileError, write_file

# Writes 1 MiB of A and 1 MiB of B alternately until it is killed.
_ENDLESS_WRITER = """
import sys
from remy_farm.files import write_file
while True:
    for letter in "AB":
        write_file(sys.argv[1], letter * (1 << 20))
"""

# Has a limit of 1 kB for files, which has the effect of a full disk.
_WRITER_WITHOUT_SPACE = """
import resource, sys
from remy_farm.files import FileError, write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(sys.argv[1], "new" * 1000)
except FileError as error:
    print(error)
"""


def test_content_is_written_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "table.json"
    write_file(target, b"\x00\xff")
    assert target.read_bytes() == b"\x00\xff"
    write_file(target, "naïve\n")
    assert target.read_text(encoding="utf-8") == "naïve\n"
    assert _names(tmp_path) == ["table.json"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "table.json", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "table.json").stat().st_mode & 0o777 == 0o640


def test_a_file_with_a_name_of_maximum_length_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    write_file(target, b"content")
    assert target.read_bytes() == b"content"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent/table.json", "no such file or directory"),
        ("file/table.json", "not a directory"),
        ("folder", "is a directory"),
        ("x" * 256, "file name too long"),
    ],
)
def test_a_failed_write_names_the_file_and_leaves_no_other_file(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError) as caught:
        write_file(tmp_path / name, b"content")
    assert str(caught.value) == f"{tmp_path / name}: cannot be written ({reason})"
    assert _names(tmp_path) == ["file", "folder"]


def test_a_full_disk_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    target = tmp_path / "table.json"
    target.write_text("old")
    result = subprocess.run(
        [sys.executable, "-c", _WRITER_WITHOUT_SPACE, target],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == f"{target}: cannot be written (file too large)\n"
    assert target.read_text() == "old"
    assert _names(tmp_path) == ["table.json"]


def test_a_process_killed_while_writing_leaves_a_complete_file(tmp_path: Path) -> None:
    target = tmp_path / "table.json"
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", _ENDLESS_WRITER, target]) as writer:
            while not target.exists():
                time.sleep(0.001)
            time.sleep(0.02)
            writer.send_signal(signal.SIGKILL)
        content = target.read_text()
        assert content in ("A" * (1 << 20), "B" * (1 << 20))
        target.unlink()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
