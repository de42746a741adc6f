from pathlib import Path
from typing import Any

from remy_services.remycc import read_remycc


def test_there_and_back_again_is_the_same_table(
    run: Any, remycc_file: Path, tmp_path: Path
) -> None:
    dna, back = tmp_path / "small.dna", tmp_path / "back.json"
    assert run("convert", remycc_file, dna).exit_code == 0
    assert run("convert", dna, back).exit_code == 0
    assert read_remycc(dna).table == read_remycc(remycc_file).table
    assert back.read_bytes() == remycc_file.read_bytes()


def test_a_failed_conversion_leaves_the_target_as_it_was(run: Any, tmp_path: Path) -> None:
    broken, target = tmp_path / "broken.dna", tmp_path / "target.json"
    broken.write_bytes(b"\x12\xff")
    target.write_text("precious")
    assert run("convert", broken, target).exit_code == 2
    assert target.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.dna", "target.json"]
