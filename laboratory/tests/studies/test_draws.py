"""Tests the networks that sets draw from distributions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remy_farm.evaluation import SenderSpec
from remy_farm.specification import SpecError, extent
from remy_farm.specification.senders import parse_sender
from remy_laboratory.studies.draws import Draws, Half, drawn_quantities
from remy_laboratory.studies.league import Entrant, LeagueSet, SetNetwork, read_set
from remy_laboratory.studies.networks import merge_networks, study_network

_FOLDERS = [Path(__file__).parents[3] / "data" / name for name in ("league", "robustness")]
_DRAWN = [
    path
    for folder in _FOLDERS
    for path in sorted(folder.glob("*.yaml"))
    if "\ndraws:" in path.read_text(encoding="utf-8")
]
_TUNING, _JUDGING = Draws(Half.TUNING), Draws(Half.JUDGING)


def _drawn_sets() -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "path", _DRAWN, ids=lambda path: f"{path.parent.name}-{path.stem}"
    )


def _networks(league: LeagueSet, draws: Draws, *, quick: bool = False) -> list[SetNetwork]:
    return league.networks(draws, quick=quick)


def test_the_league_draws_networks() -> None:
    assert {path.stem for path in _DRAWN if path.parent.name == "league"} == {
        "company",
        "crowds",
        "fast-starts",
        "held-acks",
        "policers",
        "rate-steps",
        "reordering",
        "rtt-steps",
        "satellites",
        "shallow-crowds",
        "unequal-rtts",
    }


@_drawn_sets()
def test_same_seed_gives_the_same_networks_and_halves_share_none(path: Path) -> None:
    league = read_set(path)
    tuning, judging = _networks(league, _TUNING), _networks(league, _JUDGING)
    assert tuning == _networks(read_set(path), Draws(Half.TUNING))
    assert tuning != _networks(league, Draws(Half.TUNING, seed=2))

    def keys(networks: list[SetNetwork]) -> set[str]:
        return {repr(sorted(each.network.items())) for each in networks}

    assert len(keys(tuning)) == len(tuning)
    assert not keys(tuning) & keys(judging)


@_drawn_sets()
def test_quick_profile_has_the_first_networks(path: Path) -> None:
    league = read_set(path)
    quick = {each.name for each in _networks(league, _TUNING, quick=True)}
    full = {each.name for each in _networks(league, _TUNING)}
    # Requirements have no quick profile.
    assert quick < full if path.parent.name == "league" else quick == full


@_drawn_sets()
@pytest.mark.parametrize("draws", [_TUNING, _JUDGING], ids=str)
def test_networks_are_valid_and_within_the_ranges(path: Path, draws: Draws) -> None:
    league = read_set(path)
    places = league.places or (None,)
    networks = _networks(league, draws)
    (count,) = league.draws.full if league.draws else (0,)
    for number, place in enumerate(places):
        layers = [league.network, *([place.network] if place else [])]
        quantities = drawn_quantities(merge_networks(*layers)).distributions
        assert quantities
        stem = f"{place.name} " if place else ""
        for index in range(int(count)):
            on = networks[number * int(count) + index]
            # The name lists the drawn values, in the order of the quantities.
            values = on.name.removeprefix(f"{stem}{index + 1}: ").split(", ")
            for text, distribution in zip(values, quantities.values(), strict=True):
                low, high = extent(distribution)
                value = float(text.partition(" ")[0])
                assert low * (1 - 1e-5) <= value <= high * (1 + 1e-5)
    for on in networks:
        study_network(Entrant("x", parse_sender("newreno")).row(on).senders, on.network)


def _schedules(name: str, draws: Draws) -> Iterator[tuple[SetNetwork, list[dict[str, Any]]]]:
    path = _FOLDERS[0] / f"{name}.yaml"
    for on in _networks(read_set(path), draws):
        yield on, on.network["links"][0]["schedule"]["steps"]


@pytest.mark.parametrize("draws", [_TUNING, _JUDGING], ids=str)
def test_rtt_steps_lengthen_the_rtt_by_a_drawn_ratio(draws: Draws) -> None:
    ratios = []
    for on, (step,) in _schedules("rtt-steps", draws):
        assert step["at_ms"] == 10_000
        ratios.append(1 + step["delay_ms"] / on.network["rtt_ms"])
        assert step["rate_mbps"] == on.network["rate_mbps"]
    assert all(1.05 - 1e-6 <= ratio <= 2.5 + 1e-6 for ratio in ratios)
    assert max(ratios) - min(ratios) > 0.7


@pytest.mark.parametrize("draws", [_TUNING, _JUDGING], ids=str)
def test_rate_steps_go_down_and_return(draws: Draws) -> None:
    for on, (down, up) in _schedules("rate-steps", draws):
        first = on.network["rate_mbps"]
        assert 10_000 <= down["at_ms"] <= 15_000
        assert 25_000 <= up["at_ms"] <= 30_000
        assert 0.05 - 1e-6 <= down["rate_mbps"] / first <= 0.5 + 1e-6
        assert up["rate_mbps"] == pytest.approx(first)


@pytest.mark.parametrize("draws", [_TUNING, _JUDGING], ids=str)
def test_satellite_paths_change_at_drawn_times_and_some_begin_with_an_outage(draws: Draws) -> None:
    changes = outages = 0
    for on, steps in _schedules("satellites", draws):
        rtt_ms = on.network["rtt_ms"]
        times = [0.0]
        is_outage = False
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            assert 25 - 1e-6 <= rtt_ms + step["delay_ms"] <= 110 + 1e-6
            if step["rate_mbps"] == 0:
                assert following is not None
                assert 50 <= following["at_ms"] - step["at_ms"] <= 500
                assert following["delay_ms"] == step["delay_ms"]
                outages += 1
            else:
                assert 8 <= step["rate_mbps"] <= 100
            if not is_outage:
                times.append(step["at_ms"])
                changes += 1
            # The next step ends the outage.
            is_outage = step["rate_mbps"] == 0
        gaps = [after - before for before, after in itertools.pairwise(times)]
        assert all(4999 <= gap <= 15_001 for gap in gaps)
    assert 0.1 < outages / changes < 0.45


def test_rtts_of_senders_differ_by_the_drawn_ratio() -> None:
    league = read_set(_FOLDERS[0] / "unequal-rtts.yaml")
    for on in _networks(league, _TUNING):
        row = Entrant("x", parse_sender("newreno")).row(on)
        senders = study_network(row.senders, on.network).tree["senders"]
        rtts_ms = [each["rtt_ms"] for each in senders]
        assert len(rtts_ms) == on.senders
        assert rtts_ms[0] == pytest.approx(on.network["rtt_ms"])
        assert rtts_ms[-1] / rtts_ms[0] == pytest.approx(on.network["rtt_spread"], rel=1e-4)
        steps = [after / before for before, after in itertools.pairwise(rtts_ms)]
        assert max(steps) == pytest.approx(min(steps), rel=1e-4)


def test_places_may_have_rivals_of_their_own() -> None:
    league = read_set(_FOLDERS[0] / "company.yaml")
    by_place: dict[str, tuple[SenderSpec | None, int]] = {
        on.name.rpartition(":")[0].rpartition(" ")[0]: (on.rival, on.senders)
        for on in _networks(league, _TUNING)
    }
    rival, senders = by_place["4 beside 4 BBR v3"]
    assert (rival, senders) == (parse_sender("bbr,variant=v3=4"), 4)
    assert by_place["beside Copa"] == (parse_sender("copa"), 1)


DRAWN = """\
title: Drawn
source: nobody
network:
  rate_mbps: {uniform: [2, 6]}
  rtt_ms: 20
  buffer: {bdp: 1}
  traffic: {always: {}}
  starts_apart_ms: {uniform: [0, 10]}
changes:
- {every_ms: 500, rate_ratio: {uniform: [0.5, 1]}, outage_ms: 20, outage_probability: 0.5}
draws: 3
seconds: 2
runs: 1
"""


def test_each_network_has_its_own_draws_and_a_network_does_not_depend_on_their_number(
    tmp_path: Path,
) -> None:
    path = tmp_path / "drawn.yaml"
    path.write_text(DRAWN)
    three = _networks(read_set(path), _TUNING)
    path.write_text(DRAWN.replace("draws: 3", "draws: 2"))
    assert _networks(read_set(path), _TUNING) == three[:2]
    assert len({each.network["rate_mbps"] for each in three}) == 3


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("uniform: [2, 6]", "uniform: [6, 2]", "network.rate_mbps goes from 6 to 2"),
        ("uniform: [0, 10]", "uniform: [-1, 10]", "has the value -1"),
        ("draws: 3\n", "", "starts_apart_ms is a mapping, but must be a number"),
        ("draws: 3\n", "draws: 3\ngrid: {rtt_ms: [20]}\n", "grid excludes draws"),
        ("every_ms: 500", "at_ms: 1, every_ms: 500", "at_ms and every_ms exclude each other"),
        ("every_ms: 500, ", "", "at_ms and every_ms exclude each other"),
        ("outage_ms: 20", "outage_ms: 600", "outage_ms reaches 600, but must be shorter"),
        ("outage_probability: 0.5", "outage_probability: 2", "outage_probability is 2"),
        (
            "rate_ratio: {uniform: [0.5, 1]}",
            "rate_ratio: 1, rate_mbps: 2",
            "rate_mbps and rate_ratio exclude each other",
        ),
        ("rate_ratio: {", "rate_ration: {", "rate_ration is not a known key"),
        ("  rtt_ms: 20\n", "", "lacks rtt_ms"),
        ("draws: 3", "draws: 3\nscore: fair_power", "record_every_ms is missing"),
        ("draws: 3", "draws: 3\nmeasured_from_s: 2", "measured_from_s is 2"),
        ("draws: 3", "draws: 3\nat_most: {lost: 0.1}", "names 'lost', but must name score,"),
        ("draws: 3", "draws: 3\nrival: cubi", "rival is 'cubi'"),
    ],
)
def test_invalid_set_is_refused(right: str, wrong: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "drawn.yaml"
    assert right in DRAWN
    path.write_text(DRAWN.replace(right, wrong))
    with pytest.raises(SpecError) as caught:
        read_set(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_distributions_and_changes_need_draws(tmp_path: Path) -> None:
    path = tmp_path / "drawn.yaml"
    text = DRAWN.replace("draws: 3\n", "").replace("{uniform: [0, 10]}", "5")
    before, _, after = text.partition("changes:")
    path.write_text(before + after.partition("\n")[2].partition("\n")[2])
    with pytest.raises(SpecError, match="must have one value for everything"):
        read_set(path)
    path.write_text(text.replace("{uniform: [2, 6]}", "2"))
    with pytest.raises(SpecError, match="changes requires draws"):
        read_set(path)
