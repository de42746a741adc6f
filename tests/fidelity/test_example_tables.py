"""The tables of `data/remyccs` have their published scores, and meet their minimum scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.programs import REMY_FARM, ROOT, network_flags, run_json
from remy_farm.designer.actions import RTT_RATIO
from remy_farm.driver.directory import OutDirectory
from remy_farm.remycc import read_remycc
from remy_farm.shipped import rules_file
from remy_farm.specification import content_digest, load_spec
from remy_farm.specification.models import designed_tables
from remy_laboratory.kernel.measuring import jain

_EXAMPLES = ROOT / "examples"
_DATA = ROOT / "data"
_TABLES = sorted(folder.name for folder in (_DATA / "remyccs").iterdir() if folder.is_dir())

#: The flagship's minimum scores on the networks of other examples: of its rules alone, and with its
#: path model.
_MINIMUM_OF_FLAGSHIP = {
    "learnability-100x": (-2.03, -2.11),
    "learnability-1000x": (-2.18, -2.26),
    "learnability-rtt-145-155": (-1.935, -1.955),
    "learnability-rtt-140-160": (-1.916, -1.955),
    "learnability-rtt-50-250": (-1.943, -1.875),
    "learnability-rtt-10-280": (-1.790, -1.712),
    "learnability-senders-1-2": (-2.678, -2.607),
    "learnability-senders-1-10": (-2.600, -2.617),
    "learnability-senders-1-50": (-2.696, -2.583),
    "learnability-senders-1-100": (-2.68, -2.642),
}

#: The weight of delay and the minimum score, mean and pooled, on the yardstick
#: (`remy-farm benchmark-search`): of the rules alone, and with the path model.
_MINIMUM_ON_YARDSTICK = {
    "general-purpose-delta0.1": (0.1, (-0.1, -0.1)),
    "general-purpose-delta1": (1.0, (-0.175, -0.186)),
    "general-purpose-delta10": (10.0, (-0.45, -0.595)),
    "generalist-remembering": (1.0, (-0.23, -0.232)),
}


def _remycc(name: str) -> Path:
    return _DATA / "remyccs" / name / "remycc.json"


def _table(name: str, has_path_model: bool) -> Path:
    return _remycc(name) if has_path_model else rules_file(_remycc(name))


def _remyccs(name: str) -> list[Path]:
    """Returns an example's tables, in its order; several if they are designed together."""
    spec = load_spec(_EXAMPLES / f"{name}.yaml")
    folder = OutDirectory(_remycc(name).parent)
    return [folder.table_file(spec, table) for table in designed_tables(spec)]


def _held_out(name: str, file: str = "held-out.json") -> dict[str, Any]:
    held_out: dict[str, Any] = json.loads(_remycc(name).with_name(file).read_text())
    return held_out


#: Examples without a shipped table: the demos, and the space of networks for attacks.
_WITHOUT_TABLES = {"demo", "demo-paper", "attack-space"}


@pytest.mark.parametrize("name", _TABLES)
def test_provenance_names_the_specification_beside_it(name: str) -> None:
    """After a change of digests or keys, `python -m scripts.renew_provenance` updates them."""
    folder = _DATA / "remyccs" / name
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["spec_digest"] == content_digest(load_spec(folder / "spec.yaml"))


def test_every_example_has_a_table() -> None:
    specifications = {path.stem for path in _EXAMPLES.glob("*.yaml")} - _WITHOUT_TABLES
    assert set(_TABLES) == specifications


@pytest.mark.parametrize("name", _TABLES)
def test_table_s_specification_is_its_example(name: str) -> None:
    designed, example = (
        load_spec(path)
        for path in (_remycc(name).with_name("spec.yaml"), _EXAMPLES / f"{name}.yaml")
    )
    example.search.seed = designed.search.seed
    # The length of a design and its step sizes may differ from the example's.
    schedule = ("steps", "step_size", "perturbation", "fine_share", "steps_per_epoch")
    for setting in filter(designed.search.joint.HasField, schedule):
        setattr(example.search.joint, setting, getattr(designed.search.joint, setting))
    assert designed == example


@pytest.mark.parametrize("name", _TABLES)
def test_table_is_its_rules_with_a_path_model(name: str) -> None:
    for table in _remyccs(name):
        shipped, rules = read_remycc(table).table, read_remycc(rules_file(table)).table
        assert shipped.path_model is not None
        assert shipped.with_path_model(None) == rules


@pytest.mark.parametrize("file", ["held-out.json", "held-out-rules.json"])
@pytest.mark.parametrize("name", _TABLES)
def test_table_has_its_published_score(name: str, file: str) -> None:
    held_out = _held_out(name, file)
    tables = _remyccs(name)
    again = run_json(
        *(REMY_FARM, "evaluate", "--spec", _EXAMPLES / f"{name}.yaml"),
        *(f"--remycc={each if file == 'held-out.json' else rules_file(each)}" for each in tables),
        *("--specimens", str(held_out["specimens"]), "--seed", str(held_out["seed"])),
    )
    assert again["digest"] == held_out["digest"]
    assert again["score_mean"] == held_out["score_mean"]


@pytest.mark.parametrize("has_path_model", [False, True])
@pytest.mark.parametrize("networks", _MINIMUM_OF_FLAGSHIP)
def test_flagship_has_its_minimum_score(networks: str, has_path_model: bool) -> None:
    measured = run_json(
        *(REMY_FARM, "evaluate", "--remycc", _table("generalist-remembering", has_path_model)),
        *("--spec", _EXAMPLES / f"{networks}.yaml", "--specimens", "256", "--seed", "20130812"),
    )
    assert measured["score_mean"] >= _MINIMUM_OF_FLAGSHIP[networks][has_path_model]


@pytest.mark.parametrize("has_path_model", [False, True])
@pytest.mark.parametrize("jitter_ms", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("mbps", [0.33, 1, 3, 10, 30, 100, 300, 1000])
def test_lone_flagship_sender_uses_the_link(
    mbps: float, jitter_ms: float, has_path_model: bool
) -> None:
    """The sender stays on, and its packets leave four at a time, which looks like a queue.

    With a path model less of the link is used.
    """
    flags = network_flags(
        remycc=_table("generalist-remembering", has_path_model),
        senders=1,
        rate_mbps=mbps,
        rtt_ms=50,
        on_ms=1e8,
        off_ms=1,
        seconds=5 if mbps >= 300 else 30,
    )
    clocks = {
        "bunch_packets": 4,
        "jitter.exponential_mean_ms": jitter_ms,
        "timestamp_resolution_ms": 0.001,
    }
    settings = [f"--set=measurement.{path}={value}" for path, value in clocks.items()]
    result = run_json(REMY_FARM, "simulate", *flags, *settings)
    minimum = 0.75 if has_path_model else 0.87 if (mbps, jitter_ms) == (3, 0.5) else 0.9
    assert result["throughput_over_link_rate"] >= minimum


@pytest.mark.parametrize("rtt_ms", [32, 150])
@pytest.mark.parametrize("senders", [2, 4])
def test_flagship_flows_that_start_later_get_their_share(senders: int, rtt_ms: int) -> None:
    result = run_json(
        *(REMY_FARM, "simulate"),
        f"--sender=remycc:{_remycc('generalist-remembering')}={senders}",
        *("--rate-mbps=48", f"--rtt-ms={rtt_ms}", "--transport=tcp,variant=linux"),
        *("--on-ms=1e12", "--off-ms=1", "--starts-apart-ms=5000", "--seconds=120", "--seed=1"),
    )
    assert jain([each["throughput_mbps"] for each in result["senders"]]) >= 0.99


@pytest.mark.parametrize("has_path_model", [False, True])
@pytest.mark.parametrize("name", _MINIMUM_ON_YARDSTICK)
def test_table_has_its_minimum_score_on_the_yardstick(name: str, has_path_model: bool) -> None:
    delta, minima = _MINIMUM_ON_YARDSTICK[name]
    measured = run_json(
        *(REMY_FARM, "benchmark-search", "--remycc", _table(name, has_path_model)),
        *("--delta", str(delta), "--specimens", "256"),
    )
    (table,) = measured["tables"]
    assert table["mean"] >= minima[has_path_model]
    assert table["pooled"] >= minima[has_path_model]


@pytest.mark.parametrize("name", _TABLES)
def test_table_is_not_split_where_rtt_ratio_is_impossible(name: str) -> None:
    """An RTT is never below the minimum RTT; only the all-zero memory has a ratio below 1."""
    for remycc in _remyccs(name):
        thresholds = [
            value
            for splits, _ in read_remycc(remycc).table.nodes()
            for axis, value in splits
            if axis == RTT_RATIO
        ]
        assert [value for value in thresholds if value <= 1] in ([], [0.5])


@pytest.mark.parametrize("has_path_model", [False, True])
@pytest.mark.parametrize("senders", [1, 64])
def test_datacenter_table_fills_its_link_without_a_queue(
    senders: int, has_path_model: bool
) -> None:
    flags = network_flags(
        remycc=_table("datacenter", has_path_model),
        senders=senders,
        rate_mbps=10_000,
        rtt_ms=4,
        on_ms=1000,
        off_ms=100,
        seconds=3,
        buffer_packets=1000,
    )
    result = run_json(REMY_FARM, "simulate", *flags)
    assert result["throughput_over_link_rate"] >= 0.85
    assert result["delay_over_rtt"] <= 1 + 0.3 / 4


@pytest.mark.parametrize(
    ("senders", "has_path_model", "minimum"),
    [(2, False, -0.165), (8, False, -0.185), (2, True, -0.168), (8, True, -0.185)],
)
def test_table_for_noise_has_its_minimum_score_with_jitter(
    senders: int, has_path_model: bool, minimum: float
) -> None:
    table = _table("general-purpose-noise", has_path_model)
    flags = network_flags(remycc=table, senders=senders, seconds=2000)
    result = run_json(
        REMY_FARM, "simulate", *flags, "--set=measurement.jitter.exponential_mean_ms=0.5"
    )
    assert result["normalized_score_per_sender"] >= minimum
