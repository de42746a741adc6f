"""Builds the commits that a coordinator makes for a joint search with a large table."""

from __future__ import annotations

import random

from benchmarks.programs import ROOT
from remy_farm.designer.checkpoint import seal
from remy_farm.specification import load_spec
from remy_proto.v1 import checkpoint_pb2, job_pb2, progress_pb2
from remy_services.stores.contract import Commit
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

_SIGNALS = 3
_VALIDATION_SPECIMENS = 512


def step_commit(job_id: str, revision: int, rules: int) -> Commit:
    """Returns a step's commit: record, event and checkpoint, with random data of realistic size."""
    numbers = random.Random(revision)
    step = progress_pb2.StepFinished(
        purpose=progress_pb2.STEP_PURPOSE_CLIMB,
        rules=rules,
        candidates=64,
        specimens=64,
        simulated_packets=numbers.getrandbits(40),
        score=_estimate(numbers),
        gain=_estimate(numbers),
    )
    event = job_pb2.JobEvent(
        revision=revision,
        progress=progress_pb2.ProgressEvent(
            sequence=revision,
            step=revision,
            wall_seconds=numbers.random(),
            cpu_seconds=numbers.random(),
            step_finished=step,
        ),
    )
    return Commit(
        record=_record(job_id, revision),
        events=[event.SerializeToString()],
        snapshot=_snapshot(numbers, revision, rules),
        schema_version=1,
    )


def _record(job_id: str, revision: int) -> bytes:
    spec = load_spec(ROOT / "examples" / "general-purpose-delta1.yaml")
    job = job_pb2.Job(id=job_id, name=spec.name, owner="somebody", spec=spec, revision=revision)
    return job_pb2.JobRecord(job=job, request_sha256=bytes(32)).SerializeToString()


def _snapshot(numbers: random.Random, step: int, rules: int) -> bytes:
    table = from_native(_table(rules))
    splits = sum(node.HasField("split") for node in table.nodes)
    rules = len(table.nodes) - splits
    climb = checkpoint_pb2.Climb(
        table=table,
        coordinates=_floats(numbers, 3 * rules),
        average=_floats(numbers, 3 * rules),
        rule_slopes=_floats(numbers, 3 * rules),
        rule_squares=_floats(numbers, 3 * rules),
        region_slopes=_floats(numbers, 3 * splits),
        region_squares=_floats(numbers, 3 * splits),
        steps=step,
    )
    state = checkpoint_pb2.JointSearchState(
        best=checkpoint_pb2.ValidatedTable(
            table=table, scores=_floats(numbers, _VALIDATION_SPECIMENS)
        ),
        climb=climb,
    )
    return seal(checkpoint_pb2.Checkpoint(step=step, event_sequence=step, joint=state))


def _table(rules: int) -> RuleTable:
    """Returns a table of at least `rules` rules: its first rule is split repeatedly."""
    table = RuleTable(list(range(_SIGNALS)), [([], (1.0, 1.0, 3.0))])
    threshold = 8192.0
    size = 1
    while size < rules:
        threshold /= 2
        table = table.split(0, [(signal, threshold) for signal in range(_SIGNALS)])
        size += (1 << _SIGNALS) - 1
    return table


def _floats(numbers: random.Random, count: int) -> list[float]:
    return [numbers.random() for _ in range(count)]


def _estimate(numbers: random.Random) -> progress_pb2.Estimate:
    return progress_pb2.Estimate(
        mean=numbers.random(), standard_error=numbers.random(), specimens=64
    )
