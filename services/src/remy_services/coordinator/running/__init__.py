"""A job at work: from its turn to its end, or until it has to wait."""

from remy_services.coordinator.running.job_run import JobRun
from remy_services.coordinator.running.settings import RunSettings

__all__ = ["JobRun", "RunSettings"]
