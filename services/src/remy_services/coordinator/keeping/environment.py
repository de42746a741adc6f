"""What all jobs of a coordinator share."""

from __future__ import annotations

from dataclasses import dataclass

from remy_services.coordinator.clock import Clock
from remy_services.coordinator.mirroring import Mirroring
from remy_services.coordinator.observer import Observer
from remy_services.coordinator.threads import Threads
from remy_services.stores import CheckpointStore


@dataclass(frozen=True)
class Environment:
    """Where jobs are kept, and what is needed to do so."""

    store: CheckpointStore
    threads: Threads
    clock: Clock
    observer: Observer
    #: Of this coordinator, for people; stands in the store beside the jobs that it has taken.
    name: str
    #: A second place for jobs; None: there is none.
    mirroring: Mirroring | None = None
