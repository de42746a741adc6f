"""Studies and certificates as calls of the library."""

from pathlib import Path

import pytest

import remy_farm as rf

REQUIREMENT = """\
title: It uses its link
source: nobody
network: {rtt_ms: 20, buffer: {bdp: 1}, starts_apart_ms: 0,
  traffic: {exponential_time: {mean_ms: 1.0e+9}, mean_off_ms: 1}}
grid: {rate_mbps: [2, 6]}
score: utilization
at_least: LEAST
seconds: 3
runs: 2
"""


def test_a_figure_is_made_compared_and_drawn(tmp_path: Path) -> None:
    figure = rf.reproduce("pcc/figure-15", quick=True, directory=tmp_path)
    frame = figure.to_pandas()
    assert list(frame["holds"]) == [each["holds"] for each in figure.to_dict()["expectations"]]
    assert frame["measured"].notna().all()
    assert figure.finding in repr(figure)
    assert figure.plot()._repr_png_().startswith(b"\x89PNG")
    again = rf.reproduce("pcc/figure-15", quick=True, directory=tmp_path)
    assert again.to_dict() == figure.to_dict()


def test_a_figure_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(rf.FileError, match=r"has no figure 'pcc/figure-99'; there are .*pcc/fig"):
        rf.reproduce("pcc/figure-99")


@pytest.mark.parametrize(("least", "holds"), [(0.01, True), (2, False)])
def test_a_certificate_says_whether_a_table_holds_what_is_required(
    tmp_path: Path, least: float, holds: bool
) -> None:
    (tmp_path / "asked").mkdir()
    text = REQUIREMENT.replace("LEAST", str(least))
    (tmp_path / "asked" / "use.yaml").write_text(text)
    shares: list[float] = []
    certificate = rf.certify_table(
        rf.load_table("general-purpose-delta1"),
        tmp_path / "out",
        requirements=tmp_path / "asked",
        on_done=shares.append,
    )
    assert certificate.holds == holds
    assert certificate.sentence().startswith("general-purpose-delta1 ")
    assert shares[-1] == pytest.approx(1)
    assert (tmp_path / "out" / "certificate.html").exists()


def test_no_requirements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rf.FileError, match="has no requirements"):
        rf.certify_table(
            rf.load_table("generalist"), tmp_path / "out", requirements=tmp_path / "none"
        )
