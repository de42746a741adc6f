"""Tests path models of tables: their constants, their messages, and their fingerprint."""

from __future__ import annotations

import pytest

import remy_simulator
from remy_proto.completion import complete, constraint_of
from remy_proto.v1 import rule_table_pb2
from remy_simulator import InvalidTable, RuleTable, columns
from remy_simulator.fingerprint import _request_of_network_signals, _request_of_path_model
from remy_simulator.messages import PathModel, from_native, native_path_model, to_native

_RULE: list[tuple[list[tuple[int, float]], tuple[float, float, float]]] = [([], (0.9, 3.0, 1.5))]
_MODEL = PathModel(8.0, 0.25, 3.0, 0.5, 4.0, 20.0, 1.0, 1.5, 1.2)
_FIELDS = list(rule_table_pb2.PathModel.DESCRIPTOR.fields)
_DEFAULTS = native_path_model(complete(rule_table_pb2.PathModel()))


def test_a_table_without_a_path_model_has_the_message_that_it_always_had() -> None:
    table = RuleTable([0], _RULE)
    assert table.path_model is None
    assert table.to_message().hex() == (
        "0a0101121d121b09cdccccccccccec3f11000000000000084019000000000000f83f190000000000000441"
    )


def test_a_message_keeps_the_path_model() -> None:
    table = RuleTable([0], _RULE, path_model=_MODEL)
    message = from_native(table)
    assert {field.name: value for field, value in message.path_model.ListFields()} == (
        _MODEL._asdict()
    )
    assert to_native(message) == table
    assert to_native(message).path_model == _MODEL
    assert table != RuleTable([0], _RULE)
    assert table != table.with_path_model(_MODEL._replace(loss_window=0.75))


def test_constants_that_a_message_leaves_out_have_the_declared_defaults() -> None:
    message = from_native(RuleTable([0], _RULE))
    message.path_model.SetInParent()
    assert to_native(message).path_model == _DEFAULTS
    message.path_model.loss_window = 0.5
    assert to_native(message).path_model == _DEFAULTS._replace(loss_window=0.5)


def test_all_tables_made_from_a_table_keep_its_path_model() -> None:
    table = RuleTable([0, 2], _RULE, path_model=_MODEL)
    split = table.split(0, [(2, 1.5)])
    action = split.action(0)
    for changed in (split, split.with_action(0, action), split.with_actions([action] * 2)):
        assert changed.path_model == _MODEL
    assert table.with_path_model(None) == RuleTable([0, 2], _RULE)
    assert table.with_path_model(None).with_path_model(_MODEL) == table


@pytest.mark.parametrize("field", _FIELDS, ids=lambda field: field.name)
def test_a_table_may_have_the_declared_values_only(field: object) -> None:
    name = field.name  # type: ignore[attr-defined]
    bounds = constraint_of(field)  # type: ignore[arg-type]
    table = RuleTable([0], _RULE)
    wrong = [bounds.minimum - 0.5, bounds.maximum + 0.5, float("nan")]
    if bounds.exclusive_minimum:
        wrong.append(bounds.minimum)
    else:
        table.with_path_model(_MODEL._replace(**{name: bounds.minimum}))
    table.with_path_model(_MODEL._replace(**{name: bounds.maximum}))
    for value in wrong:
        with pytest.raises(InvalidTable, match=rf"^The path model has {name} .*; it must be .*\.$"):
            table.with_path_model(_MODEL._replace(**{name: value}))


def test_the_sentence_names_the_value_and_the_range() -> None:
    table = RuleTable([0], _RULE)
    with pytest.raises(InvalidTable) as error:
        table.with_path_model(_MODEL._replace(base_rtt_rounds=0.5))
    assert str(error.value) == (
        "The path model has base_rtt_rounds 0.5; it must be from 1 to 10000."
    )
    with pytest.raises(InvalidTable) as error:
        table.with_path_model(_MODEL._replace(loss_window=0.0))
    assert str(error.value) == (
        "The path model has loss_window 0; it must be above 0 and at most 1."
    )


def test_a_table_of_any_signals_keeps_its_path_model() -> None:
    table = RuleTable([0, 6], _RULE, path_model=_MODEL)
    assert table.path_model == _MODEL
    assert to_native(from_native(table)) == table


def test_a_network_may_have_a_path_model_beside_other_signals() -> None:
    request = _request_of_path_model(rule_table_pb2.RULES_ABSOLUTE)
    request.tables.append(from_native(RuleTable([6], _RULE)))
    request.specimens[0].senders.add(
        count=1, table=1, traffic=request.specimens[0].senders[0].traffic
    )
    together = columns.evaluate_columns(columns.packed(request))
    request.tables[1].path_model.CopyFrom(request.tables[0].path_model)
    assert columns.evaluate_columns(columns.packed(request)) != together


def test_the_fingerprint_of_path_models_is_not_that_of_the_rules() -> None:
    fingerprints = {
        remy_simulator.path_model_fingerprint(),
        remy_simulator.fingerprint(),
        remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE),
        remy_simulator.signals_fingerprint(),
        remy_simulator.network_signals_fingerprint(),
    }
    assert len(fingerprints) == 5


@pytest.mark.parametrize("rules", list(rule_table_pb2.Rules.values())[1:])
def test_the_fingerprint_of_signals_on_networks_depends_on_each_table(
    rules: rule_table_pb2.Rules,
) -> None:
    request = _request_of_network_signals(rules)
    everything = columns.evaluate_columns(columns.packed(request))
    assert {table.HasField("path_model") for table in request.tables} == {True, False}
    request.tables[1].path_model.CopyFrom(request.tables[0].path_model)
    assert columns.evaluate_columns(columns.packed(request)) != everything
    request.tables[0].ClearField("path_model")
    request.tables[1].ClearField("path_model")
    assert columns.evaluate_columns(columns.packed(request)) != everything


@pytest.mark.parametrize("rules", list(rule_table_pb2.Rules.values())[1:])
def test_the_fingerprint_depends_on_the_path_model(rules: rule_table_pb2.Rules) -> None:
    request = _request_of_path_model(rules)
    with_model = columns.evaluate_columns(columns.packed(request))
    request.tables[0].ClearField("path_model")
    assert columns.evaluate_columns(columns.packed(request)) != with_model


def test_a_replay_has_the_path_model() -> None:
    """At least four packets are in flight, although the rule sets a window of one."""
    rule: list[tuple[list[tuple[int, float]], tuple[float, float, float]]] = [([], (0.0, 1.0, 0.0))]
    columns_of_acks = ([0.0, 1.0, 2.0], [10.0, 11.0, 12.0], [10.0] * 3, [1] * 3)
    alone, limited = (
        RuleTable([0], rule, path_model=model).replay(*columns_of_acks)
        for model in (None, _MODEL._replace(additive_packets=0.0))
    )
    assert alone.windows_packets == [1, 1, 1]
    assert limited.windows_packets == [4, 4, 4]
