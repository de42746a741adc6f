"""Runs many stand-in workers in one process.

    python -m benchmarks.stand_in_process --port PORT --workers N --name NAME --seconds-per-packet X

Each answers a task after X seconds for each packet that the links of the task's networks could
carry in the simulated time.
"""

from __future__ import annotations

import argparse
import asyncio

from benchmarks.stand_in import StandIn
from benchmarks.stand_in_farm import raise_limit_of_files
from remy_proto.v1 import evaluation_pb2

# A coordinator accepts connections one after another, so that a burst of them gains nothing.
_STARTED_PER_SECOND = 200


def task_seconds(
    shared: evaluation_pb2.EvaluationRequest,
    part: evaluation_pb2.EvaluationRequest,
    seconds_per_packet: float,
) -> float:
    """Returns the duration of a slice on one thread."""
    rates = sum(memoryview(part.specimen_columns.link_rates_packets_per_ms).cast("d"))
    return rates * shared.duration_ms * len(part.candidates) * seconds_per_packet


async def _run(arguments: argparse.Namespace) -> None:
    workers = []
    for number in range(arguments.workers):
        stand_in = StandIn(
            f"{arguments.name}-{number}",
            lambda shared, part: task_seconds(shared, part, arguments.seconds_per_packet),
            reserve=arguments.reserve,
        )
        workers.append(asyncio.create_task(stand_in.work(arguments.port)))
        await asyncio.sleep(1 / _STARTED_PER_SECOND)
    await asyncio.gather(*workers, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seconds-per-packet", type=float, required=True)
    parser.add_argument("--reserve", type=int, default=1)
    raise_limit_of_files()
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
