"""Tables go into the object store once, whoever needs them."""

from __future__ import annotations

import gc
import hashlib

import pytest

from remy_farm.v1 import worker_service_pb2
from remy_workers.ray.tables import TablesOfStream, TableStore
from remy_workers.tables import UnknownTables


def _tables(upper: float) -> worker_service_pb2.TablesKnown:
    message = worker_service_pb2.TablesKnown(tables=[{"domain_upper": upper}])
    message.digest = hashlib.sha256(message.SerializeToString(deterministic=True)).digest()
    return message


class _ObjectStore:
    """Counts what is put into it."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []

    def put(self, content: bytes) -> int:
        self.contents.append(content)
        return len(self.contents)


def test_streams_share_what_is_stored() -> None:
    objects = _ObjectStore()
    store = TableStore(objects.put)
    streams = [TablesOfStream(store) for _ in range(8)]
    for upper in (1.0, 2.0):
        for stream in streams:
            stream.learn(_tables(upper))
    assert len(objects.contents) == 2
    found = {stream.find(_tables(2.0).digest).reference for stream in streams}
    assert found == {2}


def test_actors_get_tables_as_they_were_sent_and_nothing_else() -> None:
    objects = _ObjectStore()
    message = _tables(3.0)
    message.forgotten.append(b"other")
    TablesOfStream(TableStore(objects.put)).learn(message)
    assert worker_service_pb2.TablesKnown.FromString(objects.contents[0]) == _tables(3.0)


def test_what_a_stream_has_forgotten_it_does_not_find() -> None:
    stream = TablesOfStream(TableStore(_ObjectStore().put))
    stream.learn(_tables(1.0))
    forgetting = _tables(2.0)
    forgetting.forgotten.append(_tables(1.0).digest)
    stream.learn(forgetting)
    stream.find(_tables(2.0).digest)
    with pytest.raises(UnknownTables):
        stream.find(_tables(1.0).digest)


def test_what_nobody_knows_any_more_leaves_the_object_store() -> None:
    objects = _ObjectStore()
    store = TableStore(objects.put)
    stream = TablesOfStream(store)
    stream.learn(_tables(1.0))
    del stream
    gc.collect()
    TablesOfStream(store).learn(_tables(1.0))
    assert len(objects.contents) == 2
