"""Requests and outcomes as columns: the same bits as objects, for all slices."""

from __future__ import annotations

import itertools
import math
import random
from array import array
from collections.abc import Iterator
from typing import Any

import pytest

import remy_simulator
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator import columns
from remy_simulator.columns import Slice
from remy_simulator.fingerprint import _request_of_signals
from remy_simulator.messages import AXES
from remy_simulator.objective import specimen_score

_BOUNDS = evaluation_pb2.ActionBounds(
    window_multiple_maximum=1.0,
    window_increment_maximum=256.0,
    intersend_minimum_ms=0.25,
    intersend_maximum_ms=100.0,
)
_OBJECTIVE = spec_pb2.Objective(
    alpha=1, beta=1, delta=1, throughput=spec_pb2.THROUGHPUT_MEASURE_EQUAL_SHARE, minimum_on_ms=100
)
_RECORDINGS = (
    evaluation_pb2.RECORDING_UNSPECIFIED,
    evaluation_pb2.RECORDING_USES,
    evaluation_pb2.RECORDING_MEMORY,
    evaluation_pb2.RECORDING_USED,
    evaluation_pb2.RECORDING_SHARES,
)


def _table(divisions: int) -> rule_table_pb2.RuleTable:
    """Makes a table with 15 more rules per split."""
    table = remy_simulator.RuleTable([0, 1, 2, 3], [([], (0.9, 2.0, 1.0))])
    for division in range(divisions):
        rule = table.rule_count // 2
        lower, upper = table.region(rule)
        middles = [
            (axis, lower[axis] + min((upper[axis] - lower[axis]) / 2, 1.0 + division))
            for axis in range(4)
        ]
        table = table.split(rule, middles)
    return rule_table_pb2.RuleTable.FromString(table.to_message())


def _specimen(draws: random.Random) -> evaluation_pb2.Specimen:
    """Makes a specimen of one of a few kinds; some have a finite buffer, some have loss."""
    specimen = evaluation_pb2.Specimen(
        key=draws.getrandbits(64),
        link_rate_packets_per_ms=draws.uniform(0.3, 3.0),
        rtt_ms=draws.uniform(20.0, 200.0),
        senders=[
            evaluation_pb2.SenderGroup(
                count=draws.randint(1, 4),
                traffic=evaluation_pb2.Traffic(
                    exponential_time={"mean_ms": 500.0}, mean_off_ms=draws.choice([200.0, 400.0])
                ),
            )
        ],
    )
    if draws.random() < 0.5:
        specimen.buffer_packets = draws.randint(0, 40)
    if draws.random() < 0.3:
        specimen.loss_probability = 0.01
    if draws.random() < 0.3:
        specimen.senders.add(
            count=1,
            traffic=evaluation_pb2.Traffic(
                exponential_bytes={"mean_bytes": 50e3}, mean_off_ms=100.0
            ),
        )
        specimen.measurement.timestamp_resolution_ms = 1.0
        specimen.measurement.log_normal_jitter.median_ms = 0.1
        specimen.measurement.log_normal_jitter.percentile_99_ms = 0.4
        specimen.measurement.bunch_packets = 2
        specimen.measurement.delayed_ack_ms = 5.0
    return specimen


def _request(
    recording: evaluation_pb2.Recording, specimens: int = 5, divisions: int = 1
) -> evaluation_pb2.EvaluationRequest:
    """Makes a request with an antithetic pair and one change, on specimens from a fixed seed."""
    draws = random.Random(1984)
    candidates = [
        evaluation_pb2.Candidate(perturbation={"scale": 0.2}),
        evaluation_pb2.Candidate(perturbation={"scale": -0.2}),
        evaluation_pb2.Candidate(
            actions={
                "changes": [
                    {
                        "rule": 1,
                        "action": {
                            "window_multiple": 0.5,
                            "window_increment": 3.0,
                            "intersend_ms": 2.0,
                        },
                    }
                ]
            }
        ),
    ]
    return evaluation_pb2.EvaluationRequest(
        tables=[_table(divisions)],
        candidates=candidates,
        specimens=[_specimen(draws) for _ in range(specimens)],
        duration_ms=3000.0,
        seed=42,
        recording=recording,
        bounds=_BOUNDS,
    )


def _scored(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
    scored = evaluation_pb2.EvaluationRequest(objective=_OBJECTIVE)
    scored.MergeFrom(request)
    return columns.packed(scored)


def _requests() -> Iterator[evaluation_pb2.EvaluationRequest]:
    for recording in _RECORDINGS:
        request = _request(recording)
        yield columns.packed(request)
        yield _scored(request)
    yield columns.packed(_distributed())


def _distributed(specimens: int = 5) -> evaluation_pb2.EvaluationRequest:
    request = _request(evaluation_pb2.RECORDING_USES, specimens)
    request.distributions = True
    return request


def _serialized(message: evaluation_pb2.EvaluationOutcome) -> bytes:
    return message.SerializeToString(deterministic=True)


def test_specimens_round_trip_through_columns() -> None:
    specimens = list(_request(evaluation_pb2.RECORDING_USED, specimens=40).specimens)
    packed = columns.pack_specimens(specimens)
    assert columns.unpack_specimens(packed) == specimens
    assert len(packed.kinds) <= 4
    assert columns.unpack_specimens(columns.pack_specimens(specimens[:1])) == specimens[:1]
    assert columns.unpack_specimens(columns.pack_specimens([])) == []


def test_specimens_may_be_given_as_messages() -> None:
    request = _request(evaluation_pb2.RECORDING_USES)
    assert remy_simulator.evaluate_columns(request) == remy_simulator.evaluate_columns(
        columns.packed(request)
    )


@pytest.mark.parametrize("request_", list(_requests()))
def test_parts_in_any_order_make_the_whole(request_: evaluation_pb2.EvaluationRequest) -> None:
    whole = remy_simulator.evaluate_columns(request_, threads=3)
    columns.check(request_, whole)
    shared = columns.shared_part(request_)
    prepared = columns.PreparedRequest(shared)
    draws = random.Random(7)
    for height, width in itertools.product((1, 2, 3), (1, 2, 5)):
        parts = [
            Slice(range(row, min(row + height, 3)), range(first, min(first + width, 5)))
            for row in range(0, 3, height)
            for first in range(0, 5, width)
        ]
        draws.shuffle(parts)
        outcomes = []
        for part in parts:
            piece = columns.slice_request(request_, part)
            outcome = prepared.evaluate(piece)
            columns.check(request_, outcome, part=part)
            outcomes.append((part, outcome))
        assert _serialized(columns.assemble(request_, outcomes)) == _serialized(whole)
        with pytest.raises(ValueError, match="do not cover the request's 15 simulations once"):
            columns.assemble(request_, outcomes[1:])
    everything = Slice(range(3), range(5))
    with pytest.raises(ValueError, match="do not cover"):
        columns.assemble(request_, [(everything, whole)] * 2)


@pytest.mark.parametrize("request_", list(_requests()))
def test_a_request_is_its_shared_part_and_a_slice(
    request_: evaluation_pb2.EvaluationRequest,
) -> None:
    shared = columns.shared_part(request_).SerializeToString()
    piece = columns.slice_request(request_, columns.whole(request_)).SerializeToString()
    assert evaluation_pb2.EvaluationRequest.FromString(shared + piece) == request_


def test_scores_equal_those_computed_from_results() -> None:
    """Bit by bit, and equal to the correctly rounded mean of math.fsum."""
    request = _request(evaluation_pb2.RECORDING_UNSPECIFIED, specimens=30)
    results = columns.specimen_outcomes(request, remy_simulator.evaluate_columns(request))
    scored = _scored(request)
    rows = columns.score_rows(scored, remy_simulator.evaluate_columns(scored))
    expected = [
        specimen_score(_OBJECTIVE, request.specimens[number % 30], result, request.duration_ms)
        for number, result in enumerate(results)
    ]
    assert [score for row in rows for score in row] == expected
    assert [len(row) for row in rows] == [30, 30, 30]


def test_a_network_on_which_no_sender_was_on_has_no_score() -> None:
    request = _request(evaluation_pb2.RECORDING_UNSPECIFIED, specimens=1)
    request.specimens[0].senders[0].traffic.mean_off_ms = 1e9
    del request.specimens[0].senders[1:]
    scored = _scored(request)
    outcome = remy_simulator.evaluate_columns(scored)
    columns.check(scored, outcome)
    assert columns.score_rows(scored, outcome) == [[None], [None], [None]]


def _alone(
    request: evaluation_pb2.EvaluationRequest, candidate: int, specimen: int
) -> evaluation_pb2.EvaluationOutcome:
    """Returns the outcome of one simulation of a packed request."""
    one = Slice(range(candidate, candidate + 1), range(specimen, specimen + 1))
    return columns.PreparedRequest(request).evaluate(columns.slice_request(request, one))


def test_used_rules_are_those_with_uses() -> None:
    """On each specimen, by any of the candidates."""
    request = _request(evaluation_pb2.RECORDING_USED)
    outcome = remy_simulator.evaluate_columns(_scored(request))
    counted = columns.packed(_request(evaluation_pb2.RECORDING_USES))
    uses = [
        [_alone(counted, candidate, specimen).rule_uses for specimen in range(5)]
        for candidate in range(3)
    ]
    rules = columns.rule_count(request.tables[0])
    width = (rules + 7) // 8
    for specimen in range(5):
        mask = int.from_bytes(
            outcome.used_rules[specimen * width : (specimen + 1) * width], "little"
        )
        assert [bool(mask >> rule & 1) for rule in range(rules)] == [
            any(uses[candidate][specimen][rule] for candidate in range(3)) for rule in range(rules)
        ]


def test_every_simulation_has_the_same_share_of_the_uses() -> None:
    """Regardless of the packets that its link transmits. Medians have the weights of uses."""
    request = _request(evaluation_pb2.RECORDING_SHARES)
    request.specimens[0].link_rate_packets_per_ms = 30.0
    shares = remy_simulator.evaluate_columns(_scored(request))
    objects = _request(evaluation_pb2.RECORDING_USES)
    objects.specimens[0].link_rate_packets_per_ms = 30.0
    counted = columns.packed(objects)
    uses = [
        list(_alone(counted, candidate, specimen).rule_uses)
        for candidate in range(3)
        for specimen in range(5)
    ]
    assert max(map(sum, uses)) > 5 * min(map(sum, uses))
    weights = [2**36 // sum(each) for each in uses]
    expected = [
        sum(each[rule] * weight for each, weight in zip(uses, weights, strict=True))
        for rule in range(len(uses[0]))
    ]
    assert list(shares.rule_uses) == expected
    by_rule = [0] * len(expected)
    for (rule, axis), (_, counts) in columns.memory_summaries(shares).items():
        by_rule[rule] += sum(counts) if axis == 2 else 0
    assert by_rule == expected


def test_an_antithetic_pair_needs_few_bytes_on_the_wire() -> None:
    """In both directions, after table, bounds and objective were sent; for 16 pairs and for one."""
    for pairs in (16, 1):
        request = _request(evaluation_pb2.RECORDING_USED, specimens=pairs, divisions=13)
        assert columns.rule_count(request.tables[0]) == 196
        del request.candidates[2]
        scored = _scored(request)
        there = columns.slice_request(scored, columns.whole(scored)).ByteSize()
        back = remy_simulator.evaluate_columns(scored).ByteSize()
        assert (there + back) / pairs <= 150


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("packets_sent", [1, 2], "counts the packets of 2 simulations"),
        ("scores", b"", "holds 0 bytes of scores"),
        ("scores", b"\x00\x00\x00\x00\x00\x00\xf0\x7f" * 15, "scored inf"),
        ("used_rules", b"", "0 bytes of used rules"),
        ("used_rules", b"\xff" * 10, None),
        ("rule_uses", [3], "counts the uses of 1 rules, not of 0"),
    ],
)
def test_impossible_scores_are_refused(field: Any, value: Any, sentence: str | None) -> None:
    request = _scored(_request(evaluation_pb2.RECORDING_USED))
    outcome = remy_simulator.evaluate_columns(request)
    outcome.ClearField(field)
    outcome.MergeFrom(evaluation_pb2.EvaluationOutcome(**{field: value}))
    if sentence is None:
        columns.check(request, outcome)
        return
    with pytest.raises(columns.ImpossibleOutcome, match=sentence):
        columns.check(request, outcome)


def test_impossible_results_are_refused() -> None:
    request = columns.packed(_request(evaluation_pb2.RECORDING_MEMORY))
    intact = remy_simulator.evaluate_columns(request)

    def refusal(name: Any, value: Any) -> str:
        outcome = evaluation_pb2.EvaluationOutcome()
        outcome.CopyFrom(intact)
        outcome.senders.ClearField(name)
        outcome.senders.MergeFrom(evaluation_pb2.SenderColumns(**{name: value}))
        with pytest.raises(columns.ImpossibleOutcome) as caught:
            columns.check(request, outcome)
        return str(caught.value)

    columns.check(request, intact)
    senders = intact.senders
    count = len(senders.packets_sent)
    assert "one entry for each" in refusal("on_ms", senders.on_ms[:-8])
    assert "one entry for each" in refusal("on_ms", senders.on_ms[:-1])
    assert "one entry for each" in refusal("packets_lost", [0])
    assert "received than sent" in refusal("packets_received", [2**40] * count)
    assert "lost than sent" in refusal("packets_lost", [2**40] * count)
    assert "and its senders" in refusal("packets_sent", [2**40] * count)
    for name in ("on_ms", "share_ms", "delay_sum_ms", "first_on_ms"):
        negative = b"\x00\x00\x00\x00\x00\x00\xf0\xbf" * count
        assert "between 0 and what is possible" in refusal(name, negative)
        assert "between 0 and what is possible" in refusal(name, b"\xff" * 8 * count)
    assert "larger share" in refusal("on_ms", bytes(8 * count))

    changed = evaluation_pb2.EvaluationOutcome()
    changed.CopyFrom(intact)
    changed.memory.places[-1] += 10**9
    with pytest.raises(columns.ImpossibleOutcome, match="scale"):
        columns.check(request, changed)


def test_distributions_change_no_result() -> None:
    request = columns.packed(_distributed(20))
    outcome = remy_simulator.evaluate_columns(request)
    without = columns.packed(_request(evaluation_pb2.RECORDING_USES, 20))
    expected = remy_simulator.evaluate_columns(without)
    assert columns.digest(request, outcome) == columns.digest(without, expected)
    transport = outcome.senders.transport
    assert sum(transport.rtt_histogram_counts) == sum(outcome.senders.packets_received)
    assert sum(transport.flows) > 0
    outcome.senders.ClearField("transport")
    assert outcome == expected


@pytest.mark.parametrize("rules", [rule_table_pb2.RULES_ABSOLUTE, rule_table_pb2.RULES_SCALE_FREE])
def test_distributions_change_no_digest_of_tables_with_more_signals(
    rules: rule_table_pb2.Rules,
) -> None:
    """They run on the dumbbell also where the queue marks packets."""
    without = columns.packed(_request_of_signals(rules, evaluation_pb2.RECORDING_USES))
    request = evaluation_pb2.EvaluationRequest(distributions=True)
    request.MergeFrom(without)
    outcome, expected = map(remy_simulator.evaluate_columns, (request, without))
    columns.check(request, outcome)
    assert columns.digest(request, outcome) == columns.digest(without, expected)


def test_distributions_of_the_general_network_are_those_of_the_dumbbell() -> None:
    """A recording simulates a plain specimen on the general network."""
    request = _distributed(20)
    del request.candidates[:]
    request.candidates.add()
    for specimen in request.specimens:
        alone = evaluation_pb2.EvaluationRequest()
        alone.CopyFrom(request)
        del alone.specimens[:]
        alone.specimens.add().CopyFrom(specimen)
        found = columns.recorded_outcome(alone, columns.record(alone, 100.0)).senders.transport
        expected = remy_simulator.evaluate_columns(alone).senders.transport
        for name in ("rtt_histogram_sizes", "rtt_histogram_buckets", "rtt_histogram_counts"):
            assert getattr(found, name) == getattr(expected, name)
        assert found.completion_ms == expected.completion_ms
        assert found.flow_packets == expected.flow_packets


def test_impossible_histograms_are_refused() -> None:
    request = columns.packed(_distributed())
    intact = remy_simulator.evaluate_columns(request)
    columns.check(request, intact)

    def refusal(name: str, values: list[int]) -> str:
        outcome = evaluation_pb2.EvaluationOutcome()
        outcome.CopyFrom(intact)
        getattr(outcome.senders.transport, name)[:] = values
        with pytest.raises(columns.ImpossibleOutcome) as caught:
            columns.check(request, outcome)
        return str(caught.value)

    transport = intact.senders.transport
    buckets, counts = transport.rtt_histogram_buckets, transport.rtt_histogram_counts
    assert "not those of its senders" in refusal("rtt_histogram_sizes", [])
    assert "not those of its senders" in refusal("rtt_histogram_counts", [*counts[1:]])
    assert "count each sample once" in refusal(
        "rtt_histogram_counts", [2 * each for each in counts]
    )
    assert "count each sample once" in refusal("rtt_histogram_buckets", [*reversed(buckets)])
    beyond = [*buckets[:-1], (1 << 20) - 1]
    assert "count each sample once" in refusal("rtt_histogram_buckets", beyond)


def test_distributions_with_memory_are_refused() -> None:
    request = _request(evaluation_pb2.RECORDING_MEMORY)
    request.distributions = True
    with pytest.raises(remy_simulator.InvalidRequest, match="together with memory"):
        remy_simulator.evaluate_columns(request)


def test_columns_that_do_not_fit_are_refused() -> None:
    def refusal(**change: Any) -> str:
        request = columns.packed(_request(evaluation_pb2.RECORDING_UNSPECIFIED))
        for name, value in change.items():
            request.specimen_columns.ClearField(name)
            request.specimen_columns.MergeFrom(evaluation_pb2.SpecimenColumns(**{name: value}))
        with pytest.raises(remy_simulator.InvalidRequest) as caught:
            remy_simulator.evaluate_columns(request)
        return str(caught.value)

    packed = columns.packed(_request(evaluation_pb2.RECORDING_UNSPECIFIED))
    groups = len(packed.specimen_columns.sender_counts)
    assert "not a multiple of 8" in refusal(keys=b"123")
    assert "differ in length" in refusal(rtts_ms=b"12345678")
    assert "kind 9" in refusal(kind=[9] * 5)
    assert "fewer sender counts" in refusal(sender_counts=[1])
    assert "more sender counts" in refusal(sender_counts=[1] * 20)
    assert "larger than 4294967295" in refusal(buffers=[2**40] * 5)
    assert "1 to 16383" in refusal(sender_counts=[2**20] * groups)


def _doubles(numbers: list[float]) -> bytes:
    return array("d", numbers).tobytes()


def _slow_moments(
    seed: int,
    keys: list[int],
    sizes: list[float],
    used: list[list[bool]],
    ranges: list[tuple[int, int]],
) -> tuple[list[list[float]], list[list[float]], list[list[float]], list[list[float]]]:
    """Computes the gradient's moments by definition, with floating-point sums in the same order."""
    rules = len(used[0])
    totals = {"rules": [[0.0] * 3 for _ in range(rules)], "ranges": [[0.0] * 3 for _ in ranges]}
    squares = {"rules": [[0.0] * 3 for _ in range(rules)], "ranges": [[0.0] * 3 for _ in ranges]}
    count = 0
    for key, size, mask in zip(keys, sizes, used, strict=True):
        if math.isnan(size):
            continue
        count += 1
        noise = remy_simulator.perturbation_noise(seed, key, rules)
        sample = [
            [noise[3 * rule + axis] * size * float(mask[rule]) for axis in range(3)]
            for rule in range(rules)
        ]
        before = [[0.0] * 3]
        for row in sample:
            before.append([total + value for total, value in zip(before[-1], row, strict=True)])
        sums = [
            [before[behind][axis] - before[first][axis] for axis in range(3)]
            for first, behind in ranges
        ]
        for name, rows in (("rules", sample), ("ranges", sums)):
            for place, row in enumerate(rows):
                for axis, value in enumerate(row):
                    totals[name][place][axis] += value
                    squares[name][place][axis] += value * value
    count = max(count, 1)

    def over(rows: list[list[float]], divisor: int) -> list[list[float]]:
        return [[value / divisor for value in row] for row in rows]

    return (
        over(totals["rules"], count),
        over(squares["rules"], count * count),
        over(totals["ranges"], count),
        over(squares["ranges"], count * count),
    )


def _moment_columns(moments: Any) -> list[bytes]:
    return [
        column
        for each in (moments.by_rule, moments.by_range)
        for column in (each.mean, each.squares)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_gradient_moments_match_the_definition(seed: int) -> None:
    draws = random.Random(seed)
    rules, specimens = draws.randint(1, 70), draws.randint(0, 9)
    keys = [draws.getrandbits(64) for _ in range(specimens)]
    sizes = [draws.choice([math.nan, draws.gauss(0.0, 3.0)]) for _ in range(specimens)]
    used = [[draws.random() < 0.6 for _ in range(rules)] for _ in range(specimens)]
    ends = [sorted(draws.choices(range(rules + 1), k=2)) for _ in range(12)]
    ranges = [(first, behind) for first, behind in ends]
    masks = b"".join(
        sum(is_used << rule for rule, is_used in enumerate(mask)).to_bytes(
            (rules + 7) // 8, "little"
        )
        for mask in used
    )
    found = columns.gradient_moments(
        seed,
        b"".join(key.to_bytes(8, "little") for key in keys),
        _doubles(sizes),
        masks,
        rules,
        ranges,
    )
    if not specimens:
        used = [[False] * rules]
        keys, sizes = [0], [math.nan]
    expected = _slow_moments(seed, keys, sizes, used, ranges)
    for column, rows in zip(_moment_columns(found), expected, strict=True):
        assert list(memoryview(column).cast("d")) == [value for row in rows for value in row]


def test_a_gradient_has_the_same_bits_with_any_number_of_threads() -> None:
    draws = random.Random(5)
    rules, specimens = 13, 5_000
    keys = draws.randbytes(8 * specimens)
    sizes = _doubles([draws.choice([math.nan, draws.gauss(0.0, 3.0)]) for _ in range(specimens)])
    used = draws.randbytes(2 * specimens)
    ranges = [(0, rules), (2, 7), (2, 4)]
    one, *others = (
        _moment_columns(columns.gradient_moments(3, keys, sizes, used, rules, ranges, threads))
        for threads in (1, 2, 3, 64)
    )
    assert others == [one] * 3
    # The specimens with a sample come in order, block after block.
    by_hand = [[0.0] * 3 for _ in range(rules)]
    names, masks = memoryview(keys).cast("Q"), memoryview(used).cast("H")
    for key, size, mask in zip(names, memoryview(sizes).cast("d"), masks, strict=True):
        if not math.isnan(size):
            noise = remy_simulator.perturbation_noise(3, key, rules)
            for rule in range(rules):
                for axis in range(3):
                    by_hand[rule][axis] += noise[3 * rule + axis] * size * (mask >> rule & 1)
    count = sum(not math.isnan(size) for size in memoryview(sizes).cast("d"))
    assert list(memoryview(one[0]).cast("d")) == [total / count for row in by_hand for total in row]


def test_gradient_moments_reject_columns_of_different_lengths() -> None:
    with pytest.raises(ValueError, match="a mask of"):
        columns.gradient_moments(1, bytes(8), _doubles([1.0]), b"", 3, [])
    with pytest.raises(ValueError, match="lie within the"):
        columns.gradient_moments(1, bytes(8), _doubles([1.0]), b"\x07", 3, [(0, 4)])


def test_sums_are_rounded_once() -> None:
    draws = random.Random(5)
    special = (0.0, -0.0, 1.0, -1.0, 2.0**-53, 1e16, 1e-300)
    for _ in range(3000):
        values = [
            draws.choice((*special, draws.gauss(0.0, 1.0) * 10.0 ** draws.randint(-20, 20)))
            for _ in range(draws.randint(0, 9))
        ]
        values += [-value for value in values if draws.random() < 0.3]
        assert remy_simulator.exact_sum(values) == math.fsum(values)


@pytest.mark.parametrize("rules", [rule_table_pb2.RULES_ABSOLUTE, rule_table_pb2.RULES_SCALE_FREE])
def test_memory_of_extended_signals_is_reported_by_rule_and_axis(
    rules: rule_table_pb2.Rules,
) -> None:
    request = _request_of_signals(rules, evaluation_pb2.RECORDING_MEMORY)
    outcome = columns.evaluate_columns(columns.packed(request))
    summaries = columns.memory_summaries(outcome)
    assert {(rule, axis): sum(counts) for (rule, axis), (_, counts) in summaries.items()} == {
        (rule, axis): uses for rule, uses in enumerate(outcome.rule_uses) for axis in range(AXES)
    }
