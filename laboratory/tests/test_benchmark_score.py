"""Tests the scores of the search benchmark."""

import math
import statistics

import pytest

import remy_simulator
from library.tests.remycc.tables import REFERENCE, needs_reference
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.remycc import read_remycc
from remy_laboratory.search_benchmark import (
    GROUPS,
    MINIMUM_ON_MS,
    QUOTED,
    Benchmark,
    PublishedScore,
    group_name,
    held_out_request,
    measure_table,
    normalized_scores,
    summarize,
)
from remy_simulator import RuleTable
from remy_simulator.columns import specimen_outcomes, unpack_specimens
from remy_simulator.objective import normalized_sender_scores

TABLE = RuleTable([0, 1, 2], [([], (0.9, 3.0, 3.0))])


def test_normalized_score_weighs_throughput_and_delay_in_bits() -> None:
    request = held_out_request(TABLE, 6)
    outcome = remy_simulator.evaluate_columns(request)
    for specimen, result in zip(
        unpack_specimens(request.specimen_columns),
        specimen_outcomes(request, outcome),
        strict=True,
    ):
        plain = normalized_sender_scores(MINIMUM_ON_MS, specimen, result, request.duration_ms)
        scores = normalized_scores(1.0, specimen, result, request.duration_ms)
        assert scores == pytest.approx(plain, abs=1e-12)
        throughputs = normalized_scores(0.0, specimen, result, request.duration_ms)
        delay_tenth = normalized_scores(0.1, specimen, result, request.duration_ms)
        for score, throughput, weighted in zip(scores, throughputs, delay_tenth, strict=True):
            if score is None or throughput is None:
                assert weighted is None
            else:
                delay = throughput - score
                assert weighted == pytest.approx(throughput - 0.1 * delay)


def test_mean_counts_specimens_and_pooled_mean_counts_senders() -> None:
    score = summarize([[-1.0], [-0.5, None], [-0.2, -0.4, -0.6], [None]])
    assert score.mean is not None
    assert score.mean.count == 3
    assert score.mean.mean == pytest.approx((-1.0 - 0.5 - 0.4) / 3)
    assert score.mean.standard_error == pytest.approx(
        statistics.stdev([-1.0, -0.5, -0.4]) / math.sqrt(3)
    )
    assert score.pooled is not None
    assert score.pooled.count == 5
    assert score.pooled.mean == pytest.approx(-2.7 / 5)
    alone, few, *more = score.groups
    assert alone is not None
    assert (alone.mean, alone.count) == (-1.0, 1)
    assert few is not None
    assert few.mean == pytest.approx(-0.45)
    assert more == [None, None]


def test_pooled_error_accounts_for_senders_of_the_same_specimen() -> None:
    """Ten copies of a sender in each specimen give the same error as one."""
    values = [-0.1, -0.7, -0.3, -0.2]
    single = summarize([[value] for value in values]).pooled
    copied = summarize([[value] * 10 for value in values]).pooled
    assert single is not None
    assert copied is not None
    assert copied.mean == pytest.approx(single.mean)
    assert copied.standard_error == pytest.approx(single.standard_error)
    assert single.standard_error == pytest.approx(statistics.stdev(values) / math.sqrt(4))


def test_summary_of_unscored_specimens_is_none() -> None:
    score = summarize([[None], [None, None]])
    assert (score.mean, score.pooled) == (None, None)


def test_group_names() -> None:
    assert [group_name(group) for group in GROUPS] == ["1", "2-4", "5-9", "10-16"]


@needs_reference
@pytest.mark.parametrize("published", QUOTED[:2], ids=lambda published: published.name)
def test_published_tables_have_the_quoted_scores(published: PublishedScore) -> None:
    """The scores are on fewer and other specimens, so they differ within three standard errors."""
    remycc = read_remycc(REFERENCE / f"RemyCC-{published.name}.dna")
    evaluator = LocalEvaluator(2)
    score = measure_table(remycc.table, evaluator.evaluate, Benchmark(specimens=128))
    evaluator.close()
    assert remycc.table.rule_count == published.rules
    quoted = published.score
    for estimate, expected in ((score.mean, quoted.mean), (score.pooled, quoted.pooled)):
        assert estimate is not None
        assert expected is not None
        assert estimate.standard_error is not None
        assert abs(estimate.mean - expected.mean) < 3 * math.hypot(estimate.standard_error, 0.007)
