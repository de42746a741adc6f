"""What is left of a task that ended its workers."""

from __future__ import annotations

from pathlib import Path

from library.tests.evaluation.requests import numbered_request
from remy_farm.evaluation.dispatcher import describe_quarantine
from remy_farm.evaluation.scheduler.records import Quarantine
from remy_proto.v1 import evaluation_pb2
from remy_services.transport.reproductions import keep_in

_QUARANTINE = Quarantine(numbered_request(2, 3), ("one", "three", "two"))


def test_the_request_is_kept_for_whoever_reproduces_it(tmp_path: Path) -> None:
    sentence = describe_quarantine(_QUARANTINE, keep_in(tmp_path / "new folder"))
    (path,) = (tmp_path / "new folder").iterdir()
    assert str(path) in sentence
    assert "killed 3 workers (one, three, two)" in sentence
    kept = evaluation_pb2.EvaluationRequest.FromString(path.read_bytes())
    assert kept == _QUARANTINE.request


def test_it_may_be_kept_where_the_mirror_is(tmp_path: Path) -> None:
    sentence = describe_quarantine(_QUARANTINE, keep_in(f"file://{tmp_path}/mirror/reproductions"))
    (path,) = (tmp_path / "mirror" / "reproductions").iterdir()
    assert sentence.endswith(f"its request is in file://{path}")
    kept = evaluation_pb2.EvaluationRequest.FromString(path.read_bytes())
    assert kept == _QUARANTINE.request


def test_a_folder_that_cannot_be_written_is_told_and_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sentence = describe_quarantine(_QUARANTINE, keep_in(tmp_path / "file"))
    assert "killed 3 workers" in sentence
    assert "could not be stored" in sentence


def test_without_a_folder_the_sentence_is_all() -> None:
    assert describe_quarantine(_QUARANTINE, None).endswith("was given up")
