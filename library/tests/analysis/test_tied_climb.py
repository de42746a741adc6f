"""Tests the tied climb, which improves all exported copies of a rule together."""

import remy_simulator
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.export import best_export, exported, tied_climb
from remy_farm.evaluation.measures import evaluate_table
from remy_farm.specification import parse_spec
from remy_simulator import RuleTable

_SPEC = parse_spec("""
name: octaves
network: {rate_mbps: {log_uniform: [3, 12]}, rtt_ms: 150, senders: 2,
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}}
search: {simulated_seconds: 5}
""")
_EVALUATE = remy_simulator.evaluate_columns


def _slow_rules() -> RuleTable:
    """Returns the six scale-free rules with half of their pacing rate."""
    table = six_scale_free_rules()
    actions = [table.action(rule) for rule in range(table.rule_count)]
    return table.with_actions([actions[0], *((m, b, 2 * r) for m, b, r in actions[1:])])


def _climbed(table: RuleTable, steps: int, seed: int = 1) -> RuleTable:
    return tied_climb(table, _SPEC, 1, 0.5, seed=seed, steps=steps, evaluate=_EVALUATE)


def _score(absolute: RuleTable) -> float:
    score = (
        evaluate_table(_SPEC, absolute, seed=7, specimens=24, evaluate=_EVALUATE).summary().score
    )
    assert score is not None
    return score.mean


def test_a_climb_improves_the_score_of_the_export() -> None:
    slow = _slow_rules()
    climbed = _climbed(slow, 12)
    assert _score(exported(climbed, _SPEC, 1)) > _score(exported(slow, _SPEC, 1)) + 0.02
    # Only actions change, not regions.
    assert [node[0] for node in climbed.nodes()] == [node[0] for node in slow.nodes()]


def test_a_climb_depends_on_its_seed() -> None:
    slow = _slow_rules()
    assert _climbed(slow, 2) == _climbed(slow, 2) != _climbed(slow, 2, seed=2)


def test_best_export_with_a_climb_is_never_worse_than_without() -> None:
    slow = _slow_rules()
    without, climbed = (
        best_export(slow, _SPEC, 1, seed=7, specimens=24, evaluate=_EVALUATE, climb_steps=steps)
        for steps in (0, 3)
    )
    assert without in [exported(slow, _SPEC, 1, position) for position in (0.5, 0.25, 0.0)]
    assert _score(climbed) >= _score(without)
