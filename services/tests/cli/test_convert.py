"""Tests `remy-farm convert`."""

from pathlib import Path
from typing import Any

import pytest

from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_simulator import RuleTable


def test_conversion_round_trip_gives_the_same_table(
    run: Any, remycc_file: Path, tmp_path: Path
) -> None:
    dna, back = tmp_path / "small.dna", tmp_path / "back.json"
    assert run("convert", remycc_file, dna).exit_code == 0
    assert run("convert", dna, back).exit_code == 0
    assert read_remycc(dna).table == read_remycc(remycc_file).table
    assert back.read_bytes() == remycc_file.read_bytes()


@pytest.mark.parametrize("increment", [1.5, 3e9])
def test_increment_that_dna_cannot_hold_is_refused(
    run: Any, tmp_path: Path, increment: float
) -> None:
    source, target = tmp_path / "odd.json", tmp_path / "odd.dna"
    write_remycc(source, RemyCC(RuleTable([0], [([], (1.0, increment, 3.0))])))
    result = run("convert", source, target)
    assert result.exit_code == 2
    assert "odd.dna cannot be written: Rule 0 has window_increment" in result.stderr
    assert "whole increments from -2147483648 to 2147483647" in result.stderr
    assert not target.exists()


def test_only_the_rules_alone_are_converted_to_dna(run: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "with.json", tmp_path / "alone.dna"
    model = (16.0, 0.03125, 6.0, 0.875, 2.0, 50.0, 0.5, 1.75, 1.1)
    table = RuleTable([0], [([], (1.0, 1.0, 3.0))], path_model=model)
    write_remycc(source, RemyCC(table))
    refused = run("convert", source, target)
    assert refused.exit_code == 2
    assert "it has a path model, which a .dna file cannot hold" in refused.stderr
    assert not target.exists()
    assert run("convert", source, target, "--rules-alone").exit_code == 0
    assert read_remycc(target).table.region(0) == table.region(0)
    assert run("convert", source, tmp_path / "copy.json").exit_code == 0
    assert read_remycc(tmp_path / "copy.json").table == table


def test_path_model_option_adds_the_default_path_model_to_the_same_rules(
    run: Any, remycc_file: Path, tmp_path: Path
) -> None:
    target = tmp_path / "with.json"
    assert run("convert", remycc_file, target, "--path-model").exit_code == 0
    table = read_remycc(target).table
    assert table.path_model is not None
    assert table.path_model.base_rtt_rounds == 16
    assert table.with_path_model(None) == read_remycc(remycc_file).table
    refused = run("convert", remycc_file, target, "--path-model", "--rules-alone")
    assert refused.exit_code == 2
    assert "--path-model and --rules-alone exclude each other" in refused.stderr


def test_compete_option_changes_one_constant_of_a_path_model(
    run: Any, remycc_file: Path, tmp_path: Path
) -> None:
    plain, target = tmp_path / "plain.json", tmp_path / "competes.json"
    assert run("convert", remycc_file, plain, "--path-model").exit_code == 0
    before = read_remycc(plain).table.path_model
    assert before is not None
    assert before.competition_rtt_ratio == 0
    assert run("convert", plain, target, "--compete", "1.25").exit_code == 0
    assert read_remycc(target).table.path_model == before._replace(competition_rtt_ratio=1.25)
    again = run("convert", remycc_file, target, "--path-model", "--compete", "1.25")
    assert again.exit_code == 0
    assert read_remycc(target).table.path_model == before._replace(competition_rtt_ratio=1.25)
    refused = run("convert", remycc_file, target, "--compete", "1.25")
    assert refused.exit_code == 2
    assert "--compete needs a path model" in refused.stderr
    refused = run("convert", remycc_file, target, "--rules-alone", "--compete", "1.25")
    assert refused.exit_code == 2


def test_time_unit_option_converts_a_dna_file(run: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "tenths.dna", tmp_path / "whole.json"
    table = RuleTable([0, 2], [([], (1.0, 1.0, 30.0))]).split(0, [(0, 20.0), (2, 1.5)])
    write_remycc(source, RemyCC(table))
    assert run("convert", source, target, "--time-unit-ms", "0.1").exit_code == 0
    converted = read_remycc(target).table
    assert converted.action(0) == (1.0, 1.0, 3.0)
    assert converted.region(0)[1][0] == 2.0
    assert converted.region(0)[1][2] == 1.5
    refused = run("convert", target, tmp_path / "again.json", "--time-unit-ms", "0.1")
    assert refused.exit_code == 2
    assert "is a .json file, which is in milliseconds" in refused.stderr
    assert run("convert", source, target, "--time-unit-ms", "0").exit_code == 2


def test_failed_conversion_does_not_change_the_target(run: Any, tmp_path: Path) -> None:
    broken, target = tmp_path / "broken.dna", tmp_path / "target.json"
    broken.write_bytes(b"\x12\xff")
    target.write_text("precious")
    assert run("convert", broken, target).exit_code == 2
    assert target.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.dna", "target.json"]
