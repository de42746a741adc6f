"""Tests designs with a given first table, for every search."""

import pytest

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.recorded_design import table_bytes
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_pattern_spec import small_pattern_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import CheckpointError, Designer, DesignerError
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable

_EVALUATE = AnalyticEvaluator(noise=2.0).evaluate
_NODE = (0.0, 0.0, 0.0)
#: Split on rtt_ratio, the last signal of all the specifications.
_GIVEN = RuleTable([0, 2], [([(2, 1.5)], _NODE), ([], (0.9, 4.0, 2.0)), ([], (0.5, 8.0, 3.0))])

_SPECS = {
    "paper": small_spec(signals="send_ewma, rtt_ratio", epochs_per_split=1, epochs=3),
    "joint": small_joint_spec(starts=3, start_steps=5, steps=14),
    "pattern": small_pattern_spec(steps=30),
}


@pytest.fixture(params=sorted(_SPECS))
def spec(request: pytest.FixtureRequest) -> spec_pb2.DesignSpec:
    return _SPECS[request.param]


def _finish(designer: Designer) -> Designer:
    while (request := designer.next_request()) is not None:
        designer.receive(_EVALUATE(request))
    return designer


def test_the_first_step_works_on_the_given_table(spec: spec_pb2.DesignSpec) -> None:
    designer = Designer(spec, first_table=_GIVEN)

    assert designer.table.rule_count == 2
    request = designer.next_request()
    assert request is not None
    assert sum(node.HasField("action") for node in request.tables[0].nodes) == 2
    assert not designer.share_done


def test_a_given_table_leads_to_another_result(spec: spec_pb2.DesignSpec) -> None:
    assert table_bytes(_finish(Designer(spec, first_table=_GIVEN))) != table_bytes(
        _finish(Designer(spec))
    )


def test_a_design_resumed_before_every_step_has_the_same_result(
    spec: spec_pb2.DesignSpec,
) -> None:
    expected = _finish(Designer(spec, first_table=_GIVEN))
    designer = Designer(spec, first_table=_GIVEN)
    while (request := designer.next_request()) is not None:
        designer = Designer.resume(spec, designer.checkpoint(), first_table=_GIVEN)
        assert designer.next_request() == request
        designer.receive(_EVALUATE(request))

    assert designer.checkpoint() == expected.checkpoint()


def test_a_joint_search_makes_no_short_climbs_with_a_given_table() -> None:
    designer = _finish(Designer(_SPECS["joint"], first_table=_GIVEN))
    assert not any(record.HasField("start") for record in designer.epochs)
    assert designer.share_done == 1


def test_a_checkpoint_belongs_to_its_first_table(spec: spec_pb2.DesignSpec) -> None:
    data = Designer(spec, first_table=_GIVEN).checkpoint()
    other = _GIVEN.with_action(0, (0.8, 4.0, 2.0))
    for given in (None, other):
        with pytest.raises(CheckpointError, match="another specification or first table"):
            Designer.resume(spec, data, first_table=given)


def test_unused_signals_of_the_given_table_do_not_matter(spec: spec_pb2.DesignSpec) -> None:
    wider = RuleTable([0, 1, 2, 3], _GIVEN.nodes())
    expected = Designer(spec, first_table=_GIVEN).checkpoint()
    assert Designer(spec, first_table=wider).checkpoint() == expected


def test_a_table_split_on_another_signal_is_refused(spec: spec_pb2.DesignSpec) -> None:
    nodes = [([(3, 1.5)], _NODE), ([], (0.9, 4.0, 2.0)), ([], (0.5, 8.0, 3.0))]
    with pytest.raises(
        DesignerError, match="split on slow_rec_ewma; the specification's signals are send_ewma"
    ):
        Designer(spec, first_table=RuleTable([0, 3], nodes))
