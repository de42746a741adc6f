"""Tests that every search keeps the path model of its specification."""

from __future__ import annotations

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_pattern_spec import small_pattern_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer
from remy_farm.designer import checkpoint as sealing
from remy_farm.designer.actions import path_model_of
from remy_farm.designer.splitting import merged, possible_merges
from remy_farm.specification import SpecError, content_digest, parse_spec, to_yaml
from remy_proto.v1 import spec_pb2
from remy_simulator import (
    RuleTable,
    network_signals_fingerprint,
    path_model_fingerprint,
    signals_fingerprint,
)
from remy_simulator.messages import PathModel, native_path_model

_EVALUATE = AnalyticEvaluator(noise=2.0).evaluate
_ALONE = {
    "paper": small_spec(signals="send_ewma, rtt_ratio", epochs_per_split=1, epochs=3),
    "joint": small_joint_spec(starts=3, start_steps=5, steps=14),
    "pattern": small_pattern_spec(steps=30),
}


def _with_path_model(spec: spec_pb2.DesignSpec, text: str) -> spec_pb2.DesignSpec:
    return parse_spec(to_yaml(spec) + f"path_model: {text}\n")


@pytest.mark.parametrize("mode", sorted(_ALONE))
def test_every_table_of_a_design_has_the_path_model(mode: str) -> None:
    spec = _with_path_model(_ALONE[mode], "{loss_window: 0.5}")
    designer = Designer(spec)
    steps = 0
    while (request := designer.next_request()) is not None:
        assert all(table.path_model == spec.path_model for table in request.tables)
        designer.receive(_EVALUATE(request))
        designer = Designer.resume(spec, designer.checkpoint())
        steps += 1
    assert steps > 5
    assert designer.table.rule_count > 1
    assert designer.table.path_model == native_path_model(spec.path_model)
    assert designer.table.path_model.loss_window == 0.5


@pytest.mark.parametrize("mode", sorted(_ALONE))
def test_a_specification_without_the_key_designs_without_path_model(mode: str) -> None:
    designer = Designer(_ALONE[mode])
    request = designer.next_request()
    assert request is not None
    assert not any(table.HasField("path_model") for table in request.tables)
    assert designer.table.path_model is None


def test_a_given_table_gets_the_path_model_of_the_specification() -> None:
    alone = _ALONE["paper"]
    given = RuleTable([2], [([], (0.9, 4.0, 2.0))])
    other = given.with_path_model(PathModel(8.0, 0.25, 3.0, 0.5, 4.0, 20.0, 1.0, 1.5, 1.2))
    spec = _with_path_model(alone, "{}")
    for table in (given, other):
        assert Designer(alone, first_table=table).table.path_model is None
        assert Designer(spec, first_table=table).table.path_model == path_model_of(spec)


def test_a_merge_keeps_the_path_model() -> None:
    model = PathModel(8.0, 0.25, 3.0, 0.5, 4.0, 20.0, 1.0, 1.5, 1.2)
    table = RuleTable([0, 2], [([], (0.9, 4.0, 2.0))], path_model=model)
    table = table.split(0, [(2, 1.5)]).split(1, [(0, 2.0)])
    merges = possible_merges(table)
    assert merges
    assert all(merged(table, merge)[0].path_model == model for merge in merges)


def test_the_checkpoint_names_the_simulator_of_path_models() -> None:
    spec = _with_path_model(_ALONE["joint"], "{}")
    with_model = sealing.unseal(Designer(spec).checkpoint())
    without = sealing.unseal(Designer(_ALONE["joint"]).checkpoint())
    assert with_model.simulator_digest == path_model_fingerprint()
    assert without.simulator_digest != path_model_fingerprint()
    assert with_model.spec_digest != without.spec_digest


def test_only_a_given_key_changes_the_digest_of_a_specification() -> None:
    alone = _ALONE["joint"]
    assert "path_model" not in to_yaml(alone)
    spec = _with_path_model(alone, "{}")
    assert content_digest(spec) != content_digest(alone)
    assert parse_spec(to_yaml(spec)) == spec
    spec.ClearField("path_model")
    assert content_digest(spec) == content_digest(alone)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{base_rtt_rounds: 0}", "path_model.base_rtt_rounds is 0"),
        ("{tolerated_loss: 1}", "path_model.tolerated_loss is 1"),
        ("{loss_window: 0}", "path_model.loss_window is 0"),
        ("{window: 3}", "path_model.window is not a known key"),
    ],
)
def test_constants_out_of_range_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SpecError) as error:
        _with_path_model(_ALONE["joint"], text)
    assert problem in str(error.value)


def test_a_table_of_any_signals_may_have_a_path_model() -> None:
    alone = small_joint_spec(signals="send_ratio, rtt_ratio, loss_rate")
    spec = _with_path_model(alone, "{}")
    table = Designer(spec).table
    assert table.signals == Designer(alone).table.signals
    assert table.path_model == path_model_of(spec)
    digests = {
        sealing.unseal(Designer(each).checkpoint()).simulator_digest
        for each in (alone, spec, _with_path_model(_ALONE["joint"], "{}"))
    }
    assert digests == {
        signals_fingerprint(),
        network_signals_fingerprint(),
        path_model_fingerprint(),
    }
