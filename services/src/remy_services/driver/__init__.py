"""A design in one process: the designer and an evaluator, with files, clocks and signals around."""

from remy_services.designer.strategy import with_steps
from remy_services.driver.directory import OutDirectory
from remy_services.driver.progress import read_events
from remy_services.driver.run import (
    DesignResult,
    DesignRun,
    Observer,
    RunStarted,
    SilentObserver,
    StepProgress,
    with_budget,
)

__all__ = [
    "DesignResult",
    "DesignRun",
    "Observer",
    "OutDirectory",
    "RunStarted",
    "SilentObserver",
    "StepProgress",
    "read_events",
    "with_budget",
    "with_steps",
]
