"""Tests that RemyCC files keep the path model, and that .dna files refuse it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import remy_farm as rf
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.export import ExportError, exported
from remy_farm.remycc import (
    RemyCC,
    RemyCCError,
    file_suffixes,
    path_model_sentence,
    read_remycc,
    write_remycc,
)
from remy_farm.specification import parse_spec
from remy_simulator import RuleTable
from remy_simulator.messages import PathModel

_MODEL = PathModel(8.0, 0.25, 3.0, 0.5, 4.0, 20.0, 1.0, 1.5, 1.2)
_ALONE = RuleTable([0, 2], [([(2, 1.5)], (1.0, 1.0, 1.0)), *[([], (0.9, 3.0, 1.5))] * 2])
_TABLE = _ALONE.with_path_model(_MODEL)
_SPEC = """
name: small
network:
  rate_mbps: {uniform: {low: 10, high: 20}}
  rtt_ms: 100
  senders: 2
  traffic: {exponential_time: {mean_ms: 5000}, mean_off_ms: 5000}
stop: {epochs: 1}
"""


def test_a_json_file_keeps_the_path_model(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_remycc(path, RemyCC(_TABLE))
    assert json.loads(path.read_text())["path_model"] == _MODEL._asdict()
    assert read_remycc(path) == RemyCC(_TABLE)
    write_remycc(path, RemyCC(_ALONE))
    assert "path_model" not in json.loads(path.read_text())


def test_a_dna_file_refuses_the_path_model(tmp_path: Path) -> None:
    assert file_suffixes(_ALONE) == (".json", ".dna")
    assert file_suffixes(_TABLE) == (".json",)
    with pytest.raises(RemyCCError) as error:
        write_remycc(tmp_path / "table.dna", RemyCC(_TABLE))
    assert str(error.value).endswith(
        "table.dna cannot be written: it has a path model, which a .dna file cannot hold; keep it "
        "as .json, or write its rules alone (--rules-alone, or Table.without_path_model)"
    )


def test_absolute_copies_of_scale_free_rules_have_no_path_model() -> None:
    table = six_scale_free_rules()
    with pytest.raises(ExportError, match=r"has a path model, which a \.dna file cannot hold"):
        exported(table.with_path_model(_MODEL), parse_spec(_SPEC), per_octave=1)
    assert exported(table, parse_spec(_SPEC), per_octave=1).path_model is None


def test_a_table_of_the_library_shows_its_path_model(tmp_path: Path) -> None:
    write_remycc(tmp_path / "one.json", RemyCC(_TABLE))
    table = rf.load_table(tmp_path / "one.json")
    assert table.path_model == _MODEL._asdict()
    assert repr(table).endswith("with a path model)")
    assert rf.explain(table).to_dict()["path_model"] == _MODEL._asdict()
    assert path_model_sentence(_TABLE) == (
        "The senders have a path model: base_rtt_rounds 8, tolerated_loss 0.25, "
        "loss_debt_packets 3, loss_window 0.5, least_window_packets 4, reference_rtt_ms 20, "
        "additive_packets 1, flight_bound 1.5, competition_rtt_ratio 1.2."
    )
    usual = table.with_path_model().path_model
    assert usual is not None
    assert table.with_path_model(tolerated_loss=0.5).path_model == usual | {"tolerated_loss": 0.5}
    with pytest.raises(ValueError, match="tolerated"):
        table.with_path_model(tolerated=0.5)
    competes = table.with_competition(1.3)
    assert competes.path_model == (table.path_model or {}) | {"competition_rtt_ratio": 1.3}
    with pytest.raises(ValueError, match="competition_rtt_ratio"):
        table.with_competition(-1)
    alone = table.without_path_model()
    with pytest.raises(ValueError, match="without a path model cannot compete"):
        alone.with_competition(1.3)
    assert alone.rule_table == _ALONE
    assert alone.path_model is None
    assert path_model_sentence(_ALONE) == ""
