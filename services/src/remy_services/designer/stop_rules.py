"""The stop rules of a specification that need no clock."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import progress_pb2, spec_pb2


def rule_that_holds(
    stop: spec_pb2.Stop, *, steps: int, epochs: Sequence[progress_pb2.EpochRecord]
) -> progress_pb2.StopReason | None:
    """The first rule of `stop` that is fulfilled after `steps` steps and the recorded epochs."""
    if stop.HasField("epochs") and len(epochs) >= stop.epochs:
        return progress_pb2.STOP_REASON_EPOCHS
    if stop.HasField("epochs_without_gain"):
        # A short climb that lost to others says nothing about the one that goes on.
        last = [record for record in epochs if not record.HasField("start")]
        last = last[-stop.epochs_without_gain :]
        if len(last) == stop.epochs_without_gain and not any(
            record.comparison.accepted for record in last
        ):
            return progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN
    if stop.HasField("steps") and steps >= stop.steps:
        return progress_pb2.STOP_REASON_STEPS
    return None
