"""Tests designs of several tables: turns, requests, comparisons and files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import remy_simulator
from library.tests.designer.pair_spec import pair_spec
from remy_farm.designer import CheckpointError, Designer, DesignerError
from remy_farm.designer.team import with_companions
from remy_farm.driver.run import DesignRun
from remy_farm.remycc import read_remycc
from remy_proto.v1 import evaluation_pb2, progress_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import to_native


@cache
def _whole() -> tuple[list[bytes], list[bytes], dict[str, RuleTable], list[int]]:
    """Returns a design's requests and checkpoints, its tables and the numbers of its epochs."""
    designer, requests, checkpoints = (
        Designer(pair_spec()),
        [],
        [Designer(pair_spec()).checkpoint()],
    )
    while (request := designer.next_request()) is not None:
        requests.append(request.SerializeToString(deterministic=True))
        designer.receive(remy_simulator.evaluate_columns(request))
        checkpoints.append(designer.checkpoint())
    return requests, checkpoints, designer.tables, [each.epoch for each in designer.epochs]


def test_tables_take_turns() -> None:
    requests, _, tables, epochs = _whole()
    assert list(tables) == ["fast", "low-delay"]
    parsed = [evaluation_pb2.EvaluationRequest.FromString(each) for each in requests]
    assert all(len(request.tables) == 2 for request in parsed)
    # Table 0 of a request is the one that is searched: alternately that of the first group of
    # senders, "fast", and that of the second group.
    owners = []
    for kinds in (request.specimen_columns.kinds for request in parsed):
        [both] = {
            tuple(group.table for group in kind.senders) for kind in kinds if len(kind.senders) > 1
        }
        [alone] = {kind.senders[0].table for kind in kinds if len(kind.senders) == 1}
        assert both[1] == alone
        owners.append(both.index(0))
    assert owners == [step % 2 for step in range(len(owners))]
    assert epochs == list(range(len(epochs)))


def test_a_design_resumed_after_any_step_has_the_same_result() -> None:
    requests, checkpoints, tables, _ = _whole()
    for step in range(0, len(requests), 3):
        designer = Designer.resume(pair_spec(), checkpoints[step])
        for later in range(step, len(requests)):
            request = designer.next_request()
            assert request is not None
            assert request.SerializeToString(deterministic=True) == requests[later]
            designer.receive(remy_simulator.evaluate_columns(request))
            assert designer.checkpoint() == checkpoints[later + 1]
        assert designer.next_request() is None
        assert designer.tables == tables


def test_a_table_is_compared_with_all_published_tables_together() -> None:
    designer = Designer(pair_spec())
    published = None
    while (request := designer.next_request()) is not None:
        for event in designer.receive(remy_simulator.evaluate_columns(request)):
            if not event.HasField("epoch_finished"):
                continue
            comparison = event.epoch_finished.record.comparison
            if published is not None:
                assert comparison.before.mean == pytest.approx(published)
            published = (comparison.after if comparison.accepted else comparison.before).mean
            assert comparison.accepted == (comparison.gain.mean > 0)
    assert published is not None


def test_a_closing_evaluation_compares_the_contenders_of_all_tables() -> None:
    designer = Designer(pair_spec())
    for _ in range(6):
        request = designer.next_request()
        assert request is not None
        designer.receive(remy_simulator.evaluate_columns(request))
    before = designer.tables
    designer.stop(progress_pb2.STOP_REASON_CANCELLED)
    closing = designer.next_request()
    assert closing is not None
    contenders = [to_native(table) for table in closing.tables]
    assert contenders != list(before.values())
    [finished] = designer.receive(remy_simulator.evaluate_columns(closing))
    accepted = finished.design_finished.closing.accepted
    assert list(designer.tables.values()) == (contenders if accepted else list(before.values()))
    again = Designer.resume(pair_spec(), designer.checkpoint())
    assert again.tables == designer.tables


def test_a_checkpoint_of_a_design_of_one_table_is_refused() -> None:
    one = pair_spec(**{"design: low-delay": "design: fast"})
    with pytest.raises(CheckpointError, match="another specification"):
        Designer.resume(pair_spec(), Designer(one).checkpoint())


def test_a_given_first_table_is_refused() -> None:
    table = next(iter(Designer(pair_spec()).tables.values()))
    with pytest.raises(DesignerError, match="a design of several tables"):
        Designer(pair_spec(), first_table=table)


@pytest.mark.parametrize(("turn", "numbers"), [(0, [0, 1, 2]), (1, [1, 0, 2]), (2, [1, 2, 0])])
def test_senders_keep_their_tables_when_the_searched_table_becomes_the_first(
    turn: int, numbers: list[int]
) -> None:
    tables = [RuleTable([2], [([], (1.0, float(number), 1.0))]) for number in range(3)]
    request = evaluation_pb2.EvaluationRequest()
    request.tables.add().ParseFromString(tables[turn].to_message())
    kind = request.specimen_columns.kinds.add()
    for number in range(3):
        kind.senders.add(table=number)
    kind.senders.add(protocol={"name": "cubic"})
    changed = with_companions(request, turn, tables)
    assert [group.table for group in kind.senders] == [*numbers, 0]
    for number in range(3):
        assert to_native(changed.tables[kind.senders[number].table]) == tables[number]


def test_each_table_has_its_own_file(tmp_path: Path) -> None:
    result = DesignRun(pair_spec(), tmp_path, threads=1).run()
    assert result.tables == _whole()[2]
    for name, table in result.tables.items():
        assert read_remycc(tmp_path / f"remycc-{name}.json").table == table
    assert not (tmp_path / "remycc.json").exists()
