"""Evaluators, which simulate candidate tables on specimens and measure the results.

An evaluation is a pure function of its request. An evaluator may split a request into tasks, and
reorder and repeat them; the outcome is the same, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_farm.evaluation.local import LocalEvaluator as LocalEvaluator
    from remy_farm.evaluation.measures import PERCENTS as PERCENTS
    from remy_farm.evaluation.measures import Evaluate as Evaluate
    from remy_farm.evaluation.measures import PacketMeasures as PacketMeasures
    from remy_farm.evaluation.measures import Summary as Summary
    from remy_farm.evaluation.measures import Trial as Trial
    from remy_farm.evaluation.measures import packets_row as packets_row
    from remy_farm.evaluation.simulation import SenderKind as SenderKind
    from remy_farm.evaluation.simulation import Simulation as Simulation
    from remy_farm.evaluation.simulation import check_sender as check_sender
    from remy_farm.evaluation.simulation import simulate_topology as simulate_topology
    from remy_farm.specification.links import link_rate_packets_per_ms as link_rate_packets_per_ms
    from remy_farm.specification.network_files import Topology as Topology
    from remy_farm.specification.network_files import read_topology as read_topology
    from remy_farm.specification.network_files import topology_of as topology_of
    from remy_farm.specification.network_files import vary_network as vary_network
    from remy_farm.specification.senders import DEFAULT_PACKET_BYTES as DEFAULT_PACKET_BYTES
    from remy_farm.specification.senders import MAX_SENDERS as MAX_SENDERS
    from remy_farm.specification.senders import PACKETS_RECEIVED as PACKETS_RECEIVED
    from remy_farm.specification.senders import REMYCC as REMYCC
    from remy_farm.specification.senders import SenderSpec as SenderSpec
    from remy_farm.specification.senders import bottleneck as bottleneck
    from remy_farm.specification.senders import check_default_transport as check_default_transport
    from remy_farm.specification.senders import format_choice as format_choice
    from remy_farm.specification.senders import parse_sender as parse_sender
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
