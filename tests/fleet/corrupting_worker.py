"""Runs a worker that flips one bit in each result, as a faulty network card might.

    python -m tests.fleet.corrupting_worker FLAGS...

The bit is flipped after the result's digest was computed.
"""

from __future__ import annotations

import random

from remy_workers import simulation
from remy_workers.command import command
from remy_workers.simulation import Answer, simulate
from remy_workers.task_queue import Task

_RNG = random.SystemRandom()


def _simulate_and_corrupt(task: Task) -> Answer:
    answer = simulate(task)
    if answer.message is not None and answer.message.HasField("result"):
        result = answer.message.result
        content = bytearray(result.outcome)
        if content:
            content[_RNG.randrange(len(content))] ^= 1 << _RNG.randrange(8)
        result.outcome = bytes(content)
    return answer


if __name__ == "__main__":
    setattr(simulation, "simulate", _simulate_and_corrupt)  # noqa: B010
    command()
