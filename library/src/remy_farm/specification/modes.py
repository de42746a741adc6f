"""The search modes and their properties, derived from the messages that hold their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from remy_farm.specification.schema import descriptor_of, enum_names
from remy_proto.v1 import checkpoint_pb2, spec_pb2

# Settings that fix the length of a search.
_LENGTHS: Final = ("steps", "cpu_seconds", "simulated_packets")


@dataclass(frozen=True)
class Mode:
    """A search mode. The field of `Search` with the mode's name holds its settings."""

    name: str
    number: int

    def settings(self, search: spec_pb2.Search) -> Any:
        """The mode's settings in `search`; the message itself, not a copy."""
        return getattr(search, self.name)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the mode's settings, by name."""
        search = descriptor_of(spec_pb2.Search)
        settings: Any = search.fields_by_name[self.name].message_type
        return dict(settings.fields_by_name)

    @property
    def lengths(self) -> tuple[str, ...]:
        """The settings that fix the length of a search. A mode without any searches until one of
        the specification's stop conditions is met."""
        return tuple(name for name in _LENGTHS if name in self.fields)

    @property
    def has_maximum_rules(self) -> bool:
        """Whether the settings limit the number of rules, so that no stop condition needs to."""
        return "maximum_rules" in self.fields

    @property
    def needs_absolute_rules(self) -> bool:
        """Whether the mode varies actions on a grid, whose units are milliseconds and packets."""
        grid = descriptor_of(spec_pb2.ActionGrid)
        return any(field.message_type is grid for field in self.fields.values())

    @property
    def designs_together(self) -> bool:
        """Whether the mode can design several tables together, which needs a checkpoint that can
        hold one search per table."""
        member = descriptor_of(checkpoint_pb2.TeamSearchState.Member)
        return self.name in member.fields_by_name


#: All modes, in the order of their numbers.
MODES: Final = tuple(
    Mode(name, number) for name, number in enum_names(spec_pb2.SearchMode.DESCRIPTOR).items()
)


def mode_of(spec: spec_pb2.DesignSpec) -> Mode | None:
    """The mode of a specification; None if its number is not that of any mode."""
    return next((mode for mode in MODES if mode.number == spec.search.mode), None)
