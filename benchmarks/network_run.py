"""Evaluates the request in a file once and prints how many packets were received.

It imports as little as possible, because callgrind counts the imports as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import remy_simulator
from remy_proto.v1 import evaluation_pb2

if __name__ == "__main__":
    request = evaluation_pb2.EvaluationRequest.FromString(Path(sys.argv[1]).read_bytes())
    outcome = remy_simulator.evaluate_columns(request)
    print(json.dumps({"packets_received": sum(outcome.senders.packets_received)}))
