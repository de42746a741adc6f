"""Driving a designer: one run loop, and the directory of a design on this machine.

`loop` carries requests to an evaluator and outcomes back, whatever keeps the design; `run` does so
in one process, with files, clocks and signals around. The other sink, a store, is the
coordinator's.
"""

from remy_services.designer.search import with_steps
from remy_services.driver.directory import OutDirectory
from remy_services.driver.progress import (
    DesignObserver,
    RunStarted,
    StepProgress,
    read_events,
)
from remy_services.driver.run import DesignResult, DesignRun, with_budget

__all__ = [
    "DesignObserver",
    "DesignResult",
    "DesignRun",
    "OutDirectory",
    "RunStarted",
    "StepProgress",
    "read_events",
    "with_budget",
    "with_steps",
]
