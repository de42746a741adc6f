"""Simulates a network's file once and prints how many packets were received.

`remy-farm simulate --network` makes a second run, recorded, for what it tells of links.
"""

from __future__ import annotations

import json
import sys

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.topologies import read_topology

if __name__ == "__main__":
    path, seconds = sys.argv[1:3]
    network = read_topology(path)
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimens=[network.specimen],
        duration_ms=float(seconds) * 1000,
        seed=1,
        traces=network.traces,
    )
    outcome = remy_simulator.evaluate_columns(request)
    print(json.dumps({"packets_received": sum(outcome.senders.packets_received)}))
