"""Tests the network models of the search benchmark."""

from pathlib import Path

from remy_farm.specification import load_spec
from remy_laboratory.search_benchmark import benchmark_spec, held_out_request
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable
from remy_simulator.columns import unpack_specimens

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TABLE = RuleTable([0, 1, 2], [([], (0.9, 3.0, 3.0))])


def specimens_of(request: evaluation_pb2.EvaluationRequest) -> list[evaluation_pb2.Specimen]:
    return unpack_specimens(request.specimen_columns)


def test_benchmark_spec_is_that_of_the_general_purpose_examples() -> None:
    for delta in (0.1, 1, 10):
        example = load_spec(EXAMPLES / f"general-purpose-delta{delta:g}.yaml")
        spec = benchmark_spec(delta)
        assert spec.network == example.network
        assert spec.objective == example.objective


def test_generalist_benchmark_spec_is_that_of_its_example() -> None:
    example = load_spec(EXAMPLES / "generalist.yaml")
    spec = benchmark_spec(1, [("edition", example.edition)], network="generalist")
    spec.name = example.name
    assert spec == example


def test_settings_change_the_specification() -> None:
    spec = benchmark_spec(1, [("search.seed", 4), ("signals", ["rtt_ratio"])])
    assert spec.search.seed == 4
    assert len(spec.signals) == 1


def test_held_out_specimens_are_random_and_the_same_for_every_table() -> None:
    request = held_out_request(TABLE, 64)
    other = held_out_request(TABLE.split(0, [(2, 1.5)]), 64)
    assert request.specimen_columns == other.specimen_columns
    assert request.seed == other.seed
    assert specimens_of(held_out_request(TABLE, 8)) == specimens_of(request)[:8]
    # A stratified sample would have every number of senders exactly four times.
    counts = [specimen.senders[0].count for specimen in specimens_of(request)]
    assert sorted(counts) != sorted([*range(1, 17)] * 4)
    assert set(counts) <= set(range(1, 17))
