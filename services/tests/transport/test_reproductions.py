"""Tests the stored requests of tasks that crashed their workers."""

from __future__ import annotations

from pathlib import Path

from library.tests.evaluation.requests import numbered_request
from remy_farm.evaluation.dispatcher import describe_quarantine
from remy_farm.evaluation.scheduler.records import Quarantine
from remy_proto.v1 import evaluation_pb2
from remy_services.transport.reproductions import reproduction_writer

_QUARANTINE = Quarantine(numbered_request(2, 3), ("one", "three", "two"))


def test_the_request_is_stored_in_a_folder(tmp_path: Path) -> None:
    sentence = describe_quarantine(_QUARANTINE, reproduction_writer(tmp_path / "new folder"))
    (path,) = (tmp_path / "new folder").iterdir()
    assert str(path) in sentence
    assert "killed 3 workers (one, three, two)" in sentence
    stored = evaluation_pb2.EvaluationRequest.FromString(path.read_bytes())
    assert stored == _QUARANTINE.request


def test_the_request_is_stored_under_a_url(tmp_path: Path) -> None:
    sentence = describe_quarantine(
        _QUARANTINE, reproduction_writer(f"file://{tmp_path}/mirror/reproductions")
    )
    (path,) = (tmp_path / "mirror" / "reproductions").iterdir()
    assert sentence.endswith(f"its request is in file://{path}")
    stored = evaluation_pb2.EvaluationRequest.FromString(path.read_bytes())
    assert stored == _QUARANTINE.request


def test_a_write_error_is_added_to_the_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sentence = describe_quarantine(_QUARANTINE, reproduction_writer(tmp_path / "file"))
    assert "killed 3 workers" in sentence
    assert "could not be stored" in sentence


def test_nothing_is_stored_without_a_folder() -> None:
    assert describe_quarantine(_QUARANTINE, None).endswith("was given up")
