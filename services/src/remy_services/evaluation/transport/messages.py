"""Tasks as workers are sent them: tables once for each stream, by digest, then slices."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2, worker_service_pb2
from remy_services.evaluation.scheduler import Assignment

_TABLES_REMEMBERED = 256
# Jobs that take turns should not send their tables again and again.
_TABLES_OF_A_STREAM = 16


@dataclass(frozen=True)
class Tables:
    """A request's tables, as they are sent."""

    digest: bytes
    message: worker_service_pb2.TablesKnown


class TaskMessages:
    """Makes the messages; remembers the tables of the evaluations it has seen lately."""

    def __init__(self) -> None:
        self._tables: OrderedDict[int, Tables] = OrderedDict()

    def tables(self, assignment: Assignment) -> Tables:
        """The tables of an assignment's request."""
        known = self._tables.get(assignment.evaluation_id)
        if known is None:
            message = worker_service_pb2.TablesKnown(tables=assignment.whole.tables)
            digest = hashlib.sha256(message.SerializeToString(deterministic=True)).digest()
            message.digest = digest
            known = self._tables[assignment.evaluation_id] = Tables(digest, message)
            if len(self._tables) > _TABLES_REMEMBERED:
                self._tables.popitem(last=False)
        return known


def task_message(assignment: Assignment, tables_digest: bytes) -> worker_service_pb2.Task:
    """An assignment without its tables."""
    whole, piece = assignment.whole, assignment.slice
    candidates, specimens = piece.candidates, piece.specimens
    return worker_service_pb2.Task(
        lease_id=assignment.lease_id,
        job_id=assignment.share.job_id,
        tables_digest=tables_digest,
        request=evaluation_pb2.EvaluationRequest(
            candidates=whole.candidates[candidates.start : candidates.stop],
            specimens=whole.specimens[specimens.start : specimens.stop],
            duration_ms=whole.duration_ms,
            seed=whole.seed,
            recording=whole.recording,
        ),
        trace_parent=assignment.share.trace_parent,
    )


class TablesOfStream:
    """Which tables the other end of a stream has."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def to_send(self, tables: Tables) -> worker_service_pb2.TablesKnown | None:
        """What is to be sent before a task with these tables; None if nothing."""
        if tables.digest in self._known:
            self._known.move_to_end(tables.digest)
            return None
        self._known[tables.digest] = None
        if len(self._known) <= _TABLES_OF_A_STREAM:
            return tables.message
        forgotten, _ = self._known.popitem(last=False)
        message = worker_service_pb2.TablesKnown(forgotten=[forgotten])
        message.MergeFrom(tables.message)
        return message
