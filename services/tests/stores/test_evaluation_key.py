"""A key changes with everything that an outcome depends on, and with nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.v1 import evaluation_pb2, rule_table_pb2
from remy_services.stores.evaluation_key import evaluation_key, request_keys, table_digest


def _table(multiple: float) -> rule_table_pb2.RuleTable:
    return rule_table_pb2.RuleTable(
        signals=[rule_table_pb2.SIGNAL_SEND_EWMA],
        nodes=[rule_table_pb2.Node(action=rule_table_pb2.Action(window_multiple=multiple))],
    )


def _candidate(scale: float) -> evaluation_pb2.Candidate:
    return evaluation_pb2.Candidate(perturbation=evaluation_pb2.Perturbation(seed=3, scale=scale))


PARTS: dict[str, Any] = {
    "simulator_version": "1.2.3",
    "table_digest": table_digest([_table(0.5)]),
    "candidate": _candidate(1.0),
    "specimen": evaluation_pb2.Specimen(key=7, rtt_ms=100.0),
    "duration_ms": 1000.0,
    "seed": 5,
    "recording": evaluation_pb2.RECORDING_USES,
}
OTHERS: dict[str, list[Any]] = {
    "simulator_version": ["1.2.4", "1.2.30", ""],
    "table_digest": [table_digest([_table(0.25)]), table_digest([])],
    "candidate": [_candidate(-1.0), evaluation_pb2.Candidate()],
    "specimen": [
        evaluation_pb2.Specimen(key=8, rtt_ms=100.0),
        evaluation_pb2.Specimen(key=7, rtt_ms=100.00000000000001),
        evaluation_pb2.Specimen(key=7, rtt_ms=100.0, buffer_packets=0),
    ],
    "duration_ms": [1000.0000000000001, 0.0],
    "seed": [6, 2**64 - 1],
    "recording": [evaluation_pb2.RECORDING_UNSPECIFIED, evaluation_pb2.RECORDING_MEMORY],
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_counts(part: str) -> None:
    keys = {evaluation_key(**PARTS)} | {
        evaluation_key(**PARTS | {part: other}) for other in OTHERS[part]
    }

    assert len(keys) == 1 + len(OTHERS[part])
    assert all(len(key) == 32 for key in keys)


def test_equal_parts_have_one_key() -> None:
    copies = {
        name: type(part).FromString(part.SerializeToString())
        if hasattr(part, "SerializeToString")
        else part
        for name, part in PARTS.items()
    }

    assert evaluation_key(**copies) == evaluation_key(**PARTS)


def test_all_tables_count_in_their_order() -> None:
    one, two = _table(1.0), _table(2.0)

    assert len({table_digest(each) for each in ([one], [one, two], [two, one], [one, one])}) == 4


def test_what_is_known_stays_known() -> None:
    expected = "2c099634e68f625e8f4ef98aed5cb6041e8d50714fa1880d7bd1dac4f3e33359"

    assert evaluation_key(**PARTS).hex() == expected


@given(
    candidates=st.lists(st.floats(allow_nan=False), max_size=4),
    specimens=st.lists(st.integers(0, 2**64 - 1), max_size=4),
)
def test_a_requests_keys_are_those_of_its_parts(
    candidates: list[float], specimens: list[int]
) -> None:
    request = evaluation_pb2.EvaluationRequest(
        tables=[_table(0.5)],
        candidates=[_candidate(scale) for scale in candidates],
        specimens=[evaluation_pb2.Specimen(key=key) for key in specimens],
        duration_ms=1000.0,
        seed=5,
        recording=evaluation_pb2.RECORDING_USES,
    )

    assert request_keys("1.2.3", request) == [
        evaluation_key(**PARTS | {"candidate": candidate, "specimen": specimen})
        for candidate in request.candidates
        for specimen in request.specimens
    ]
