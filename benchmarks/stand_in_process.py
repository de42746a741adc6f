"""Many stand-in workers in one process.

    python -m benchmarks.stand_in_process --port PORT --workers N --name NAME --seconds-per-packet X

Each answers a task after what a simulation of its specimens' expected packets was recorded to take.
"""

from __future__ import annotations

import argparse
import asyncio

from benchmarks.stand_in import StandIn
from benchmarks.stand_in_farm import raise_limit_of_files
from remy_farm.v1 import worker_service_pb2

# Workers that start at once are met one after the other by a coordinator anyway.
_STARTED_PER_SECOND = 200


def recorded_seconds(task: worker_service_pb2.Task, seconds_per_packet: float) -> float:
    """What a task takes on one thread."""
    request = task.request
    rates = sum(specimen.link_rate_packets_per_ms for specimen in request.specimens)
    packets = rates * request.duration_ms * len(request.candidates)
    return packets * seconds_per_packet


async def _run(arguments: argparse.Namespace) -> None:
    workers = []
    for number in range(arguments.workers):
        stand_in = StandIn(
            f"{arguments.name}-{number}",
            lambda task: recorded_seconds(task, arguments.seconds_per_packet),
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
