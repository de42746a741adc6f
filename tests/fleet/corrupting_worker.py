"""A real worker, but for its results: one bit of each is wrong.

    python -m tests.fleet.corrupting_worker on-the-way|in-the-simulator FLAGS...

On the way: after the digest was taken, as by a bad network card. In the simulator: before, as by
bad memory, so that only another worker's result can tell.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Sequence

from remy_farm.v1 import evaluation_pb2, worker_service_pb2
from remy_simulator import RuleTable
from remy_workers import simulation_threads
from remy_workers.command import command
from remy_workers.simulation import Answer, simulate
from remy_workers.workload import Work

_CHANCE = random.SystemRandom()


def on_the_way(result: worker_service_pb2.TaskResult) -> None:
    content = bytearray(result.outcome)
    if content:
        content[_CHANCE.randrange(len(content))] ^= 1 << _CHANCE.randrange(8)
    result.outcome = bytes(content)


def in_the_simulator(result: worker_service_pb2.TaskResult) -> None:
    """The last digits of a delay: nothing that would look wrong."""
    outcome = evaluation_pb2.EvaluationOutcome.FromString(result.outcome)
    for each in outcome.outcomes:
        for sender in range(len(each.delay_sum_ms)):
            each.delay_sum_ms[sender] *= 1 + 1e-12 * _CHANCE.randrange(1, 1000)
            # Also where nothing was received, so that every result is another one.
            each.delay_sum_ms[sender] += 1e-9
    result.outcome = outcome.SerializeToString(deterministic=True)
    result.sha256 = hashlib.sha256(result.outcome).digest()


def main() -> None:
    corrupt = {"on-the-way": on_the_way, "in-the-simulator": in_the_simulator}[sys.argv.pop(1)]

    def simulate_badly(work: Work[Sequence[RuleTable]]) -> Answer:
        answer = simulate(work)
        if answer.message.HasField("result"):
            corrupt(answer.message.result)
        return answer

    setattr(simulation_threads, "simulate", simulate_badly)  # noqa: B010
    command()


if __name__ == "__main__":
    main()
