"""How many workers a design gets."""

from __future__ import annotations

import math
from typing import Final

from remy_farm.v1 import spec_pb2
from remy_services.kubernetes.designs import Load
from remy_services.kubernetes.settings import LauncherSettings

#: A thread with less work than this in a step mostly waits for the step's last tasks.
_STEP_SECONDS_PER_THREAD: Final = 2.0
#: A worker with less work than this ahead of it is not worth the time that its start takes.
_BUDGET_SECONDS_PER_THREAD: Final = 60.0


def bounds(workers: spec_pb2.Workers, settings: LauncherSettings) -> tuple[int, int]:
    """Fewest and most workers: of the specification, else of the settings, within the limits."""
    limit = settings.limits.maximum_workers
    if workers.HasField("maximum"):
        most = min(workers.maximum, limit)
    elif workers.HasField("minimum"):
        most = min(max(workers.minimum, settings.maximum_workers), limit)
    else:
        most = min(settings.maximum_workers, limit)
    fewest = workers.minimum if workers.HasField("minimum") else settings.minimum_workers
    return min(fewest, most), most


def workers_wanted(
    workers: spec_pb2.Workers,
    load: Load,
    threads_per_worker: int,
    present: int | None,
    settings: LauncherSettings,
) -> int:
    """How many workers the design should have, with `present` asked for so far.

    As many as a step and what is left of the budget can employ. They become more at once, but fewer
    only when half of them would do: starting a worker costs more than letting it wait.
    """
    fewest, most = bounds(workers, settings)
    useful = [
        seconds / (per_thread * threads_per_worker)
        for seconds, per_thread in (
            (load.step_cpu_seconds, _STEP_SECONDS_PER_THREAD),
            (load.cpu_seconds_left, _BUDGET_SECONDS_PER_THREAD),
        )
        if seconds is not None
    ]
    if load.step_cpu_seconds is None:
        # Nothing is known before the first step: too few workers would make it a long one.
        useful.append(fewest if present is None else present)
    wanted = max(fewest, min(most, math.ceil(min(useful))))
    if present is not None and present / 2 < wanted < present <= most:
        return present
    return wanted
