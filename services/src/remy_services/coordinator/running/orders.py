"""What a run is to do next, by what has become of its job meanwhile."""

from __future__ import annotations

from enum import Enum, auto

from remy_farm.v1.job_pb2 import JobState
from remy_services.jobs.states import CANCELLING, PAUSING


class Order(Enum):
    """Listed by urgency, the most urgent first."""

    #: Another coordinator has the job: touch nothing.
    VANISH = auto()
    #: Keep what there is, and end here.
    LEAVE = auto()
    #: Stop the design for good.
    STOP = auto()
    GO_ON = auto()


def order_for(state: JobState, *, is_held: bool, is_leaving: bool) -> Order:
    """The order for a run whose job is in `state`."""
    if not is_held:
        return Order.VANISH
    if state == PAUSING:
        return Order.LEAVE
    if state == CANCELLING:
        return Order.STOP
    return Order.LEAVE if is_leaving else Order.GO_ON
