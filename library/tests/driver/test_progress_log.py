"""Tests progress.jsonl after crashes and resumes."""

from pathlib import Path

import pytest

from remy_farm.designer.budgets import Elapsed
from remy_farm.driver.progress import ProgressLog, read_events, to_line
from remy_farm.files import FileError
from remy_proto.v1 import progress_pb2


def _event(sequence: int) -> progress_pb2.ProgressEvent:
    return progress_pb2.ProgressEvent(
        sequence=sequence,
        step=0,
        epoch=0,
        wall_seconds=float(sequence),
        cpu_seconds=2.0 * sequence,
        rule_chosen=progress_pb2.RuleChosen(rule=sequence, uses=0, uses_of_all_rules=0),
    )


def _events(first: int, last: int) -> list[progress_pb2.ProgressEvent]:
    return [_event(sequence) for sequence in range(first, last + 1)]


def _write(path: Path, first: int, last: int) -> None:
    log = ProgressLog(path, first - 1)
    log.append(_events(first, last))
    log.sync()
    log.close()


def test_a_resume_replaces_lines_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    _write(path, 1, 9)

    _write(path, 6, 12)

    assert list(read_events(path)) == _events(1, 12)


def test_elapsed_time_is_that_of_the_last_remaining_line(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    _write(path, 1, 9)

    log = ProgressLog(path, 5)
    log.close()

    assert log.elapsed == Elapsed(wall_seconds=5, cpu_seconds=10)
    assert ProgressLog(tmp_path / "new.jsonl", 0).elapsed == Elapsed(0, 0)


@pytest.mark.parametrize("kept", range(0, 200, 7))
def test_an_incomplete_last_line_is_dropped(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "progress.jsonl"
    _write(path, 1, 3)
    incomplete = to_line(_event(4)).encode()[:kept]
    path.write_bytes(path.read_bytes() + incomplete)

    _write(path, 4, 5)

    assert list(read_events(path)) == _events(1, 5)


def test_a_new_design_starts_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text("left over")

    _write(path, 1, 2)

    assert list(read_events(path)) == _events(1, 2)


def test_a_file_that_ends_before_the_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    _write(path, 1, 3)

    with pytest.raises(FileError, match=r"progress\.jsonl ends before event 4.*remove it"):
        ProgressLog(path, 4)

    assert list(read_events(path)) == _events(1, 3)


def test_a_removed_file_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"

    _write(path, 5, 6)

    assert list(read_events(path)) == _events(5, 6)


def test_a_damaged_line_before_the_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    _write(path, 1, 3)
    path.write_bytes(b"noise\n" + path.read_bytes())

    with pytest.raises(FileError, match=r"progress\.jsonl: line 1 is not a progress event"):
        ProgressLog(path, 3)


def test_errors_name_the_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"tmp.*: cannot be written \(is a directory\)"):
        ProgressLog(tmp_path, 0)
    with pytest.raises(FileError, match=r"none\.jsonl: cannot be read \(no such file"):
        list(read_events(tmp_path / "none.jsonl"))


def test_a_full_disk_is_an_error() -> None:
    log = ProgressLog(Path("/dev/full"), 0)
    with pytest.raises(FileError, match=r"/dev/full: cannot be written \(no space left on device"):
        log.append(_events(1, 1))
    log.close()
