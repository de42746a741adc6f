import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_proto.v1 import job_pb2
from remy_services.client.watching import HistoryCursor, HistoryGap


def event(revision: int) -> job_pb2.JobEvent:
    return job_pb2.JobEvent(revision=revision)


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=9))
def test_overlapping_pieces_give_every_event_once(
    start: int, pieces: list[tuple[int, int]]
) -> None:
    cursor = HistoryCursor(start)
    seen = []
    for back, length in pieces:
        first = max(1, cursor.revision + 1 - back)
        seen += [n for n in range(first, first + length) if cursor.accept(event(n))]
    assert seen == list(range(start + 1, cursor.revision + 1))


def test_a_gap_raises_and_does_not_advance() -> None:
    cursor = HistoryCursor(3)
    with pytest.raises(HistoryGap, match=r"event 5 .* followed event 3"):
        cursor.accept(event(5))
    assert cursor.accept(event(4))
