"""Tests that writing and reading a RemyCC loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from library.tests.remycc.tables import published, remyccs
from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

# Examples may share a folder, because each overwrites the files of the previous one.
_same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


_either_kind = remyccs() | remyccs(rules=rule_table_pb2.RULES_SCALE_FREE_REMEMBERING)


@_same_folder
@given(remycc=_either_kind)
def test_json_round_trip(tmp_path: Path, remycc: RemyCC) -> None:
    path = tmp_path / "table.json"
    write_remycc(path, remycc)
    assert read_remycc(path) == remycc
    before = path.read_bytes()
    write_remycc(path, read_remycc(path))
    assert path.read_bytes() == before


@_same_folder
@given(remycc=remyccs(integral=True))
def test_dna_round_trip_of_tables_with_whole_increments(tmp_path: Path, remycc: RemyCC) -> None:
    path = tmp_path / "table.dna"
    write_remycc(path, remycc)
    assert read_remycc(path) == remycc


@_same_folder
@given(remycc=_either_kind)
def test_message_round_trip(remycc: RemyCC) -> None:
    assert RemyCC.from_message(remycc.to_message()) == remycc


@pytest.mark.parametrize("path", published())
def test_published_tables_round_trip_in_both_formats(tmp_path: Path, path: Path) -> None:
    remycc = read_remycc(path)
    write_remycc(tmp_path / "table.json", remycc)
    write_remycc(tmp_path / "table.dna", read_remycc(tmp_path / "table.json"))
    assert read_remycc(tmp_path / "table.dna") == remycc


def test_json_is_indented_and_sorted_with_exact_numbers(tmp_path: Path) -> None:
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


def test_the_extension_selects_the_format(tmp_path: Path) -> None:
    remycc = RemyCC(RuleTable([2], [([], (1.0, 1.0, 3.0))]))
    for name in ("table.JSON", "table.Dna"):
        write_remycc(tmp_path / name, remycc)
        assert read_remycc(tmp_path / name) == remycc
    assert (tmp_path / "table.JSON").read_bytes().startswith(b"{")


@pytest.mark.parametrize("name", ["table.json", "table.dna"])
def test_the_content_selects_the_format_of_other_extensions(tmp_path: Path, name: str) -> None:
    """Names of the reference tool's files end in the number of an epoch."""
    remycc = RemyCC(RuleTable([2], [([], (1.0, 1.0, 3.0))]))
    write_remycc(tmp_path / name, remycc)
    (tmp_path / name).rename(tmp_path / "table.7")
    assert read_remycc(tmp_path / "table.7") == remycc
