"""Rule tables in Ray's object store: put there once, whichever actors need them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from remy_farm.v1 import worker_service_pb2
from remy_workers.tables import UnknownTables


class StoredTables:
    """A TablesKnown message in the object store, for as long as somebody holds this."""

    def __init__(self, digest: bytes, reference: Any) -> None:
        """`reference` is Ray's."""
        self.digest = digest
        self.reference = reference


class TableStore:
    """All tables that the driver's streams know."""

    def __init__(self, put: Callable[[bytes], Any]) -> None:
        """`put` puts bytes into the object store and returns their reference."""
        self._put = put
        self._stored: weakref.WeakValueDictionary[bytes, StoredTables] = (
            weakref.WeakValueDictionary()
        )

    def keep(self, message: worker_service_pb2.TablesKnown) -> StoredTables:
        """Puts tables into the object store, unless they are there."""
        stored = self._stored.get(message.digest)
        if stored is None:
            only_tables = worker_service_pb2.TablesKnown(
                digest=message.digest, tables=message.tables
            )
            stored = StoredTables(message.digest, self._put(only_tables.SerializeToString()))
            self._stored[message.digest] = stored
        return stored


class TablesOfStream:
    """The tables that one stream has been told of."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._known: dict[bytes, StoredTables] = {}

    def learn(self, message: worker_service_pb2.TablesKnown) -> None:
        """Tables to know, and those to forget."""
        for digest in message.forgotten:
            self._known.pop(digest, None)
        self._known[message.digest] = self._store.keep(message)

    def find(self, digest: bytes) -> StoredTables:
        """Raises UnknownTables. Whether tables are valid, and arrived as sent, the actors see."""
        try:
            return self._known[digest]
        except KeyError:
            raise UnknownTables from None
