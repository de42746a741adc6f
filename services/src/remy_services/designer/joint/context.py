"""What the steps of the joint search have in common."""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import spec_pb2
from remy_services.designer.first_table import first_table
from remy_services.designer.joint.climb import Climb
from remy_services.designer.joint.schedule import Schedule
from remy_services.designer.joint.starts import start_count
from remy_services.designer.strategy_context import StrategyContext
from remy_simulator import RuleTable


@dataclass(frozen=True)
class Context(StrategyContext):
    """What a design fixes for all of its steps."""

    schedule: Schedule
    #: Begins the only climb, in place of the starts.
    given: RuleTable | None = None

    @property
    def search(self) -> spec_pb2.JointSearch:
        """The settings as they are followed."""
        return self.schedule.search

    @property
    def starts(self) -> int:
        """How many climbs are begun."""
        return start_count(self.search) if self.given is None else 1

    def is_trying_starts(self, start: int) -> bool:
        """Whether start number `start` is one of the short climbs. A single one has no rival, and
        simply goes on."""
        return start < self.starts > 1

    def first_climb(self, start: int) -> Climb:
        """The climb of start number `start` before its first step."""
        table = self.given or first_table(self.spec, self.space, start)
        return Climb.start(table, self.space)
