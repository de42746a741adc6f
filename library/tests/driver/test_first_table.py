"""Tests runs with a given first table."""

from pathlib import Path

import pytest

from library.tests.designer.small_spec import small_spec
from remy_farm.designer import Designer, DesignerError
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.run import DesignRun, with_budget
from remy_farm.files import FileError
from remy_farm.remycc import read_remycc
from remy_simulator import RuleTable

SPEC = small_spec(signals="send_ewma, rtt_ratio", simulated_seconds=1, epochs_per_split=1, epochs=2)
_NODE = (0.0, 0.0, 0.0)
GIVEN = RuleTable([0, 2], [([(2, 1.5)], _NODE), ([], (0.9, 4.0, 2.0)), ([], (0.5, 8.0, 3.0))])


def test_the_result_has_the_given_first_table(tmp_path: Path) -> None:
    result = DesignRun(SPEC, tmp_path, first_table=GIVEN).run()
    assert result.first == [GIVEN]
    assert result.table.rule_count >= GIVEN.rule_count
    assert read_remycc(OutDirectory(tmp_path).first_table).table == GIVEN


def test_without_a_given_table_the_first_table_is_the_searchs_own(tmp_path: Path) -> None:
    result = DesignRun(SPEC, tmp_path).run()
    assert result.first == [Designer(SPEC).table]
    assert not OutDirectory(tmp_path).first_table.exists()


def test_a_resumed_design_reads_its_first_table_from_the_directory(tmp_path: Path) -> None:
    whole = DesignRun(SPEC, tmp_path / "whole", first_table=GIVEN).run()
    parts = tmp_path / "parts"
    DesignRun(with_budget(SPEC, max_steps=3), parts, first_table=GIVEN).run()
    resumed = DesignRun(SPEC, parts, resume=True).run()
    assert resumed.first == whole.first
    assert resumed.table == whole.table
    names = ("remycc.json", "remycc.dna", "first.json")
    assert all(
        (parts / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in names
    )


def test_resuming_with_another_first_table_is_refused(tmp_path: Path) -> None:
    DesignRun(with_budget(SPEC, max_steps=3), tmp_path, first_table=GIVEN).run()
    other = GIVEN.with_action(0, (0.8, 4.0, 2.0))
    with pytest.raises(FileError, match="another specification or first table"):
        DesignRun(SPEC, tmp_path, resume=True, first_table=other).run()


def test_a_first_table_split_on_another_signal_is_refused(tmp_path: Path) -> None:
    nodes = [([(1, 1.5)], _NODE), ([], (0.9, 4.0, 2.0)), ([], (0.5, 8.0, 3.0))]
    with pytest.raises(DesignerError, match="is split on rec_ewma"):
        DesignRun(SPEC, tmp_path, first_table=RuleTable([0, 1], nodes)).run()
