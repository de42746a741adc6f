"""A real worker, but for its results: one bit of each is wrong, as by a bad network card.

    python -m tests.fleet.corrupting_worker FLAGS...

The bit changes after the digest was taken.
"""

from __future__ import annotations

import random

from remy_workers import simulation
from remy_workers.command import command
from remy_workers.simulation import Answer, simulate
from remy_workers.task_queue import Task

_CHANCE = random.SystemRandom()


def _simulate_badly(task: Task) -> Answer:
    answer = simulate(task)
    if answer.message is not None and answer.message.HasField("result"):
        result = answer.message.result
        content = bytearray(result.outcome)
        if content:
            content[_CHANCE.randrange(len(content))] ^= 1 << _CHANCE.randrange(8)
        result.outcome = bytes(content)
    return answer


if __name__ == "__main__":
    setattr(simulation, "simulate", _simulate_badly)  # noqa: B010
    command()
