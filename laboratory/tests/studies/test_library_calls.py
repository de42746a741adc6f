"""Tests `reproduce`, `certify_table`, `league` and `attack` of the library."""

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
at_least: REQUIRED
seconds: 3
runs: 2
"""


def test_figure_is_simulated_compared_and_plotted(tmp_path: Path) -> None:
    figure = rf.reproduce("pcc/figure-15", quick=True, directory=tmp_path)
    frame = figure.to_pandas()
    assert list(frame["holds"]) == [each["holds"] for each in figure.to_dict()["expectations"]]
    assert frame["measured"].notna().all()
    measures = figure.measures().to_pandas()
    assert (measures["rtt_p50_ms_mean"] <= measures["rtt_p95_ms_mean"]).all()
    assert (measures["rtt_p95_ms_mean"] <= measures["rtt_p99_ms_mean"]).all()
    assert (measures["completion_p50_ms_mean"] > 0).all()
    assert (measures["packets_retransmitted_mean"] > 0).any()
    assert figure.finding in repr(figure)
    assert figure.plot()._repr_png_().startswith(b"\x89PNG")
    again = rf.reproduce("pcc/figure-15", quick=True, directory=tmp_path)
    assert again.to_dict() == figure.to_dict()


def test_unknown_figure_is_refused_with_the_known_ones() -> None:
    with pytest.raises(rf.FileError, match=r"no figure 'pcc/figure-99'; the figures are .*pcc/fig"):
        rf.reproduce("pcc/figure-99")


@pytest.mark.parametrize(("required", "holds"), [(0.01, True), (2, False)])
def test_certificate_says_whether_a_table_meets_the_requirements(
    tmp_path: Path, required: float, holds: bool
) -> None:
    (tmp_path / "requirements").mkdir()
    text = REQUIREMENT.replace("REQUIRED", str(required))
    (tmp_path / "requirements" / "use.yaml").write_text(text)
    shares: list[float] = []
    certificate = rf.certify_table(
        rf.load_table("general-purpose-delta1"),
        tmp_path / "out",
        requirements=tmp_path / "requirements",
        on_progress=shares.append,
    )
    assert certificate.holds == holds
    assert certificate.sentence().startswith("general-purpose-delta1 ")
    assert shares[-1] == pytest.approx(1)
    assert (tmp_path / "out" / "certificate.html").exists()


def test_missing_requirements_are_refused(tmp_path: Path) -> None:
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


def test_league_has_a_row_per_entrant_and_network_and_a_page(tmp_path: Path) -> None:
    sets = tmp_path / "sets"
    sets.mkdir()
    (sets / "power.yaml").write_text(SET)
    table = rf.load_table("general-purpose-delta1")
    shares: list[float] = []
    league = rf.league(
        [table, "newreno"],
        alone=True,
        sets=sets,
        directory=tmp_path / "kept",
        on_progress=shares.append,
    )
    assert shares[-1] == pytest.approx(1)
    assert league.entrants == league.contenders == [table.name, "newreno"]
    frame = league.to_pandas()
    assert len(frame) == 4
    best = frame.groupby("network")["over_best"].max()
    assert list(best) == [1, 1]
    assert (frame["rtt_p50_ms"] <= frame["rtt_p99_ms"]).all()
    assert (frame["rtt_p50_ms"] > 20).all()
    assert (frame["packets_retransmitted"] > 0).any()
    assert frame["loss"].between(0, 1).all()
    rates = league.winning_rates().to_pandas().set_index("entrant")["power"]
    assert {name: rates[name] for name in league.entrants} == league.to_dict()["sets"][0][
        "winning_rates"
    ]
    assert "newreno" in repr(league)
    assert league.plot("power")._repr_png_().startswith(b"\x89PNG")
    league.save(tmp_path / "page")
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert f"Networks where {table.name} is farthest behind" in page
    assert (tmp_path / "page" / "power.csv").read_text().count("\n") == 5
    # The second run reads the stored cells and gives the same result.
    again = rf.league([table, "newreno"], alone=True, sets=sets, directory=tmp_path / "kept")
    assert again.to_dict() == league.to_dict()


def test_league_has_rivals_unless_it_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REMY_REFERENCE_DIR", raising=False)
    (tmp_path / "power.yaml").write_text(SET.replace("[2, 6]", "[2]"))
    league = rf.league("vegas", sets=tmp_path, quick=True)
    assert league.contenders == ["vegas"]
    assert league.entrants == ["vegas", "Cubic", "NewReno", "BBR v1", "BBR v3", "Copa", "Vivace"]


def test_results_say_which_half_of_the_draws_was_used(tmp_path: Path) -> None:
    sets = tmp_path / "sets"
    sets.mkdir()
    drawn = SET.replace("grid: {rate_mbps: [2, 6]}", "draws: 2")
    (sets / "drawn.yaml").write_text(
        drawn.replace("rtt_ms: 20", "rate_mbps: [2, 6], rtt_ms: {uniform: [20, 30]}")
    )
    (sets / "fixed.yaml").write_text(SET)
    league = rf.league("newreno", alone=True, sets=sets, draws="judging", directory=tmp_path)
    other = rf.league("newreno", alone=True, sets=sets, directory=tmp_path)
    seeded = rf.league("newreno", alone=True, sets=sets, draw_seed=3, directory=tmp_path)
    for results, name in (
        (league, "judging half"),
        (other, "tuning half"),
        (seeded, "tuning half of seed 3"),
    ):
        frame = results.to_pandas()
        assert set(frame[frame["set"] == "drawn"]["draws"]) == {name}
        assert set(frame[frame["set"] == "fixed"]["draws"]) == {"fixed"}
        assert [each["draws"] for each in results.to_dict()["sets"]] == [name, "fixed"]
        means = results.means().to_pandas()
        assert list(means["draws"]) == [name, "fixed"]
        goodput = frame.groupby("set")["goodput_mbps"].mean()
        assert list(means["goodput_mbps"]) == pytest.approx(list(goodput))
        results.save(tmp_path / name)
        page = (tmp_path / name / "index.html").read_text(encoding="utf-8")
        assert f"Means over the networks ({name})" in page
        assert "Means over the networks (fixed)" in page
        assert "RTT p95 ms" in page
        assert f"drawn,{name}," in (tmp_path / name / "drawn.csv").read_text()
    names = [set(each.to_pandas()["network"]) for each in (league, other, seeded)]
    assert [len(each) for each in names] == [4, 4, 4]
    # Only the two fixed networks are in all.
    assert len(names[0] | names[1] | names[2]) == 2 + 3 * 2
    with pytest.raises(ValueError, match="'both' is not a valid Half"):
        rf.league("newreno", sets=sets, draws="both")


def test_league_refuses_invalid_arguments(tmp_path: Path) -> None:
    with pytest.raises(rf.FileError, match="has no sets"):
        rf.league("vegas", sets=tmp_path)
    (tmp_path / "power.yaml").write_text(SET)
    with pytest.raises(rf.FileError, match="set other does not exist; the sets are power"):
        rf.league("vegas", sets=tmp_path, only=["other"])
    table = rf.load_table("generalist")
    with pytest.raises(ValueError, match="'generalist' is the name of two contenders"):
        rf.league([table, table], sets=tmp_path)
    with pytest.raises(ValueError, match="which the set determines"):
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


def test_attack_networks_can_be_measured_again(tmp_path: Path) -> None:
    table, spec = rf.load_table("general-purpose-delta1"), rf.Spec(SPACE)
    worst: list[float] = []
    attack = rf.attack(
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
    assert len(attack) == 2
    frame = attack.to_pandas()
    assert frame["loss_mean"].is_monotonic_decreasing
    differences = frame["rival_score_mean"] - frame["score_mean"]
    assert list(differences) == pytest.approx(list(frame["loss_mean"]))
    assert all(name in repr(attack) for name in frame["network"])
    attack.save(tmp_path / "found.yaml")
    again = rf.attack(table, spec, on=tmp_path / "found.yaml", fresh_runs=4, threads=1)
    assert again.to_dict()["networks"] == attack.to_dict()["networks"]
    other = rf.attack(table, spec, on=tmp_path / "found.yaml", fresh_runs=4, against="newreno")
    assert other.to_dict()["networks"] != attack.to_dict()["networks"]


def test_attack_refuses_invalid_arguments() -> None:
    table, spec = rf.load_table("generalist"), rf.Spec(SPACE)
    with pytest.raises(ValueError, match="networks is 2, but must be at least the 3 rounds"):
        rf.attack(table, spec, networks=2, rounds=3)
    with pytest.raises(ValueError, match="against is 'cubic=2', but must be a protocol"):
        rf.attack(table, spec, against="cubic=2")
    with pytest.raises(rf.SpecError, match="no quantity that varies"):
        rf.attack(table, spec.replace({"network.rate_mbps": 5}))
