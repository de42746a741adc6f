"""Tests the strict reader of study files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laboratory.tests.studies.small_studies import SMALL
from remy_farm.specification import SpecError
from remy_laboratory.studies.draws import Draws
from remy_laboratory.studies.league import read_set
from remy_laboratory.studies.networks import (
    key_paths,
    merge_networks,
    value_at,
    value_check,
    with_value,
)
from remy_laboratory.studies.study import (
    FigureStudy,
    Measure,
    find_studies,
    parse_study,
    read_study,
)

_DATA = Path(__file__).parents[3] / "data"
_STUDIES = find_studies(_DATA / "studies")
_SETS = sorted((_DATA / "league").glob("*.yaml"))


def _parse(text: str) -> FigureStudy:
    return parse_study(text, "small.yaml", study="small", name="figure")


@pytest.mark.parametrize("path", _STUDIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_installed_study_is_valid(path: Path) -> None:
    study = read_study(path)
    assert study.rows or study.not_reproducible
    assert study.source
    # A study with rows must have expectations.
    assert study.expectations or not study.rows


@pytest.mark.parametrize("path", _STUDIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_tables_of_installed_studies_exist(path: Path) -> None:
    for row in read_study(path).rows:
        for sender in row.senders:
            if sender.remycc is not None and sender.remycc not in row.published_tables():
                assert (_DATA / sender.remycc).exists()


@pytest.mark.parametrize("path", _SETS, ids=lambda path: path.stem)
def test_installed_league_set_is_valid(path: Path) -> None:
    league = read_set(path)
    quick, full = (league.networks(Draws(), quick=length) for length in (True, False))
    assert len(quick) <= len(full)
    assert len({each.name for each in full}) == len(full)


def test_all_studies_are_found() -> None:
    assert {path.parent.name for path in _STUDIES} == {
        "learnability",
        "ns3",
        "pcc",
        "sigcomm2013",
        "student",
        "thesis",
    }


def test_figures_are_sorted_by_number() -> None:
    names = [path.stem for path in _STUDIES if path.parent.name == "pcc"]
    assert names.index("figure-9") < names.index("figure-10")


def test_study_has_the_values_of_its_file() -> None:
    study = _parse(SMALL)
    assert study.key == "small/figure"
    assert [row.name for row in study.rows] == ["NewReno", "Vegas", "other"]
    assert study.runs.select(quick=True) == (2,)
    assert study.runs.select(quick=False) == (3,)
    assert study.sweep is not None
    assert study.sweep.values.select(quick=False) == (2, 8)
    assert study.rows[2].published_tables() == ["published/none.dna"]
    sends, faster = study.expectations
    assert sends.quantity.measure == Measure.UTILIZATION
    assert (sends.minimum, sends.maximum) == (0.1, None)
    assert (faster.quantity.at, faster.quantity.over_at) == (8, 2)


def test_margin_is_a_percentage_or_a_number() -> None:
    line = "- {row: NewReno, value: 20, within: %s, source: x}\npicture:"
    for within, bounds in (("5 %", (19, 21)), ("0.5", (19.5, 20.5))):
        (*_, last) = _parse(SMALL.replace("picture:", line % within)).expectations
        assert (last.minimum, last.maximum) == pytest.approx(bounds)


def test_expectation_holds_within_two_standard_errors() -> None:
    (sends, _) = _parse(SMALL).expectations
    assert sends.holds(0.11, 0.0)
    assert not sends.holds(0.09, 0.001)
    assert sends.holds(0.09, 0.0051)


_MISTAKES = {
    "title: Two protocols": ("title: [a]", "title is a list, but must be text"),
    "rtt_ms: 20": ("rtt_ms: -1", "network.rtt_ms is -1, but must be a number above 0"),
    "buffer: {bdp: 1}": (
        "buffer: {bdp: 1, ms: 3}",
        "network.buffer has ms and bdp, but must have one of them",
    ),
    "senders: 2": ("sendrs: 2", "network.sendrs is not a known key; did you mean senders?"),
    "rtt_ms: 20,": (
        "rtt_ms: 20, off_ms: 500,",
        "network.off_ms is not a known key; it is traffic.mean_off_ms now",
    ),
    "runs: {quick: 2, full: 3}": ("runs: 0", "runs is 0, but must be 1 to 100000"),
    "{field: rate_mbps": ("{field: queue", "sweep.field is 'queue', which cannot be swept"),
    "values: [2, 8]": ("values: []", "sweep.values is empty"),
    "name: Vegas": ("name: NewReno", "rows has 'NewReno' twice"),
    "sender: vegas": ("sender: vega", "rows[1].sender is 'vega'"),
    "queue: codel": ("queue: kodel", "rows[1].network.queue is 'kodel'"),
    "row: NewReno, measure": (
        "row: newreno, measure",
        "which is not a row; did you mean NewReno?",
    ),
    "measure: utilization": ("measure: use", "expect[0].measure is 'use', but must be one of"),
    "at_least: 0.1, ": ("", "expect[0] must have value and within, or at_least, or at_most"),
    "at_least: 1.5": (
        "value: 1.5",
        "expect[1].within is empty, but must be a percentage, e.g. 5 %",
    ),
    "drawing: curves": ("drawing: queue", "record_every_ms is missing"),
    "seconds: 4": ("seconds: many", "seconds is 'many', but must be a number above 0"),
}


@pytest.mark.parametrize("right", _MISTAKES)
def test_invalid_field_is_refused_in_one_sentence(right: str) -> None:
    wrong, sentence = _MISTAKES[right]
    assert right in SMALL
    with pytest.raises(SpecError) as caught:
        _parse(SMALL.replace(right, wrong))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("small.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("simulator", "sentence"),
    [
        ("ns3", "network has buffer.bdp; figures with rows in ns-3 allow rate_mbps, rtt_ms,"),
        ("ns4", "rows[2].simulator is 'ns4', but must be ns3"),
        (
            "ns3, initial_window_packets: 2",
            "rows[2].initial_window_packets is only allowed for rows on tcp in ns3",
        ),
        (
            "ns3, initial_window_packets: 2.5",
            "rows[2].initial_window_packets is 2.5, but must be 1 to 1000",
        ),
    ],
)
def test_rows_in_ns3_are_refused_if_ns3_lacks_a_feature(simulator: str, sentence: str) -> None:
    row = 'sender: "remycc:published/none.dna"'
    with pytest.raises(SpecError) as caught:
        _parse(SMALL.replace(row, f"{row}, simulator: {simulator}"))
    assert sentence in str(caught.value)


def test_figure_without_rows_needs_a_reason() -> None:
    with pytest.raises(SpecError, match="give the reason in not_reproducible"):
        _parse("title: a\nsource: b\n")
    study = _parse("title: a\nsource: b\nnot_reproducible: it is lost\n")
    assert study.not_reproducible == "it is lost"


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "title source network rows sweep runs expect row sender picture value within field "
                "values quick full name".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_TREES)
def test_any_file_is_read_or_refused_in_one_sentence(tree: object) -> None:
    try:
        study = _parse(json.dumps(tree))
    except SpecError as refused:
        sentence = str(refused)
    else:
        sentence = study.title
    assert sentence
    assert "\n" not in sentence


_PATHS = (
    *("rate_mbps", "rtt_ms", "senders", "packet_bytes", "loss_probability", "first_on_mean_ms"),
    *("buffer.packets", "buffer.ms", "buffer.bdp", "buffer.kilobytes"),
    *("traffic.exponential_time.mean_ms", "traffic.exponential_bytes.mean_bytes"),
    *("traffic.mean_off_ms", "traffic.load"),
)
#: Keys that exclude each other.
_ALTERNATIVES = (
    {path for path in _PATHS if path.startswith("buffer.")},
    {"traffic.exponential_time.mean_ms", "traffic.exponential_bytes.mean_bytes"},
    {"traffic.mean_off_ms", "traffic.load"},
)


def _layer(values: dict[str, float]) -> dict[str, Any]:
    network: dict[str, Any] = {}
    for path, value in values.items():
        network = with_value(network, path, value)
    return network


_LAYERS = st.dictionaries(st.sampled_from(_PATHS), st.floats(1, 9), max_size=6).map(_layer)


@given(_LAYERS, _LAYERS)
def test_layer_overrides_equal_and_alternative_keys(
    below: dict[str, Any], above: dict[str, Any]
) -> None:
    merged = merge_networks(below, above)
    merged_paths, upper_paths = set(key_paths(merged)), set(key_paths(above))
    assert upper_paths <= merged_paths <= upper_paths | set(key_paths(below))
    for alternatives in _ALTERNATIVES:
        assert len(merged_paths & alternatives) <= 1
    assert all(value_at(merged, path) == value_at(above, path) for path in upper_paths)
    kept_paths = set(key_paths(below)) - upper_paths
    for alternatives in _ALTERNATIVES:
        if upper_paths & alternatives:
            kept_paths -= alternatives
    assert kept_paths <= merged_paths


@pytest.mark.parametrize("path", [*_PATHS, "links[0].jitter_box.periodic.period_ms"])
def test_numbers_of_a_network_can_be_swept(path: str) -> None:
    check = value_check(path)
    assert check is not None
    assert not check[0](-1)


@pytest.mark.parametrize("path", ["queue", "links", "traffic", "rate", "links[0].queue", "buffer"])
def test_other_keys_cannot_be_swept(path: str) -> None:
    assert value_check(path) is None
