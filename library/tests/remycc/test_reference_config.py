"""Tests the configuration that .dna files hold for the reference tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from library.tests.specification.specs import specs
from remy_farm.remycc import RemyCC, read_remycc, reference_config, write_remycc
from remy_farm.specification import extent, load_spec
from remy_proto.dna.v1 import dna_pb2
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable

_EXAMPLES = Path(__file__).parents[3] / "examples"


def _config(name: str) -> dna_pb2.ConfigRange:
    metadata = reference_config(load_spec(_EXAMPLES / f"{name}.yaml"))
    return dna_pb2.WhiskerTree.FromString(metadata).config


def _range(low: float, high: float) -> dna_pb2.Range:
    return dna_pb2.Range(low=low, high=high)


def test_the_networks_of_a_general_purpose_design() -> None:
    assert _config("general-purpose-delta1") == dna_pb2.ConfigRange(
        link_packets_per_ms=_range(10 / 12, 20 / 12),
        rtt=_range(100, 200),
        num_senders=_range(1, 16),
        buffer_size=_range(2**32 - 1, 2**32 - 1),
        mean_on_duration=_range(5000, 5000),
        mean_off_duration=_range(5000, 5000),
        simulation_ticks=30_000,
        stochastic_loss_rate=_range(0, 0),
    )


def test_the_configuration_has_a_finite_buffer_and_no_on_time_of_flows_by_bytes() -> None:
    config = _config("datacenter")
    assert config.buffer_size == _range(1000, 1000)
    assert not config.HasField("mean_on_duration")


@given(specs())
def test_every_specification_has_a_configuration(spec: spec_pb2.DesignSpec) -> None:
    config = dna_pb2.WhiskerTree.FromString(reference_config(spec)).config
    assert (config.rtt.low, config.rtt.high) == extent(spec.network.rtt_ms)
    assert 0 < config.simulation_ticks < 2**32


@pytest.mark.parametrize("suffix", [".dna", ".json"])
def test_the_configuration_is_kept_beside_the_table(tmp_path: Path, suffix: str) -> None:
    metadata = reference_config(load_spec(_EXAMPLES / "demo.yaml"))
    remycc = RemyCC(RuleTable([0], [([], (1.0, 1.0, 3.0))]), metadata)
    write_remycc(tmp_path / f"table{suffix}", remycc)
    assert read_remycc(tmp_path / f"table{suffix}") == remycc


def test_the_reference_format_finds_the_configuration_in_the_file(tmp_path: Path) -> None:
    metadata = reference_config(load_spec(_EXAMPLES / "demo.yaml"))
    path = tmp_path / "table.dna"
    write_remycc(path, RemyCC(RuleTable([0], [([], (1.0, 1.0, 3.0))]), metadata))
    tree = dna_pb2.WhiskerTree.FromString(path.read_bytes())
    assert tree.config == dna_pb2.WhiskerTree.FromString(metadata).config
    assert tree.leaf.window_increment == 1
