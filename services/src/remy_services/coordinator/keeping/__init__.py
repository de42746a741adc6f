"""Jobs as this coordinator knows them, and the only way in which they are changed."""

from remy_services.coordinator.keeping.environment import Environment
from remy_services.coordinator.keeping.feed import Feed
from remy_services.coordinator.keeping.job_keeper import Checkpointed, JobKeeper

__all__ = ["Checkpointed", "Environment", "Feed", "JobKeeper"]
