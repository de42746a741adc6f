"""Tests trials: the evaluation of a table on networks drawn with a seed."""

import pytest

import remy_simulator
from library.tests.analysis.small_design import FINAL, FIRST, small_gain, small_spec
from remy_farm.evaluation.measures import Trial, estimate, evaluate_table
from remy_simulator import RuleTable


def trial(table: RuleTable, seed: int = 3) -> Trial:
    return evaluate_table(
        small_spec(), table, seed=seed, specimens=10, evaluate=remy_simulator.evaluate_columns
    )


def test_the_same_seed_draws_the_same_networks_for_any_table() -> None:
    first, final = trial(FIRST), trial(FINAL)
    assert [r.specimen for r in first.results] == [r.specimen for r in final.results]
    assert first.digest != final.digest
    assert trial(FIRST).digest == first.digest


def test_other_seeds_draw_other_networks() -> None:
    assert trial(FIRST, 3).results[0].specimen.key != trial(FIRST, 4).results[0].specimen.key


def test_a_trial_counts_the_uses_of_every_rule() -> None:
    result = trial(FINAL)
    assert len(result.rule_uses) == FINAL.rule_count
    # There is a look-up per ACK; ACKs after the end of an on period have none.
    assert sum(result.rule_uses) >= 0.5 * result.packets_received > 0


def test_groups_by_senders_contain_every_specimen_once() -> None:
    groups = trial(FINAL).by_senders()
    assert list(groups) == [1, 2]
    assert sum(group.specimens for group in groups.values()) == 10


def test_specimens_without_a_score_are_left_out_of_the_mean() -> None:
    assert estimate([None, 1.0, None, 3.0]) == estimate([1.0, 3.0])
    assert estimate([None]) is None


def test_the_gain_is_paired() -> None:
    gain = small_gain()
    score, first, final = gain.score(), gain.first.summary().score, gain.final.summary().score
    assert score is not None
    assert first is not None
    assert final is not None
    assert score.mean == pytest.approx(final.mean - first.mean)
    assert score.standard_error != pytest.approx(
        ((first.standard_error or 0) ** 2 + (final.standard_error or 0) ** 2) ** 0.5
    )
