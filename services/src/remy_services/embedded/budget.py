"""Budgets that are given for a run in place of the specification's."""

from __future__ import annotations

from remy_farm.v1 import spec_pb2


def with_budget(
    spec: spec_pb2.DesignSpec,
    *,
    max_steps: int | None = None,
    max_cpu_seconds: float | None = None,
    max_wall_seconds: float | None = None,
) -> spec_pb2.DesignSpec:
    """The specification with other budgets where they are given.

    All of them count from the beginning of the design, through every resume.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if max_steps is not None:
        changed.stop.steps = max_steps
    if max_cpu_seconds is not None:
        changed.stop.cpu_seconds = max_cpu_seconds
    if max_wall_seconds is not None:
        changed.stop.wall_seconds = max_wall_seconds
    return changed
