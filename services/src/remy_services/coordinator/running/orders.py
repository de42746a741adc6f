"""What a run is to do next, by what has become of its job and what it was told."""

from __future__ import annotations

import asyncio
from enum import Enum, auto

from remy_services.coordinator.keeping import JobKeeper
from remy_services.jobs.states import CANCELLING, PAUSING


class Order(Enum):
    """Listed by urgency, the most urgent first."""

    #: Another coordinator has the job: touch nothing.
    VANISH = auto()
    #: Keep what there is, and end here.
    LEAVE = auto()
    #: Stop the design for good.
    STOP = auto()
    #: Make the evaluation that a stopped design ends with.
    CLOSE = auto()
    GO_ON = auto()


class Orders:
    """Heard between two steps, and during one when the bell rings."""

    def __init__(self, keeper: JobKeeper) -> None:
        self._keeper = keeper
        self.bell = asyncio.Event()
        #: One sentence for people; None while the run may stay.
        self.why_leave: str | None = None
        self._is_hurried = False
        self._has_stopped = False

    def leave(self, why: str) -> None:
        """The job is to wait for another turn."""
        self.why_leave = why
        self.bell.set()

    def hurry(self) -> None:
        """A design that is stopped for good is to end without its closing evaluation."""
        self._is_hurried = True
        self.bell.set()

    def stopped(self) -> None:
        """The order to stop is being obeyed."""
        self._has_stopped = True

    def next(self) -> Order:
        """What to do now."""
        if self._keeper.token is None:
            return Order.VANISH
        state = self._keeper.job.state
        if state == CANCELLING and not self._is_hurried:
            return Order.CLOSE if self._has_stopped else Order.STOP
        if state in (PAUSING, CANCELLING) or self.why_leave is not None:
            return Order.LEAVE
        return Order.GO_ON

    def interrupt(self) -> bool:
        """Whether the evaluation under way is to be given up."""
        return self.next() not in (Order.CLOSE, Order.GO_ON)
