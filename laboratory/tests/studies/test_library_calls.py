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


SET = """\
title: Two links
source: nobody
network: {rtt_ms: 20, buffer: {bdp: 1}, senders: 2,
  traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}}
grid: {rate_mbps: [2, 6]}
senders: 2
seconds: 3
runs: 2
"""


def test_a_league_has_a_row_for_each_entrant_and_network_and_a_page(tmp_path: Path) -> None:
    sets = tmp_path / "sets"
    sets.mkdir()
    (sets / "power.yaml").write_text(SET)
    table = rf.load_table("general-purpose-delta1")
    shares: list[float] = []
    found = rf.league(
        [table, "newreno"],
        alone=True,
        sets=sets,
        directory=tmp_path / "kept",
        on_done=shares.append,
    )
    assert shares[-1] == pytest.approx(1)
    assert found.entrants == found.asked == [table.name, "newreno"]
    frame = found.to_pandas()
    assert len(frame) == 4
    best = frame.groupby("network")["over_best"].max()
    assert list(best) == [1, 1]
    rates = found.winning_rates().to_pandas().set_index("entrant")["power"]
    assert {name: rates[name] for name in found.entrants} == found.to_dict()["sets"][0][
        "winning_rates"
    ]
    assert "newreno" in repr(found)
    assert found.plot("power")._repr_png_().startswith(b"\x89PNG")
    found.save(tmp_path / "page")
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert f"Where {table.name} is farthest behind" in page
    assert (tmp_path / "page" / "power.csv").read_text().count("\n") == 5
    # What is kept is not simulated again, and comes to the same.
    again = rf.league([table, "newreno"], alone=True, sets=sets, directory=tmp_path / "kept")
    assert again.to_dict() == found.to_dict()


def test_a_league_has_rivals_unless_it_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REMY_REFERENCE_DIR", raising=False)
    (tmp_path / "power.yaml").write_text(SET.replace("[2, 6]", "[2]"))
    found = rf.league("vegas", sets=tmp_path, quick=True)
    assert found.asked == ["vegas"]
    assert found.entrants == ["vegas", "Cubic", "NewReno", "BBR v1", "BBR v3", "Copa", "Vivace"]


def test_mistakes_in_a_league_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rf.FileError, match="has no sets"):
        rf.league("vegas", sets=tmp_path)
    (tmp_path / "power.yaml").write_text(SET)
    with pytest.raises(rf.FileError, match="set other is not among power"):
        rf.league("vegas", sets=tmp_path, only=["other"])
    table = rf.load_table("generalist")
    with pytest.raises(ValueError, match="'generalist' is the name of two contenders"):
        rf.league([table, table], sets=tmp_path)
    with pytest.raises(ValueError, match="a set says how many there are"):
        rf.league("vegas=2", sets=tmp_path)
    with pytest.raises(TypeError, match="3 must be a table"):
        rf.league(3, sets=tmp_path)  # type: ignore[arg-type]


SPACE = {
    "name": "space",
    "network": {
        "rate_mbps": {"uniform": [1, 10]},
        "rtt_ms": 40,
        "senders": 2,
        "buffer": {"packets": 20},
        "traffic": {"exponential_time": {"mean_ms": 1000}, "mean_off_ms": 500},
    },
    "objective": {"delta": 1},
    "search": {"simulated_seconds": 2},
}


def test_an_attack_finds_networks_that_can_be_measured_again(tmp_path: Path) -> None:
    table, spec = rf.load_table("general-purpose-delta1"), rf.Spec(SPACE)
    worst: list[float] = []
    found = rf.attack(
        table,
        spec,
        networks=16,
        rounds=2,
        runs=1,
        find=2,
        fresh_runs=4,
        on_round=lambda _, loss: worst.append(loss),
    )
    assert len(worst) == 2
    assert len(found) == 2
    frame = found.to_pandas()
    assert frame["loss_mean"].is_monotonic_decreasing
    differences = frame["rival_score_mean"] - frame["score_mean"]
    assert list(differences) == pytest.approx(list(frame["loss_mean"]))
    assert all(name in repr(found) for name in frame["network"])
    found.save(tmp_path / "found.yaml")
    again = rf.attack(table, spec, on=tmp_path / "found.yaml", fresh_runs=4, threads=1)
    assert again.to_dict()["networks"] == found.to_dict()["networks"]
    other = rf.attack(table, spec, on=tmp_path / "found.yaml", fresh_runs=4, against="newreno")
    assert other.to_dict()["networks"] != found.to_dict()["networks"]


def test_mistakes_in_an_attack_are_refused() -> None:
    table, spec = rf.load_table("generalist"), rf.Spec(SPACE)
    with pytest.raises(ValueError, match="2 networks are too few for 3 rounds"):
        rf.attack(table, spec, networks=2, rounds=3)
    with pytest.raises(ValueError, match="against is 'cubic=2', but must be a protocol"):
        rf.attack(table, spec, against="cubic=2")
    with pytest.raises(rf.SpecError, match="nothing that varies"):
        rf.attack(table, spec.replace({"network.rate_mbps": 5}))
