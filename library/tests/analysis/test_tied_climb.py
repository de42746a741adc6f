"""Exported copies of a rule climb together."""

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
    """The six, pacing at half of what they should."""
    table = six_scale_free_rules()
    actions = [table.action(rule) for rule in range(table.rule_count)]
    return table.with_actions([actions[0], *((m, b, 2 * r) for m, b, r in actions[1:])])


def _climbed(table: RuleTable, steps: int, seed: int = 1) -> RuleTable:
    return tied_climb(table, _SPEC, 1, 0.5, seed=seed, steps=steps, evaluate=_EVALUATE)


def _score(absolute: RuleTable) -> float:
    found = (
        evaluate_table(_SPEC, absolute, seed=7, specimens=24, evaluate=_EVALUATE).summary().score
    )
    assert found is not None
    return found.mean


def test_a_climb_mends_the_paces_of_all_copies() -> None:
    slow = _slow_rules()
    climbed = _climbed(slow, 12)
    assert _score(exported(climbed, _SPEC, 1)) > _score(exported(slow, _SPEC, 1)) + 0.02
    # Its regions are those of before: only actions move.
    assert [node[0] for node in climbed.nodes()] == [node[0] for node in slow.nodes()]


def test_a_climb_depends_on_its_seed_alone() -> None:
    slow = _slow_rules()
    assert _climbed(slow, 2) == _climbed(slow, 2) != _climbed(slow, 2, seed=2)


def test_without_steps_nothing_moves_and_what_is_exported_is_never_worse_on_its_networks() -> None:
    slow = _slow_rules()
    still, climbed = (
        best_export(slow, _SPEC, 1, seed=7, specimens=24, evaluate=_EVALUATE, climb_steps=steps)
        for steps in (0, 3)
    )
    assert still in [exported(slow, _SPEC, 1, place) for place in (0.5, 0.25, 0.0)]
    assert _score(climbed) >= _score(still)
