"""Tests that text tables show all cells on a narrow screen."""

from pathlib import Path
from typing import Any

import pytest

from remy_cli.benchmark_search import MeasuredFile, print_tables
from remy_cli.common import PlainTable, print_table
from remy_cli.inspect import print_rules
from remy_cli.views import job_table, print_members
from remy_farm.analysis.campaign import Comparison, MemberRecord
from remy_farm.evaluation.measures import Estimate
from remy_farm.remycc import readable_rules
from remy_laboratory.search_benchmark import BenchmarkScore
from remy_proto.v1 import job_pb2, progress_pb2
from remy_simulator import RuleTable

LONG_NAME = "general-purpose-network-with-a-name-of-sixty-characters-seed"
SCORE = Estimate(-0.43612, 0.0123, 512)
SCORE_TEXT = "-0.436 ± 0.012"


@pytest.fixture(autouse=True)
def narrow_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def printed_text(capsys: pytest.CaptureFixture[str]) -> str:
    """Returns the printed text, which must fit the screen and must not be truncated."""
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    return text


def first_column(text: str, width: int = 28) -> str:
    """Returns the text of a wrapped first column, with its lines joined."""
    return "".join(line[:width].rstrip() for line in text.splitlines())


def test_job_table_has_names_ids_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_pb2.Job(id="6ae2f4b10123456789", name=LONG_NAME, owner="a.researcher@example.org")
    job.state = job_pb2.JOB_STATE_RUNNING
    job.progress.CopyFrom(
        progress_pb2.JobProgress(
            epoch=12, rules=1234, step=123456, cpu_seconds=3.2e6, share_done=0.35
        )
    )
    job.progress.score.CopyFrom(progress_pb2.Estimate(mean=-0.43612, standard_error=0.0123))
    job.create_time.FromSeconds(1_700_000_000)
    print_table(job_table([job]))
    text = printed_text(capsys)
    assert LONG_NAME in first_column(text)
    values = (job.id, "running", job.owner, "12", "1234", "123456", "35%", SCORE_TEXT)
    for word in (*values, "888 h 53 min", "2023-11-14"):
        assert word in text


def test_rule_table_has_regions_and_actions(capsys: pytest.CaptureFixture[str]) -> None:
    thresholds = [(axis, 0.25 + axis) for axis in range(4)]
    leaves: list[Any] = [([], (0.987654, 123.0, 12.3456))] * 16
    table = RuleTable([0, 1, 2, 3], [(thresholds, (1.0, 1.0, 1.0)), *leaves], 163840.0)
    print_rules(table, readable_rules(table, None))
    text = printed_text(capsys)
    for word in ("0.987654", "+123", "12.3456", *(f">= {0.25 + axis}" for axis in range(4))):
        assert text.count(word) >= 8


def test_benchmark_and_campaign_tables_have_names_and_scores(
    capsys: pytest.CaptureFixture[str],
) -> None:
    score = BenchmarkScore(SCORE, SCORE, (SCORE,) * 4)
    print_tables([MeasuredFile(Path(f"{LONG_NAME}.dna"), 190, score)])
    text = printed_text(capsys)
    assert f"{LONG_NAME}.dna" in first_column(text)
    assert text.count(SCORE_TEXT) == 6
    member = MemberRecord(
        name=LONG_NAME,
        settings={},
        spec_digest="",
        reason="steps",
        steps=1,
        epochs=1,
        rules=321,
        cpu_seconds=1.0,
        wall_seconds=1.0,
        comparison=Comparison(SCORE, SCORE, 0.9876, 1.2345),
    )
    print_members([member])
    text = printed_text(capsys)
    assert text.count(SCORE_TEXT) == 2
    assert LONG_NAME in "".join(line[3:31].rstrip() for line in text.splitlines())
    for word in ("0.9876", "1.234", "321"):
        assert word in text


def test_comparison_of_jobs_has_all_differing_settings(capsys: pytest.CaptureFixture[str]) -> None:
    table = PlainTable("setting", *(f"{LONG_NAME}-{n}" for n in range(3)), left=1)
    values = [f"{{uniform: [{n}, {n}00000000]}}" for n in range(1, 4)]
    table.add_row("network.buffer.packets", *values)
    print_table(table)
    text = printed_text(capsys)
    for value in values:
        assert value in text
    for number in range(3):
        assert f"seed-{number}" in text


def test_piped_table_has_one_line_per_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    table = PlainTable("name", "value", left=1)
    table.add_row("x" * 400, "1")
    print_table(table)
    assert capsys.readouterr().out.splitlines()[1] == f"{'x' * 400}      1"
