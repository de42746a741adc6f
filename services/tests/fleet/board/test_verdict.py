"""What several workers' answers come to."""

from __future__ import annotations

import pytest

from remy_farm.v1 import evaluation_pb2
from remy_services.fleet.board.verdict import Vote, disputed, leading, missing

_OUTCOME = evaluation_pb2.EvaluationOutcome()


def _votes(answers: str) -> dict[str, Vote]:
    """Workers 0, 1, ... that gave these answers; a capital letter is a refusal."""
    return {
        str(number): Vote(answer.encode(), None if answer.isupper() else _OUTCOME)
        for number, answer in enumerate(answers)
    }


@pytest.mark.parametrize(
    ("answers", "wanted", "still_missing"),
    [
        ("", 1, 1),
        ("", 2, 2),
        ("a", 1, 0),
        ("a", 2, 1),
        ("aa", 2, 0),
        # Two that differ want a third, however many were wanted.
        ("ab", 1, 1),
        ("ab", 2, 1),
        ("abb", 1, 0),
        ("abc", 2, 1),
        # A refusal wants to be confirmed.
        ("A", 1, 1),
        ("AA", 1, 0),
        ("Ab", 1, 1),
        ("Abb", 1, 0),
    ],
)
def test_how_many_workers_are_to_be_asked_still(
    answers: str, wanted: int, still_missing: int
) -> None:
    assert missing(_votes(answers), wanted) == still_missing


def test_most_lead() -> None:
    assert leading(_votes("abb")) == ("1", 2)
    assert disputed(_votes("abb"))
    assert not disputed(_votes("bb"))
