"""Modes of search: each by its name, with what the messages that hold its settings say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from remy_farm.specification.schema import descriptor_of, enum_names
from remy_proto.v1 import checkpoint_pb2, spec_pb2

# All that may fix how long a search is.
_LENGTHS: Final = ("steps", "cpu_seconds", "simulated_packets")


@dataclass(frozen=True)
class Mode:
    """A way to search. Its settings are the field of `Search` that has its name."""

    name: str
    number: int

    def settings(self, search: spec_pb2.Search) -> Any:
        """Its settings, in place."""
        return getattr(search, self.name)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of its settings, by name."""
        search = descriptor_of(spec_pb2.Search)
        settings: Any = search.fields_by_name[self.name].message_type
        return dict(settings.fields_by_name)

    @property
    def lengths(self) -> tuple[str, ...]:
        """The settings that fix how long a search is; where there are none, it goes on until a stop
        rule holds."""
        return tuple(name for name in _LENGTHS if name in self.fields)

    @property
    def has_maximum_rules(self) -> bool:
        """Whether its settings limit the table, so that no stop rule needs to."""
        return "maximum_rules" in self.fields

    @property
    def needs_absolute_rules(self) -> bool:
        """Whether its actions lie on a grid, which is in milliseconds and packets."""
        grid = descriptor_of(spec_pb2.ActionGrid)
        return any(field.message_type is grid for field in self.fields.values())

    @property
    def designs_together(self) -> bool:
        """Whether several tables may be designed at once: a checkpoint can hold one search of
        each."""
        member = descriptor_of(checkpoint_pb2.TeamSearchState.Member)
        return self.name in member.fields_by_name


#: All modes, in the order of their numbers.
MODES: Final = tuple(
    Mode(name, number) for name, number in enum_names(spec_pb2.SearchMode.DESCRIPTOR).items()
)


def mode_of(spec: spec_pb2.DesignSpec) -> Mode | None:
    """The mode of a specification; None if it names none that there is."""
    return next((mode for mode in MODES if mode.number == spec.search.mode), None)
