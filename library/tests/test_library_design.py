"""Tests `remy_farm.design` and `remy_farm.sweep`: reproducing, resuming, progress and files."""

import asyncio
import gc
import json
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import remy_farm as rf
from library.tests.library_examples import NETWORK, joint_spec, paper_spec, small_table
from remy_farm.driver.loop import Directive
from remy_farm.driver.run import Interrupt
from remy_proto.v1 import rule_table_pb2
from remy_simulator.messages import axis_of


def test_the_designed_table_does_not_depend_on_the_number_of_threads() -> None:
    assert rf.design(joint_spec(), threads=1).table == rf.design(joint_spec(), threads=3).table


def test_rtts_since_loss_can_be_used_on_a_lossy_network() -> None:
    spec = rf.Spec(
        name="lossy",
        network={**NETWORK, "loss_probability": 0.02},
        signals=["rtt_ratio", "rtts_since_loss"],
        search=joint_spec(40).to_dict()["search"],
    )
    design = rf.design(spec, threads=1)
    assert design.table == rf.design(spec, threads=2).table
    axis = axis_of(rule_table_pb2.SIGNAL_RTTS_SINCE_LOSS)
    table = design.table.rule_table
    assert any(table.region(rule)[0][axis] > 0 for rule in range(table.rule_count))


def _overdriven(**objective: float) -> rf.Spec:
    """Two senders over a buffer of an eighth of a bandwidth-delay product, who can see losses."""
    joint = {"steps": 100, "validation_specimens": 16}
    return rf.Spec(
        name="shallow",
        network={
            "rate_mbps": 10,
            "rtt_ms": 50,
            "senders": 2,
            "buffer": {"packets": 5},
            "traffic": {"exponential_time": {"mean_ms": 2000}, "mean_off_ms": 1000},
        },
        objective={"delta": 0.1, **objective},
        signals=["rtt_ratio", "rtts_since_loss"],
        search={"mode": "joint", "specimens": 16, "simulated_seconds": 3, "joint": joint},
    )


def test_a_design_with_a_price_of_lost_packets_loses_fewer() -> None:
    free, priced = (
        rf.design(spec, threads=1) for spec in (_overdriven(), _overdriven(loss_price=10))
    )
    # Both on the same networks.
    scores = rf.evaluate([free, priced], _overdriven(), networks=16, threads=1)
    overdriving, careful = (score.summary() for score in scores)
    assert overdriving.packets.loss is not None
    assert careful.packets.loss is not None
    assert overdriving.packets.loss > 0.15
    assert careful.packets.loss < 0.05
    assert careful.throughput_over_link_rate is not None
    assert careful.throughput_over_link_rate > 0.7
    # The table that pays for losses looks at them.
    axis = axis_of(rule_table_pb2.SIGNAL_RTTS_SINCE_LOSS)
    table = priced.table.rule_table
    assert any(table.region(rule)[0][axis] > 0 for rule in range(table.rule_count))


def test_a_price_of_zero_designs_the_table_that_no_price_designs() -> None:
    free, zero = (
        rf.design(_overdriven(**objective), steps=8, threads=1)
        for objective in ({}, {"loss_price": 0})
    )
    assert zero.table == free.table


@pytest.mark.parametrize(
    ("mode", "purpose"), [("joint", "climb"), ("paper", "improve"), ("pattern", "improve")]
)
def test_every_search_and_its_validation_charge_the_price(mode: str, purpose: str) -> None:
    base = (paper_spec if mode == "paper" else joint_spec)().to_dict()
    if mode == "pattern":
        base["search"] = {"mode": "pattern", "specimens": 16, "simulated_seconds": 1}
    base["network"]["loss_probability"] = 0.1
    scores = []
    for price in (0, 50):
        spec = rf.Spec(**base | {"objective": {"loss_price": price}})
        design = rf.design(spec, threads=1, callback=lambda progress: progress.epoch > 0)
        rows = design.rows().to_dicts()
        scores.append(
            [
                next(row["score"] for row in rows if row["purpose"] == each)
                for each in (purpose, "validate")
            ]
        )
    # The first table loses a tenth of its packets: 50 * 0.1 = 5, on the few networks of a step.
    assert all(free - priced > 3 for free, priced in zip(*scores, strict=True))


@pytest.mark.parametrize("spec", [joint_spec, paper_spec])
def test_the_specification_of_a_time_limited_design_reproduces_it(
    spec: Callable[[], rf.Spec],
) -> None:
    first = rf.design(spec(), seconds=0.3)
    again = rf.design(first.spec)
    assert again.table == first.table
    assert again.steps == first.steps


def test_steps_and_seed_override_the_specification() -> None:
    design = rf.design(joint_spec(), steps=3, seed=7)
    assert design.spec.to_dict()["search"]["joint"]["steps"] == 3
    assert design.spec.seed == 7
    assert design.table != rf.design(joint_spec(), steps=3).table


def test_seconds_and_steps_exclude_each_other() -> None:
    with pytest.raises(rf.SpecError, match=r"seconds.* is 2, but must be left out.*steps.*3"):
        rf.design(joint_spec(), seconds=2, steps=3)


def test_the_callback_is_called_after_every_step_and_can_stop_the_design() -> None:
    reports: list[rf.Progress] = []

    def end_at_four(progress: rf.Progress) -> bool:
        reports.append(progress)
        return progress.step == 4

    design = rf.design(joint_spec(20), callback=end_at_four)
    assert [each.step for each in reports] == [1, 2, 3, 4]
    assert reports[-1].table == design.table
    assert reports[-1].rules >= 1
    assert reports[-1].cpu_seconds > 0
    assert not design.is_finished
    assert "interrupted" in repr(design)


def test_an_interrupted_design_resumes_in_its_directory_with_the_same_result(
    tmp_path: Path,
) -> None:
    whole = rf.design(joint_spec())
    out = tmp_path / "design"
    rf.design(joint_spec(), directory=out, callback=lambda progress: progress.step == 3)
    assert not rf.load_design(out).is_finished
    resumed = rf.design(joint_spec(), directory=out)
    assert resumed.is_finished
    assert resumed.table == whole.table
    assert resumed.steps == whole.steps


def test_a_design_interrupted_before_its_first_step_has_no_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Interrupt, "directive", lambda _: Directive.SUSPEND)
    design = rf.design(joint_spec(), seconds=5)
    assert (design.is_finished, design.steps, len(design.rows())) == (False, 0, 0)
    assert design.table == design.first


def test_resume_can_be_required_or_forbidden(tmp_path: Path) -> None:
    with pytest.raises(rf.FileError, match="holds no design to resume"):
        rf.design(joint_spec(), directory=tmp_path / "none", resume=True)
    rf.design(joint_spec(), directory=tmp_path / "one")
    with pytest.raises(rf.FileError, match="already holds a design"):
        rf.design(joint_spec(), directory=tmp_path / "one", resume=False)


def test_a_design_is_not_resumed_with_another_specification(tmp_path: Path) -> None:
    rf.design(joint_spec(), directory=tmp_path / "one")
    other = joint_spec().replace({"objective.delta": 5})
    with pytest.raises(rf.FileError, match=r"checkpoint\.bin"):
        rf.design(other, directory=tmp_path / "one")


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(rf.FileError, match=r"holds other files \(letter\.txt\)"):
        rf.design(joint_spec(), directory=tmp_path)


def test_a_saved_design_loads_unchanged_and_a_stopped_one_can_continue(tmp_path: Path) -> None:
    design = rf.design(joint_spec())
    design.save(tmp_path / "kept")
    loaded = rf.load_design(tmp_path / "kept")
    assert loaded.table == design.table
    assert loaded.spec == design.spec
    assert (loaded.steps, loaded.epochs) == (design.steps, design.epochs)
    assert loaded.reason == "schedule_complete"
    assert loaded.to_pandas().equals(design.to_pandas())
    with pytest.raises(rf.FileError, match="already exists"):
        design.save(tmp_path / "kept")
    longer = rf.design(joint_spec().replace({"stop.steps": 4}), directory=tmp_path / "short")
    assert longer.reason == "steps"
    assert rf.design(joint_spec(), directory=tmp_path / "short").table == design.table


def test_loading_a_directory_without_a_design_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rf.FileError, match=r"holds no design \(checkpoint\.bin is missing\)"):
        rf.load_design(tmp_path)


def test_a_design_can_start_from_a_given_table() -> None:
    first = rf.design(joint_spec(), steps=3).table
    design = rf.design(joint_spec(), steps=3, first=first)
    assert design.first == first


def test_a_first_table_with_other_rules_is_refused() -> None:
    with pytest.raises(rf.DesignerError, match="absolute"):
        rf.design(joint_spec(), first=small_table())


def test_steps_are_refused_for_a_search_without_a_schedule() -> None:
    with pytest.raises(rf.DesignerError, match=r"search\.mode is paper.* no schedule"):
        rf.design(paper_spec(), steps=3)


def test_rows_have_a_row_per_step_and_units_in_their_columns() -> None:
    design = rf.design(joint_spec())
    frame = design.to_pandas()
    assert list(frame["step"]) == [*range(1, design.steps + 1)]
    assert {"score", "score_standard_error", "cpu_seconds", "wall_seconds"} <= {*frame.columns}
    assert frame["cpu_seconds"].is_monotonic_increasing


def test_the_progress_line_is_written_only_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rf.design(joint_spec(), progress=False)
    assert capsys.readouterr() == ("", "")
    rf.design(joint_spec(), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "small: " in err
    assert err.endswith("\n")


def test_a_design_runs_inside_an_event_loop_as_in_a_notebook() -> None:
    reports: list[int] = []

    async def cell() -> tuple[rf.Design, rf.Scores]:
        design = rf.design(joint_spec(), callback=lambda progress: reports.append(progress.step))
        return design, rf.evaluate(design.table, joint_spec(), networks=2)

    design, scores = asyncio.run(cell())
    assert design.table == rf.design(joint_spec()).table
    assert reports == [*range(1, design.steps + 1)]
    assert scores.networks == 2


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_ctrl_c_stops_a_design_and_returns_its_result_so_far(in_a_loop: bool) -> None:
    def press(progress: rf.Progress) -> None:
        if progress.step == 3:
            signal.raise_signal(signal.SIGINT)

    async def cell() -> rf.Design:
        return rf.design(joint_spec(20), callback=press)

    design = asyncio.run(cell()) if in_a_loop else rf.design(joint_spec(20), callback=press)
    assert not design.is_finished
    assert design.steps == 3
    assert len(design.table) >= 1


def test_an_exception_of_the_callback_is_raised_by_design() -> None:
    def fail(_: rf.Progress) -> None:
        raise LookupError("mine")

    async def cell() -> None:
        rf.design(joint_spec(), callback=fail)

    with pytest.raises(LookupError, match="mine"):
        rf.design(joint_spec(), callback=fail)
    with pytest.raises(LookupError, match="mine"):
        asyncio.run(cell())


def test_the_report_is_written_and_shows_the_gain(tmp_path: Path) -> None:
    design = rf.design(joint_spec(), directory=tmp_path / "design")
    gain = design.report()
    assert (tmp_path / "design" / "report.html").exists()
    assert gain.score() == design.gain().score()
    versions = json.loads((tmp_path / "design" / "provenance.json").read_text())["versions"]
    assert "remy-farm" in versions


def test_a_sweep_designs_each_value_and_skips_finished_designs(
    tmp_path: Path,
) -> None:
    values = {"objective.delta": [0.1, 10]}
    sweep = rf.sweep(joint_spec(), values, directory=tmp_path / "sweep")
    assert sweep.names == ["delta=0.1", "delta=10"]
    alone = rf.design(joint_spec().replace({"objective.delta": 10}))
    assert sweep["delta=10"].table == alone.table
    frame = sweep.to_pandas()
    assert list(frame["delta"]) == [0.1, 10]
    assert {"throughput_over_link_rate_median", "delay_over_rtt_median"} <= {*frame.columns}
    assert {*frame["name"][frame["is_on_pareto_front"]]} == {*sweep.pareto_front()} != set()
    before = (tmp_path / "sweep" / "delta=10" / "checkpoint.bin").stat().st_mtime_ns
    again = rf.sweep(joint_spec(), values, directory=tmp_path / "sweep")
    assert (tmp_path / "sweep" / "delta=10" / "checkpoint.bin").stat().st_mtime_ns == before
    assert again.to_pandas().equals(frame)
    assert rf.load_sweep(tmp_path / "sweep").records == sweep.records


def test_a_sweep_s_design_can_be_used_after_the_sweep_is_deleted() -> None:
    member = rf.sweep(joint_spec(), {"objective.delta": np.array([0.5, 2])})["delta=2"]
    gc.collect()
    assert len(member.to_pandas()) == member.steps


def test_mixed_setting_types_share_a_column() -> None:
    sweep = rf.sweep(joint_spec(), {"network.buffer": ["infinite", {"packets": 20}]})
    assert list(sweep.to_arrow().column("buffer").to_pylist()) == ["infinite", "{'packets': 20}"]
    mixed = rf.sweep(joint_spec(), {"objective.delta": [0.5, 2]})
    assert mixed.to_arrow().column("delta").to_pylist() == [0.5, 2]


def test_a_sweep_of_an_unknown_key_is_refused_before_any_design(
    tmp_path: Path,
) -> None:
    with pytest.raises(rf.SpecError, match=r"dleta.* is not a known key"):
        rf.sweep(joint_spec(), {"objective.dleta": [1, 2]}, directory=tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()
