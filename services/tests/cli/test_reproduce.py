"""Tests `remy-farm reproduce` and `league`."""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laboratory.tests.studies.small_studies import SMALL, write_studies

RunJson = Callable[..., dict[str, Any]]

LOST = "title: Lost\nsource: nobody\nnot_reproducible: its data is lost\n"
ELLIPSES = """\
title: Ellipses
source: nobody
network: {rate_mbps: 4, rtt_ms: 20, buffer: {packets: 20}, senders: 2,
  traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}}
seconds: 3
runs: 2
rows:
- {name: NewReno, sender: newreno}
- {name: two kinds, sender: [newreno, "cubic,variant=linux"]}
expect:
- {row: NewReno, value: 1, within: 1 %%, source: nobody, unless: "the number | is made up"}
picture: {drawing: %s, shown: true, frontier: [NewReno, two kinds]}
record_every_ms: 100
"""


@pytest.fixture(autouse=True)
def no_published_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMY_REFERENCE_DIR", raising=False)


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    return write_studies(
        tmp_path, curves=SMALL, lost=LOST, ellipses=ELLIPSES % "ellipses", bars=ELLIPSES % "bars"
    )


def files_of(out: Path) -> dict[str, bytes]:
    """Returns all output files except the database of cells."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.suffix != ".db"
    }


def test_reproduce_gives_the_same_bytes_again(
    studies: Path, tmp_path: Path, run_json: RunJson
) -> None:
    def reproduce(out: str, threads: int) -> dict[str, Any]:
        arguments = ("--studies", studies, "--out", tmp_path / out, "--threads", threads, "--quiet")
        return run_json("reproduce", "--quick", *arguments)

    first = reproduce("a", 2)
    assert first["cells_simulated"] == 12
    assert {each["figure"]: each["finding"] for each in first["figures"]} == {
        "small/bars": "differs because",
        "small/curves": "reproduced",
        "small/ellipses": "differs because",
        "small/lost": "not reproducible because",
    }
    first_files = files_of(tmp_path / "a")
    again = reproduce("a", 1)
    # Figures with the same networks share cells.
    assert again["cells_simulated"] == 0
    assert again["cells_found"] == 16
    assert again["figures"] == first["figures"]
    assert files_of(tmp_path / "a") == first_files
    reproduce("b", 1)
    assert files_of(tmp_path / "b") == first_files
    # The page documents this command for checking the digest.
    command = "LC_ALL=C sha256sum */*.csv | sha256sum"
    printed = subprocess.check_output(command, shell=True, cwd=tmp_path / "b", text=True)
    assert printed.split()[0] == first["data_sha256"] == again["data_sha256"]
    for name in ("curves", "ellipses", "bars"):
        assert first_files[f"small/{name}.png"].startswith(b"\x89PNG")
        assert b"<svg" in first_files[f"small/{name}.svg"]


def test_data_file_has_a_line_per_row_and_swept_value(
    studies: Path, tmp_path: Path, run: Any
) -> None:
    result = run("reproduce", "small/curves", "--studies", studies, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "reproduced: 2 claims" in result.stdout
    with (tmp_path / "out/small/curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["row"], row["rate_mbps"], row["runs"]) for row in rows] == [
        ("NewReno", "2", "3"),
        ("NewReno", "8", "3"),
        ("Vegas", "2", "3"),
        ("Vegas", "8", "3"),
    ]
    assert all(0 < float(row["utilization_mean"]) < 1 for row in rows)


def test_pages_have_verdicts_and_reasons(studies: Path, tmp_path: Path, run: Any) -> None:
    page = tmp_path / "docs" / "results" / "evidence.md"
    page.parent.mkdir(parents=True)
    arguments = ("--studies", studies, "--out", tmp_path / "out", "--evidence", page, "--quick")
    result = run("reproduce", *arguments)
    assert result.exit_code == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    assert "remy-farm reproduce --quick --evidence docs/results/evidence.md" in text
    assert "Of 4 figures and tables 1 are reproduced, 2 differ, and" in text
    assert re.search(r"^    [0-9a-f]{64}$", text, re.MULTILINE)
    assert "not reproducible because its data is lost" in text
    # A vertical bar would end a Markdown cell, so it is escaped.
    assert "the number \\| is made up" in text
    assert (page.parent / "images" / "small-ellipses.png").exists()
    assert not (page.parent / "images" / "small-curves.png").exists()
    html = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "other is left out: published/none.dna needs REMY_REFERENCE_DIR" in html
    assert "2 runs of 4 s (--quick; 3 without)" in html
    assert "src=&quot;" not in html


def test_plots_of_recorded_runs_are_drawn(tmp_path: Path, run: Any) -> None:
    studies = write_studies(tmp_path, a=ELLIPSES % "sequence", b=ELLIPSES % "queue")
    result = run("reproduce", "--studies", studies, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "out/small/a.png").exists()
    assert (tmp_path / "out/small/b.svg").exists()


def test_list_option_prints_the_figures(studies: Path, run: Any) -> None:
    listed = run("reproduce", "--studies", studies, "--list").stdout
    assert listed.splitlines()[1].split() == ["small/bars", "Ellipses", "2"]
    assert "small/lost" in listed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "'nothing' is not a study (small) or a figure"),
        (["--evidence", "page.txt"], "page.txt must be a name that ends in .md"),
        (["--studies", "/nonexistent"], "has no studies"),
    ],
)
def test_reproduce_refuses_invalid_arguments(
    arguments: list[str], sentence: str, studies: Path, tmp_path: Path, run: Any
) -> None:
    result = run("reproduce", "--studies", studies, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr


SET = """\
title: Two rates
source: nobody
network: {rtt_ms: 20, buffer: {bdp: 1},
  traffic: {exponential_time: {mean_ms: 1.0e+9}, mean_off_ms: 1}, starts_apart_ms: 100}
%s
grid: {rate_mbps: {quick: [2], full: [2, 6]}, buffer.bdp: [0.5, 2]}
score: %s
seconds: 3
runs: 1
"""


def write_sets(tmp_path: Path) -> Path:
    """Writes two sets of networks, `beside` with a rival and `power` without one."""
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "power.yaml").write_text(SET % ("senders: 2", "power"))
    (folder / "beside.yaml").write_text(SET % ("rival: newreno", "closeness_to_fair"))
    return folder


def test_league_prints_winning_rates_and_commands(
    tmp_path: Path, remycc_file: Path, run: Any, run_json: RunJson
) -> None:
    arguments = (remycc_file, "newreno", "--sets", write_sets(tmp_path), "--out", tmp_path / "out")
    output = run_json("league", *arguments, "--alone", "--quiet")
    assert [(each["set"], each["networks"]) for each in output["sets"]] == [
        ("beside", 4),
        ("power", 4),
    ]
    beside, power = output["sets"]
    assert power["draws"] == "fixed"
    assert power["means"]["small"]["loss"] <= 1
    assert power["means"]["small"]["rtt_p95_ms"] >= power["means"]["small"]["rtt_p50_ms"]
    assert set(power["winning_rates"]) == {"small", "newreno"}
    # Every network has a best entrant.
    assert sum(power["winning_rates"].values()) >= 1
    worst = beside["worst"]["small"][0]
    command = worst["simulate"].split()
    assert command[:2] == ["remy-farm", "simulate"]
    simulation = run_json(*command[1:])
    # The command simulates the league's cell: the same network and the same draws.
    rates = [sender["throughput_mbps"] for sender in simulation["senders"]]
    with (tmp_path / "out" / "beside.csv").open(newline="") as file:
        rows = {(row["network"], row["entrant"]): row for row in csv.DictReader(file)}
    score = float(rows[worst["network"], "small"]["score"])
    assert score == pytest.approx(min(rates) / max(rates))
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "RFC 9743" in page
    assert "Networks where small is farthest behind" in page
    assert (tmp_path / "out" / "power.png").exists()


def test_league_has_rivals_without_the_alone_option(tmp_path: Path, run: Any) -> None:
    arguments = ("--sets", write_sets(tmp_path), "--out", tmp_path / "out", "--set", "power")
    result = run("league", "vegas", *arguments, "--quick")
    assert result.exit_code == 0, result.stderr
    for name in ("vegas", "Cubic", "NewReno", "BBR v1", "BBR v3", "Copa", "Vivace"):
        assert f"\n{name} " in result.stdout
    heads = next(line for line in result.stdout.splitlines() if line.startswith("set "))
    for head in ("networks", "loss", "mean RTT ms", "RTT p95 ms"):
        assert head in heads


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["vega"], "vega"),
        (["vegas=2"], "which the set determines"),
        (["nowhere.json"], "nowhere.json: cannot be read"),
        (["vegas", "--set", "other"], "set other does not exist; the sets are beside, power"),
    ],
)
def test_league_refuses_invalid_arguments(
    arguments: list[str], sentence: str, tmp_path: Path, run: Any
) -> None:
    result = run("league", *arguments, "--sets", write_sets(tmp_path), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert sentence in result.stderr


IN_NS3 = """\
title: Rows in ns-3
source: nobody
network: {rate_mbps: 6, rtt_ms: 60, senders: 2,
  traffic: {exponential_time: {mean_ms: 800}, mean_off_ms: 400}}
seconds: 4
runs: 1
rows:
- {name: there, sender: "remycc:published/none.dna", simulator: ns3}
picture: {drawing: none}
"""


def test_figures_in_ns3_need_the_with_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    monkeypatch.delenv("REMY_NS3", raising=False)
    studies = write_studies(tmp_path, here=LOST, there=IN_NS3)
    arguments = ("reproduce", "--studies", studies, "--out", tmp_path / "out", "--quick")
    without = run(*arguments)
    assert "small/here" in without.stdout
    assert "small/there" not in without.stdout
    skipped = run(*arguments, "--with", "ns3")
    assert skipped.exit_code == 0
    assert "figures that need ns3 are skipped: REMY_NS3 must name" in skipped.stderr
    assert "small/there" not in skipped.stdout
    named = run(*arguments, "small/there")
    assert named.exit_code == 2
    assert "small/there needs another simulator; add --with ns3" in named.stderr
