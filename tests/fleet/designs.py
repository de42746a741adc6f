"""Short designs with every kind of step, which run on any evaluator."""

from __future__ import annotations

import hashlib
import itertools
from typing import Final

import remy_simulator
from remy_farm.designer import Designer
from remy_farm.evaluation.interface import Evaluator
from remy_farm.specification import parse_spec
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.columns import Slice, shared_part, slice_request

_NETWORK = """\
name: short
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: {uniform: [20, 60]}
  senders: {integer_uniform: [1, 3]}
  traffic:
    exponential_time: {mean_ms: 500}
    mean_off_ms: 500
signals: [rtt_ratio]
"""
# Two tables share networks with each other and with a protocol; each has its own objective.
_MIXTURE = """\
name: short
models:
  - weight: 2
    network:
      rate_mbps: {uniform: [10, 20]}
      rtt_ms: {uniform: [20, 60]}
      senders:
        - {design: swift, count: {integer_uniform: [0, 2]}}
        - {design: calm, weight: 2, objective: {delta: 10}}
      traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}
  - network:
      rate_mbps: 12
      rtt_ms: 40
      buffer: 50
      senders:
        - {design: swift, count: 2}
        - protocol: remy-aimd
          weight: 0
          traffic: {exponential_bytes: {mean_bytes: 1e5}, mean_off_ms: 100}
      traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}
signals: [rtt_ratio]
"""
_SEARCHES: Final = {
    "paper": """\
search:
  mode: paper
  simulated_seconds: 2
  paper:
    epochs_per_split: 1
    validation_specimens: 8
    window_increment: {first_step: 20, steps: 1}
    window_multiple: {steps: 0}
    intersend_ms: {first_step: 1, steps: 1}
stop: {epochs: 2}
""",
    "joint": """\
search:
  mode: joint
  simulated_seconds: 2
  joint:
    steps: 8
    starts: 2
    start_steps: 2
    first_split: 3
    steps_per_split: 3
    steps_per_epoch: 4
    validation_specimens: 8
""",
    "together": """\
objective: {over_groups: minimum, worst_specimens: 0.5}
search:
  mode: joint
  simulated_seconds: 1
  joint:
    steps: 3
    first_split: 1
    steps_per_split: 1
    steps_per_epoch: 2
    maximum_rules: 4
    validation_specimens: 8
""",
}
SEARCHES: Final = tuple(_SEARCHES)


def short_spec_text(search: str) -> str:
    """Returns a specification, as YAML, whose design takes seconds and has every kind of step."""
    return (_MIXTURE if search == "together" else _NETWORK) + _SEARCHES[search]


def short_spec(search: str) -> spec_pb2.DesignSpec:
    """Returns the parsed specification of `short_spec_text`."""
    return parse_spec(short_spec_text(search))


def joint_spec(*, seed: int, steps: int, simulated_seconds: float) -> spec_pb2.DesignSpec:
    """Returns the specification of a joint design."""
    return parse_spec(
        _NETWORK
        + f"""\
search:
  mode: joint
  seed: {seed}
  simulated_seconds: {simulated_seconds}
  joint:
    steps: {steps}
    starts: 1
    first_split: 5
    steps_per_split: 10
    steps_per_epoch: 10
    maximum_rules: 16
    validation_specimens: 16
"""
    )


def requests(search: str, count: int) -> list[evaluation_pb2.EvaluationRequest]:
    """Returns the first requests of a short design."""
    designer = Designer(short_spec(search))
    first: list[evaluation_pb2.EvaluationRequest] = []
    while len(first) < count and (request := designer.next_request()) is not None:
        first.append(request)
        designer.receive(remy_simulator.evaluate_columns(request))
    return first


#: More than gRPC's default limit of a message.
TRACE_BYTES: Final = 5 * 2**20


def trace_requests(count: int) -> list[evaluation_pb2.EvaluationRequest]:
    """Returns requests with two protocols on links that follow one trace of TRACE_BYTES."""
    times_us = itertools.accumulate(
        (each * 7919 % 1501 for each in range(TRACE_BYTES // 8)), initial=9
    )
    packed = b"".join(
        time_us.to_bytes(8, "little") for time_us in itertools.islice(times_us, TRACE_BYTES // 8)
    )
    trace = evaluation_pb2.Trace(sha256=hashlib.sha256(packed).digest(), opportunities_us=packed)
    traffic = evaluation_pb2.Traffic(exponential_time={"mean_ms": 300.0}, mean_off_ms=100.0)
    return [
        evaluation_pb2.EvaluationRequest(
            candidates=[evaluation_pb2.Candidate()],
            specimens=[
                evaluation_pb2.Specimen(
                    key=key,
                    link_rate_packets_per_ms=1.3,
                    rtt_ms=40.0 + key,
                    senders=[
                        {"count": 1, "traffic": traffic, "protocol": {"name": name}}
                        for name in ("cubic", "newreno")
                    ],
                    links=[
                        {
                            "buffer_packets": 60,
                            "trace": {"sha256": trace.sha256, "semantics": key % 3 + 1},
                        }
                    ],
                )
                for key in range(1, 25)
            ],
            duration_ms=5000.0,
            seed=seed,
            traces=[trace],
        )
        for seed in range(count)
    ]


def first_simulation(
    request: evaluation_pb2.EvaluationRequest,
) -> evaluation_pb2.EvaluationRequest:
    """Returns the part of the request that is its first simulation."""
    first = shared_part(request)
    first.MergeFrom(slice_request(request, Slice(range(1), range(1))))
    return first


def design(spec: spec_pb2.DesignSpec, evaluator: Evaluator) -> str:
    """Runs a design and returns a digest of all its requests, events, tables and its checkpoint."""
    designer = Designer(spec)
    digest = hashlib.sha256()
    while (request := designer.next_request()) is not None:
        digest.update(request.SerializeToString(deterministic=True))
        for event in designer.receive(evaluator.evaluate(request)):
            digest.update(event.SerializeToString(deterministic=True))
    for table in designer.tables.values():
        digest.update(table.to_message())
    digest.update(designer.checkpoint())
    return digest.hexdigest()
