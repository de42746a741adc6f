"""Evaluators: who simulates what a designer asks for.

An evaluation is a pure function of its request. An evaluator is a transport around it: it may split
a request into tasks, repeat and reorder them, and the outcome is the same, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_farm.evaluation.local import LocalEvaluator as LocalEvaluator
    from remy_farm.evaluation.measures import Evaluate as Evaluate
    from remy_farm.evaluation.measures import Summary as Summary
    from remy_farm.evaluation.measures import Trial as Trial
    from remy_farm.evaluation.simulation import SenderKind as SenderKind
    from remy_farm.evaluation.simulation import Simulation as Simulation
    from remy_farm.evaluation.simulation import simulate_topology as simulate_topology
    from remy_farm.specification.links import link_rate_packets_per_ms as link_rate_packets_per_ms
    from remy_farm.specification.network_files import Topology as Topology
    from remy_farm.specification.network_files import read_topology as read_topology
    from remy_farm.specification.network_files import topology_of as topology_of
    from remy_farm.specification.network_files import vary_network as vary_network
    from remy_farm.specification.senders import MOST_SENDERS as MOST_SENDERS
    from remy_farm.specification.senders import RECEIVED as RECEIVED
    from remy_farm.specification.senders import REMYCC as REMYCC
    from remy_farm.specification.senders import USUAL_PACKET_BYTES as USUAL_PACKET_BYTES
    from remy_farm.specification.senders import Words as Words
    from remy_farm.specification.senders import bottleneck as bottleneck
    from remy_farm.specification.senders import check_usual_body as check_usual_body
    from remy_farm.specification.senders import choice_words as choice_words
    from remy_farm.specification.senders import parse_sender as parse_sender
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
