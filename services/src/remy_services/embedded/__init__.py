"""A design in one process: the designer and an evaluator, with files, clocks and signals around."""

from remy_services.designer.schedule_length import with_steps
from remy_services.embedded.budget import with_budget
from remy_services.embedded.design_run import DesignResult, DesignRun
from remy_services.embedded.observer import (
    Observer,
    RunStarted,
    SilentObserver,
    StepProgress,
)
from remy_services.embedded.out_directory import OutDirectory
from remy_services.embedded.progress_log import read_events

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
