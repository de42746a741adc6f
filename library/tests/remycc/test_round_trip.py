"""Converting a RemyCC there and back loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from library.tests.remycc.tables import published, remyccs
from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

# Each example overwrites the files of the one before.
_same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


_either_kind = remyccs() | remyccs(rules=rule_table_pb2.RULES_SCALE_FREE_REMEMBERING)


@_same_folder
@given(remycc=_either_kind)
def test_json_holds_every_table_exactly(tmp_path: Path, remycc: RemyCC) -> None:
    path = tmp_path / "table.json"
    write_remycc(path, remycc)
    assert read_remycc(path) == remycc
    before = path.read_bytes()
    write_remycc(path, read_remycc(path))
    assert path.read_bytes() == before


@_same_folder
@given(remycc=remyccs(integral=True))
def test_dna_holds_every_table_with_whole_increments_exactly(
    tmp_path: Path, remycc: RemyCC
) -> None:
    path = tmp_path / "table.dna"
    write_remycc(path, remycc)
    assert read_remycc(path) == remycc


@_same_folder
@given(remycc=_either_kind)
def test_messages_hold_every_table_exactly(remycc: RemyCC) -> None:
    assert RemyCC.from_message(remycc.to_message()) == remycc


@pytest.mark.parametrize("path", published())
def test_published_tables_survive_both_forms(tmp_path: Path, path: Path) -> None:
    remycc = read_remycc(path)
    write_remycc(tmp_path / "table.json", remycc)
    write_remycc(tmp_path / "table.dna", read_remycc(tmp_path / "table.json"))
    assert read_remycc(tmp_path / "table.dna") == remycc


def test_the_json_form_is_made_to_be_read(tmp_path: Path) -> None:
    table = RuleTable([0], [([], (1.0, -0.0, 0.1 + 0.2))]).split(0, [(0, 2.5)])
    write_remycc(tmp_path / "table.json", RemyCC(table))
    text = (tmp_path / "table.json").read_text(encoding="utf-8")
    assert json.loads(text) == {
        "dna_metadata": "",
        "domain_upper": 163840.0,
        "nodes": [
            {"split": {"thresholds": [{"signal": "SIGNAL_SEND_EWMA", "value": 2.5}]}},
            *[
                {
                    "action": {
                        "intersend_ms": 0.30000000000000004,
                        "window_increment": 0.0,
                        "window_multiple": 1.0,
                    }
                }
            ]
            * 2,
        ],
        "signals": ["SIGNAL_SEND_EWMA"],
    }
    assert text.startswith('{\n  "dna_metadata"')
    assert '"window_increment": -0.0' in text


def test_the_suffix_says_which_form_is_written_and_read(tmp_path: Path) -> None:
    remycc = RemyCC(RuleTable([2], [([], (1.0, 1.0, 3.0))]))
    for name in ("table.JSON", "table.Dna"):
        write_remycc(tmp_path / name, remycc)
        assert read_remycc(tmp_path / name) == remycc
    assert (tmp_path / "table.JSON").read_bytes().startswith(b"{")


@pytest.mark.parametrize("name", ["table.json", "table.dna"])
def test_a_file_of_another_name_is_read_by_its_content(tmp_path: Path, name: str) -> None:
    """The reference tool's files end in the number of an epoch."""
    remycc = RemyCC(RuleTable([2], [([], (1.0, 1.0, 3.0))]))
    write_remycc(tmp_path / name, remycc)
    (tmp_path / name).rename(tmp_path / "table.7")
    assert read_remycc(tmp_path / "table.7") == remycc
