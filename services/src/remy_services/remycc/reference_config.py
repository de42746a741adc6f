"""What the reference tool wants to know of a table's design, as metadata of a .dna file."""

from typing import Final

from remy_farm.dna.v1 import dna_pb2
from remy_farm.v1 import spec_pb2
from remy_services.spec.network import KILOBITS_PER_PACKET, extent

# How the reference tool says that a buffer is infinite.
_INFINITE_BUFFER: Final = 2**32 - 1
_MS_PER_SECOND: Final = 1000


def reference_config(spec: spec_pb2.DesignSpec) -> bytes:
    """The networks of a specification as field 4 (ConfigRange) of a .dna file's outermost message.

    Distributions are reduced to their ends, which is all that the format holds; an on time by bytes
    is left out.
    """
    network, traffic = spec.network, spec.traffic
    link_low, link_high = extent(network.link_rate_mbps)
    config = dna_pb2.ConfigRange(
        link_packets_per_ms=dna_pb2.Range(
            low=link_low / KILOBITS_PER_PACKET, high=link_high / KILOBITS_PER_PACKET
        ),
        rtt=_range(network.rtt_ms),
        num_senders=_range(network.senders),
        buffer_size=(
            _range(network.buffer.packets)
            if network.buffer.HasField("packets")
            else dna_pb2.Range(low=_INFINITE_BUFFER, high=_INFINITE_BUFFER)
        ),
        mean_off_duration=_range(traffic.mean_off_ms),
        simulation_ticks=min(round(spec.search.simulated_seconds * _MS_PER_SECOND), 2**32 - 1),
        stochastic_loss_rate=_range(network.loss_probability),
    )
    if traffic.HasField("exponential_time"):
        config.mean_on_duration.CopyFrom(_range(traffic.exponential_time.mean_ms))
    return dna_pb2.WhiskerTree(config=config).SerializeToString(deterministic=True)


def _range(distribution: spec_pb2.Distribution) -> dna_pb2.Range:
    low, high = extent(distribution)
    return dna_pb2.Range(low=low, high=high)
