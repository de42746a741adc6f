import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_proto.v1 import job_pb2
from remy_services.client.watching import GapInHistory, HistoryCursor


def event(revision: int) -> job_pb2.JobEvent:
    return job_pb2.JobEvent(revision=revision)


@given(st.integers(0, 30), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=9))
def test_pieces_from_anywhere_before_give_every_entry_once(
    start: int, pieces: list[tuple[int, int]]
) -> None:
    cursor = HistoryCursor(start)
    seen = []
    for back, length in pieces:
        first = max(1, cursor.revision + 1 - back)
        seen += [n for n in range(first, first + length) if cursor.take(event(n))]
    assert seen == list(range(start + 1, cursor.revision + 1))


def test_a_gap_is_noticed_and_nothing_is_taken() -> None:
    cursor = HistoryCursor(3)
    with pytest.raises(GapInHistory, match=r"entry 5 .* followed entry 3"):
        cursor.take(event(5))
    assert cursor.take(event(4))
