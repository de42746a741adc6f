"""Changes of a table's actions as candidates of an evaluation."""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import action_message, action_tuple


def action_change(rule: int, action: Action) -> evaluation_pb2.ActionChange:
    """One rule's new action."""
    return evaluation_pb2.ActionChange(rule=rule, action=action_message(action))


def unchanged() -> evaluation_pb2.Candidate:
    """The table as it is."""
    return evaluation_pb2.Candidate()


def one_rule(rule: int, action: Action) -> evaluation_pb2.Candidate:
    """The table with another action for one rule."""
    return several_rules(evaluation_pb2.ActionChanges(changes=[action_change(rule, action)]))


def several_rules(changes: evaluation_pb2.ActionChanges) -> evaluation_pb2.Candidate:
    """The table with other actions for several rules."""
    return evaluation_pb2.Candidate(actions=changes)


def differences(before: RuleTable, after: RuleTable) -> evaluation_pb2.ActionChanges:
    """What turns `before` into `after`, a table of the same structure, by increasing rule."""
    return evaluation_pb2.ActionChanges(
        changes=[
            action_change(rule, after.action(rule))
            for rule in range(before.rule_count)
            if before.action(rule) != after.action(rule)
        ]
    )


def apply(table: RuleTable, changes: evaluation_pb2.ActionChanges) -> RuleTable:
    """The table with all changes made."""
    for change in changes.changes:
        table = table.with_action(change.rule, action_tuple(change.action))
    return table
