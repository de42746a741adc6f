"""Tests the comparison of a campaign's members: records, Pareto front, plot and page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from library.tests.analysis.pictures import assert_is_png
from remy_farm.analysis.campaign import (
    CampaignRecord,
    Comparison,
    MemberRecord,
    render,
    undominated,
)
from remy_farm.analysis.plots import plot_members
from remy_farm.evaluation.measures import Estimate
from remy_farm.files import FileError

RECORD = MemberRecord(
    name="delta=0.1,signals=rtt_ratio",
    settings={"objective.delta": 0.1, "signals": ["rtt_ratio"]},
    spec_digest="abc",
    reason="schedule_complete",
    steps=12,
    epochs=2,
    rules=8,
    cpu_seconds=1.5,
    wall_seconds=1.0,
    comparison=Comparison(Estimate(-0.1, None, 1), Estimate(-0.4, 0.01, 64), 0.9, 1.2),
)


def test_undominated_points_are_the_pareto_front() -> None:
    points = [(1.2, 0.9), (1.1, 0.8), (1.3, 0.85), None, (1.2, 0.9), (1.1, 0.7)]
    assert undominated(points) == [True, True, False, False, True, False]
    assert undominated([]) == []


def test_records_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    unscored = replace(RECORD, name="other", comparison=Comparison(None, None, None, None))
    campaign = CampaignRecord()
    campaign.add(RECORD)
    campaign.add(unscored)
    campaign.write(path)

    again = CampaignRecord.read(path)

    assert again.records_of(["other", "missing", RECORD.name]) == [unscored, RECORD]
    assert again.finished(RECORD.name, "abc") == RECORD
    assert again.finished(RECORD.name, "another") is None
    assert again.finished("missing", "abc") is None


def test_a_missing_file_is_an_empty_campaign(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    CampaignRecord.read(path).write(path)
    assert json.loads(path.read_text()) == {"members": []}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"members": [{}]}', '{"members": [1]}'])
def test_a_file_without_records_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    path.write_text(text)
    with pytest.raises(FileError, match=r"campaign\.json is not the record of a campaign"):
        CampaignRecord.read(path)


def test_plot_and_page_support_any_number_of_members() -> None:
    unscored = replace(RECORD, name="<i>", comparison=Comparison(None, None, None, None))
    for records in ([], [RECORD], [RECORD, unscored], [RECORD] * 20):
        picture = plot_members(records)
        assert_is_png(picture)
        page = render("small", records, picture_png=picture)
        assert "<i>" not in page
        assert page.count(RECORD.name) == sum(each is RECORD for each in records)
