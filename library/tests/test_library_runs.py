"""Tests `remy_farm.evaluate` and `remy_farm.simulate`: rows, plots, files and reproducibility."""

from pathlib import Path
from typing import Any

import pytest

import remy_farm as rf
from library.tests.library_examples import joint_spec, small_table
from library.tests.test_library_tables import is_well_formed


def network(**keys: Any) -> rf.Network:
    defaults: dict[str, Any] = {"rate_mbps": 10, "rtt_ms": 50, "buffer": {"packets": 40}}
    return rf.Network(senders=[small_table(), "cubic"], **{**defaults, **keys})


@pytest.fixture(scope="module")
def scores() -> rf.Scores:
    return rf.evaluate([small_table(), "cubic", small_table()], joint_spec(), networks=4)


@pytest.fixture(scope="module")
def run() -> rf.Run:
    return rf.simulate(network(), seconds=3, record_every_ms=100)


def test_contenders_keep_their_order_and_get_distinct_names(scores: rf.Scores) -> None:
    assert scores.names == ["tiny", "cubic", "tiny (2)"]
    assert scores["tiny"].digest == scores["tiny (2)"].digest != scores["cubic"].digest


def test_a_score_does_not_depend_on_other_contenders_or_threads(scores: rf.Scores) -> None:
    alone = rf.evaluate("cubic", joint_spec(), networks=4, threads=1)
    assert alone["cubic"].digest == scores["cubic"].digest


def test_another_seed_draws_other_networks(scores: rf.Scores) -> None:
    other = rf.evaluate("cubic", joint_spec(), networks=4, seed=2)
    assert other["cubic"].digest != scores["cubic"].digest


def test_scores_have_rows_per_contender_and_per_network(scores: rf.Scores) -> None:
    frame = scores.to_pandas()
    assert list(frame["name"]) == scores.names
    assert list(frame["networks"]) == [4, 4, 4]
    each = scores.by_network().to_pandas()
    assert len(each) == 12
    for rows, name in ((frame, "rtt_p{}_ms_median"), (each, "rtt_p{}_ms")):
        # On some networks no sender was ever on.
        columns = [name.format(percent) for percent in (50, 95, 99)]
        median, high, highest = (rows.dropna(subset=columns)[column] for column in columns)
        assert len(median) >= len(rows) / 2
        assert (median > 0).all()
        assert (median <= high).all()
        assert (high <= highest).all()
    sums = each.groupby("name")["packets_retransmitted"].sum()
    assert dict(sums) == dict(zip(frame["name"], frame["packets_retransmitted"], strict=True))
    losses = each.groupby("name")["loss"].mean()
    assert losses["cubic"] == pytest.approx(frame.set_index("name")["loss_mean"]["cubic"])
    assert each["rate_mbps"].between(10, 20).all()
    means = each.groupby("name")["score"].mean()
    assert means["cubic"] == pytest.approx(frame.set_index("name")["score_mean"]["cubic"])


def test_a_difference_is_paired_by_network(scores: rf.Scores) -> None:
    each = scores.by_network().to_pandas().pivot_table("score", "network", "name")
    difference = scores.difference("tiny", "cubic")
    assert difference is not None
    assert difference.mean == pytest.approx((each["tiny"] - each["cubic"]).mean())
    same = scores.difference("tiny", "tiny (2)")
    assert same is not None
    assert (same.mean, same.standard_error) == (0, 0)


def test_saved_scores_load_unchanged(scores: rf.Scores, tmp_path: Path) -> None:
    scores.save(tmp_path / "scores.json")
    loaded = rf.load_scores(tmp_path / "scores.json")
    assert repr(loaded) == repr(scores)
    assert loaded.by_network().to_dicts() == scores.by_network().to_dicts()
    assert loaded["tiny"].trial.rule_uses == scores["tiny"].trial.rule_uses


def test_a_file_without_scores_or_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(rf.FileError, match=r"other\.json is not a file that Scores\.save wrote"):
        rf.load_scores(tmp_path / "other.json")
    with pytest.raises(rf.FileError, match=r"other\.json is not a file that Run\.save wrote"):
        rf.load_run(tmp_path / "other.json")


def test_scores_have_a_text_an_html_and_a_plot(scores: rf.Scores) -> None:
    assert [line.split()[0] for line in repr(scores).splitlines()[2:]] == ["tiny", "cubic", "tiny"]
    assert is_well_formed(scores._repr_html_())
    assert scores.plot()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("contender", "problem"),
    [
        ("qubic", "qubic"),
        ("cubic=3", r"'cubic=3' must be a protocol"),
        ("cubic,rtt_ms=5", "'cubic,rtt_ms=5' must be a protocol"),
    ],
)
def test_an_invalid_contender_is_refused_before_any_simulation(
    contender: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        rf.evaluate([small_table(), contender], joint_spec(), networks=2)


def test_too_many_tables_are_refused() -> None:
    with pytest.raises(rf.SpecError, match=r"designs 1 table \(remycc\), but .* is 2"):
        rf.evaluate((small_table(), small_table()), joint_spec(), networks=2)


def test_contenders_in_a_tuple_are_refused() -> None:
    with pytest.raises(TypeError, match="several contenders must be a list"):
        rf.evaluate((small_table(), "cubic"), joint_spec(), networks=2)  # type: ignore[arg-type]


def test_zero_networks_are_refused() -> None:
    with pytest.raises(ValueError, match="networks is 0, but must be at least 1"):
        rf.evaluate("cubic", joint_spec(), networks=0)


def test_equal_networks_and_seeds_give_equal_runs(run: rf.Run) -> None:
    assert rf.simulate(network(), seconds=3).digest == run.digest
    assert rf.simulate(network(), seconds=3, seed=2).digest == run.digest
    random = network(traffic={"exponential_time": {"mean_ms": 500}, "mean_off_ms": 500})
    digests = {rf.simulate(random, seconds=3, seed=seed).digest for seed in (1, 1, 2)}
    assert len(digests) == 2


def test_the_senders_of_a_run_share_the_link(run: rf.Run) -> None:
    frame = run.to_pandas()
    assert list(frame["kind"]) == ["tiny", "cubic"] == run.sender_names
    assert 8 < frame["throughput_mbps"].sum() <= 10
    assert (frame["delay_ms"] >= 50).all()
    assert list(run.by_kind().to_pandas()["senders"]) == [1, 1]
    assert [sender.packets_received for sender in run.senders] == [*frame["packets_received"]]


def test_a_recorded_run_has_rows_over_time_and_a_plot(run: rf.Run) -> None:
    frame = run.over_time().to_pandas()
    assert frame["time_ms"].max() == pytest.approx(3000, abs=100)
    assert {"window_packets", "rate_mbps", "rtt_ms"} <= {*frame.columns}
    assert run.plot()._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="record_every_ms"):
        rf.simulate(network(), seconds=1).over_time()


def test_a_saved_run_loads_unchanged(run: rf.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run.json")
    loaded = rf.load_run(tmp_path / "run.json")
    assert loaded.to_dict() == run.to_dict()
    assert repr(loaded) == repr(run)
    assert loaded.over_time().to_dicts() == run.over_time().to_dicts()
    assert loaded.senders == run.senders


def test_a_run_has_a_text_and_an_html(run: rf.Run) -> None:
    assert "2 senders for 3 s" in repr(run)
    assert is_well_formed(run._repr_html_())


def test_senders_may_have_a_count_and_their_own_traffic() -> None:
    groups: list[rf.Table | str | dict[str, Any]] = [
        {"table": small_table(), "count": 3},
        {"protocol": "cubic", "traffic": {"intervals": {"begin_ms": [500], "end_ms": [1000]}}},
    ]
    run = rf.simulate(rf.Network(rate_mbps=10, rtt_ms=50, senders=groups), seconds=2)
    assert run.sender_names == ["tiny", "tiny", "tiny", "cubic"]
    assert [sender.on_ms for sender in run.senders] == [2000, 2000, 2000, 500]


@pytest.mark.parametrize(
    "senders",
    [
        ["cubic=2", "newreno"],
        [{"protocol": "cubic", "count": 2}, {"protocol": "newreno"}],
        [{"protocol": "cubic", "count": 2, "rtt_ms": 50}, "newreno"],
    ],
)
def test_senders_can_be_given_as_text_or_as_keys(senders: list[Any]) -> None:
    expected = rf.simulate(
        rf.Network(rate_mbps=10, rtt_ms=50, senders=["cubic", "cubic", "newreno"]), seconds=2
    )
    run = rf.simulate(rf.Network(rate_mbps=10, rtt_ms=50, senders=senders), seconds=2)
    assert run.by_kind().to_pandas().equals(expected.by_kind().to_pandas())


def test_tables_run_on_the_network_s_transport() -> None:
    on_tcp = rf.simulate(network(transport="tcp"), seconds=2)
    assert list(on_tcp.by_kind().to_pandas()["throughput_of"]) == ["packets_in_order"] * 2
    assert on_tcp.digest != rf.simulate(network(), seconds=2).digest


def test_all_mistakes_of_a_network_are_reported() -> None:
    with pytest.raises(rf.SpecError) as caught:
        rf.Network(rate_mbps=-1, rtt=50, senders=["qubic"])
    assert "\n" not in str(caught.value)
    paths = " ".join(each.path for each in caught.value.violations)
    assert "rate_mbps" in paths
    assert "senders[0]" in paths


@pytest.mark.parametrize(
    ("seconds", "every_ms"), [(0, None), (-1, None), (float("nan"), None), (1, 0)]
)
def test_numbers_that_are_not_positive_are_refused(seconds: float, every_ms: float | None) -> None:
    with pytest.raises(ValueError, match="must be positive and finite"):
        rf.simulate(network(), seconds=seconds, record_every_ms=every_ms)
