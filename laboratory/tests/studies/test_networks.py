"""Tests networks with links in studies and in sets of the league."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.specification import SpecError
from remy_farm.specification.network_files import read_topology
from remy_farm.specification.senders import parse_sender
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.draws import Draws
from remy_laboratory.studies.league import (
    Entrant,
    NetworkResult,
    SetNetwork,
    SetResult,
    network_files,
    plan_set,
    plot_set,
    read_set,
    run_set,
)
from remy_laboratory.studies.networks import REFERENCE_VARIABLE, study_network, with_value
from remy_laboratory.studies.pictures import figure_files
from remy_laboratory.studies.study import FigureStudy, Measure, parse_study
from remy_laboratory.studies.verdicts import FigureVerdict, measure_figure, plan_figure

_ON: dict[str, Any] = {"traffic": {"exponential_time": {"mean_ms": 10}, "mean_off_ms": 20}}
#: A network with one route over both links and one over the second.
_TWO_LINKS: dict[str, Any] = {
    **_ON,
    "rate_mbps": 12,
    "rtt_ms": 40,
    "buffer": {"bdp": 2},
    "loss_probability": 0.01,
    "links": [
        {"name": "first", "rate_mbps": 24, "delay_ms": 5},
        {"name": "second", "queue": "codel", "loss_probability": 0, "buffer": {"packets": 7}},
    ],
    "routes": [{"links": [0, 1], "return_delay_ms": 15}, {"links": [1]}],
}
_SENDERS = [parse_sender("newreno"), parse_sender("cubic=2")]


def test_link_inherits_missing_keys_from_the_network() -> None:
    first, second = study_network(_SENDERS, _TWO_LINKS).specimen.links
    assert (first.rate_packets_per_ms, second.rate_packets_per_ms) == (2, 1)
    assert (first.loss_probability, second.loss_probability) == (0.01, 0)
    # The first buffer is 2 BDP at the first link's own rate.
    assert (first.buffer_packets, second.buffer_packets) == (160, 7)
    assert (first.HasField("queue"), second.queue.name) == (False, "codel")


def test_each_kind_of_senders_has_its_route() -> None:
    first, second = study_network(_SENDERS, _TWO_LINKS).specimen.senders
    assert (first.count, list(first.route.links)) == (1, [0, 1])
    assert (second.count, list(second.route.links)) == (2, [1])
    # With a single kind and several routes, each sender has its own route.
    groups = study_network([parse_sender("newreno=3")], _TWO_LINKS).specimen.senders
    assert [(group.count, list(group.route.links)) for group in groups] == [
        (1, [0, 1]),
        (1, [1]),
        (1, [1]),
    ]


def test_sweep_of_a_link_changes_only_that_link() -> None:
    changed = with_value(_TWO_LINKS, "links[1].jitter_box.periodic.period_ms", 8)
    first, second = study_network(_SENDERS, changed).specimen.links
    assert second.jitter_box.periodic.period_ms == 8
    assert not first.HasField("jitter_box")
    assert "jitter_box" not in _TWO_LINKS["links"][1]


def test_rate_and_rtt_of_links_are_known_to_measures() -> None:
    walk = {"every_ms": 100, "rate_mbps": {"low": 12, "high": 36}}
    links = [{"rate_mbps": 24, "walk": walk}]
    network = {**_ON, "links": links, "routes": [{"delay_ms": 9}]}
    fields = study_network(_SENDERS, network).fields
    assert (fields["rate_mbps"], fields["rtt_ms"]) == (24, 9)


def test_plain_network_may_have_measurement_and_traffic() -> None:
    network = {
        "rate_mbps": 12,
        "rtt_ms": 40,
        "measurement": {"reordering": {"probability": 0.1, "delay_ms": 4}},
        "traffic": {"always": {}},
    }
    specimen = study_network([parse_sender("newreno=2")], network).specimen
    assert specimen.measurement.reordering_delay_ms == 4
    assert specimen.senders[0].traffic.WhichOneof("on") == "always"
    with pytest.raises(SpecError, match=r"traffic\.alway"):
        study_network(_SENDERS, {**network, "traffic": {"alway": {}}})


_RECORDED = """\
title: A recording
source: nobody
network:
  rtt_ms: 20
  senders: 1
  traffic: {exponential_time: {mean_ms: 1.0e+9}, mean_off_ms: 1}
  starts_apart_ms: 0
  links: [{trace: {path: published/some.down, semantics: ns2}}]
seconds: 4
runs: 1
rows: [{name: NewReno, sender: newreno}]
expect: [{row: NewReno, measure: utilization, at_least: 0.5, at_most: 1.01, source: nobody}]
picture: {drawing: bars}
"""


def _parse(text: str) -> FigureStudy:
    return parse_study(text, "small.yaml", study="small", name="figure")


def test_rows_with_a_published_trace_are_left_out_if_it_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = _parse(_RECORDED)
    monkeypatch.delenv(REFERENCE_VARIABLE, raising=False)
    (why,) = plan_figure(study, tmp_path, quick=True).left_out.values()
    assert REFERENCE_VARIABLE in why
    (tmp_path / "traces").mkdir()
    lines = "".join(f"{time_ms}\n" for time_ms in range(2000))
    (tmp_path / "traces" / "some.down").write_text(lines, encoding="utf-8")
    monkeypatch.setenv(REFERENCE_VARIABLE, str(tmp_path))
    plan = plan_figure(study, tmp_path, quick=True)
    with closing(LocalEvaluator()) as evaluator, closing(CellStore(tmp_path / "c.db")) as store:
        result = measure_figure(plan, CellRunner(evaluator.evaluate, store), lambda _: None)
    assert result.verdict()[0] == FigureVerdict.REPRODUCED
    (cell,) = result.rows["NewReno"].cells
    # The trace has a packet of 1,500 bytes per ms, except after its last line.
    assert cell.network["rate_mbps"] == pytest.approx(12, rel=0.01)
    assert cell.values(Measure.RTT_MS)[0] >= 20


def test_own_trace_path_is_relative_to_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working directory does not matter."""
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "some.down").write_text("1\n2\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path.root)
    text = _RECORDED.replace("published/some.down", "traces/some.down")
    study = parse_study(text, str(tmp_path / "small.yaml"), study="small", name="figure")
    assert not plan_figure(study, tmp_path, quick=True).left_out


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("links: [{trace", "links: [{tracer", "tracer"),
        ("links: [{", "links: {a: [{", "network.links is a mapping, but must be a list"),
        (
            "trace: {path: published/some.down, semantics: ns2}",
            "delay_ms: x",
            "'x'",
        ),
        ("  rtt_ms: 20\n", "", "lacks rtt_ms or routes for 'NewReno'"),
    ],
)
def test_invalid_link_is_refused_when_the_study_is_read(
    right: str, wrong: str, sentence: str
) -> None:
    text = _RECORDED.replace(right, wrong)
    if wrong.endswith("{a: [{"):
        text = text.replace("}]\nseconds", "}]}\nseconds")
    with pytest.raises(SpecError) as caught:
        _parse(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


_SET = """\
title: Late
source: nobody
network:
  rate_mbps: 4
  rtt_ms: 20
  ack_bytes: 40
  traffic: {exponential_time: {mean_ms: 1.0e+9}, mean_off_ms: 1}
  starts_apart_ms: 50
  links:
  - {name: there, delay_ms: 10}
  - {name: back, delay_ms: 10, jitter_box: {periodic: {period_ms: 1}}}
  routes: [{links: [0], return_links: [1]}]
senders: 2
grid:
  "links[1].jitter_box.periodic.period_ms": [2, 64]
score: equality
seconds: 2
runs: 1
"""


def test_network_files_of_the_page_describe_the_simulated_networks(tmp_path: Path) -> None:
    path = tmp_path / "late.yaml"
    path.write_text(_SET, encoding="utf-8")
    league = read_set(path)
    entrant = Entrant("newreno", parse_sender("newreno"))
    plan = plan_set(league, [entrant], Draws(), quick=True)
    with closing(LocalEvaluator()) as evaluator, closing(CellStore(tmp_path / "c.db")) as store:
        result = run_set(plan, CellRunner(evaluator.evaluate, store), lambda _: None)
    assert [on.name for on in plan.networks] == [
        "2 ms between releases",
        "64 ms between releases",
    ]
    files = network_files([(result, entrant, network.on) for network in result.networks])
    assert sorted(
        yaml.safe_load(text)["links"][1]["jitter_box"]["periodic"]["period_ms"]
        for text in files.values()
    ) == [2, 64]
    (_, _, cells) = plan.entries[0]
    for name, text in files.items():
        file = tmp_path / Path(name).name
        file.write_text(text, encoding="utf-8")
        specimens = [cell.specimen for cell in cells]
        assert read_topology(file).specimen in specimens


def test_heat_map_has_room_for_long_network_names(tmp_path: Path) -> None:
    """Matplotlib warns if the labels leave no room, and a warning fails the test."""
    path = tmp_path / "late.yaml"
    path.write_text(_SET, encoding="utf-8")
    entrant = Entrant("newreno", parse_sender("newreno"))
    networks = [
        NetworkResult(SetNetwork(f"{number} " + 44 * "x", {}, None, 1), {"newreno": 1.0}, {})
        for number in range(8)
    ]
    assert figure_files(plot_set(SetResult(read_set(path), Draws(), 30, [entrant], 1, networks)))
