"""A RemyCC as its file holds it."""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import rule_table_pb2
from remy_services.files import FileError
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native


class RemyCCError(FileError):
    """A file that does not hold a RemyCC, or whose name does not say how to write one."""


@dataclass(frozen=True)
class RemyCC:
    """A rule table, and what a .dna file holds beside it.

    `dna_metadata` are encoded fields of a .dna file's outermost message: the networks that the
    table was designed for and how. They are kept as they are.
    """

    table: RuleTable
    dna_metadata: bytes = b""

    @classmethod
    def from_message(cls, message: rule_table_pb2.RuleTable) -> RemyCC:
        """The RemyCC in a message. Raises remy_simulator.InvalidTable."""
        return cls(to_native(message), message.dna_metadata)

    def to_message(self) -> rule_table_pb2.RuleTable:
        """The inverse of from_message."""
        message = from_native(self.table)
        message.dna_metadata = self.dna_metadata
        return message
