"""How a coordinator is set up."""

from __future__ import annotations

from dataclasses import dataclass, field

from remy_services.coordinator.running import RunSettings
from remy_services.jobs.queue import Limits


@dataclass(frozen=True)
class CallLimits:
    """What callers may ask for at most."""

    #: Of a specification's text, in bytes.
    spec_bytes: int = 256 << 10
    #: Streams that are open at once: watches and transfers of jobs.
    open_streams: int = 1000
    #: Of an archive that is imported, in bytes.
    archive_bytes: int = 256 << 20


@dataclass(frozen=True)
class FarmSettings:
    """What jobs and calls are held to."""

    runs: RunSettings = field(default_factory=RunSettings)
    jobs: Limits = field(default_factory=lambda: Limits(100, 100))
    calls: CallLimits = field(default_factory=CallLimits)
    #: How often the store is asked whether it can be written to.
    store_check_seconds: float = 5.0
