"""The rule tables that tasks name by their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from remy_farm.v1 import worker_service_pb2
from remy_simulator import InvalidTable, RuleTable, native_tables


class UnknownTables(Exception):
    """A task names tables that were not sent, or did not arrive as they were sent."""


class KnownTables:
    """Of one stream."""

    def __init__(self) -> None:
        #: As the simulator has them, or why it does not take them.
        self._tables: dict[bytes, Sequence[RuleTable] | InvalidTable] = {}

    def learn(self, message: worker_service_pb2.TablesKnown) -> None:
        """Tables to know, and those to forget."""
        for digest in message.forgotten:
            self._tables.pop(digest, None)
        only_tables = worker_service_pb2.TablesKnown(tables=message.tables)
        content = only_tables.SerializeToString(deterministic=True)
        if hashlib.sha256(content).digest() != message.digest:
            return
        try:
            self._tables[message.digest] = native_tables(message.tables)
        except InvalidTable as problem:
            self._tables[message.digest] = problem

    def find(self, digest: bytes) -> Sequence[RuleTable]:
        """Raises UnknownTables, and InvalidTable for what the simulator does not take."""
        known = self._tables.get(digest)
        if known is None:
            raise UnknownTables
        if isinstance(known, InvalidTable):
            raise known
        return known
