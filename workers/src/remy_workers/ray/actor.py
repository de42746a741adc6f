"""The actor: a process on a node of the cluster that simulates."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Sequence

from remy_farm.v1 import worker_service_pb2
from remy_simulator import InvalidTable, RuleTable
from remy_workers.exit_codes import ExitCode
from remy_workers.introduction import introduce
from remy_workers.messages import refusal, returned
from remy_workers.simulation import simulate
from remy_workers.tables import KnownTables, UnknownTables
from remy_workers.telemetry.tracing import task_span, traces
from remy_workers.workload import Work

_TABLES_KEPT = 16


class EvaluationActor:
    """Simulates what it is asked to, in as many threads at once as Ray calls it in.

    Arguments and results are bytes.
    """

    def __init__(self) -> None:
        """In the process that will simulate."""
        self._worker_id = f"ray-{socket.gethostname()}-{secrets.token_hex(4)}"
        self._known = KnownTables()
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()
        self._open = contextlib.ExitStack()
        self._open.enter_context(traces(self._worker_id))

    def introduce(self) -> bytes:
        """A Hello, which names this process: it is another after a restart."""
        return introduce(self._worker_id, 1).SerializeToString()

    def node_id(self) -> bytes:
        """Of the node that this process is on."""
        # Only here, in a process of Ray's, is it certain to be installed.
        import ray

        node_id: str = ray.get_runtime_context().get_node_id()
        return node_id.encode()

    def is_alive(self) -> bytes:
        """Answers."""
        return b""

    def evaluate(self, tables: bytes, task: bytes) -> bytes:
        """Does a Task, with its TablesKnown; a WorkRequest with the answer."""
        try:
            return self._answer(tables, worker_service_pb2.Task.FromString(task))
        except Exception:
            # An exception would be pickled, and the process is in doubt.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(ExitCode.INTERNAL)

    def _answer(self, tables: bytes, task: worker_service_pb2.Task) -> bytes:
        try:
            work = Work(
                task.lease_id,
                task.job_id,
                task.request,
                self._find(task.tables_digest, tables),
                task.trace_parent,
            )
        except UnknownTables:
            return returned([task.lease_id]).SerializeToString()
        except InvalidTable as problem:
            return refusal(task.lease_id, str(problem)).SerializeToString()
        with task_span(
            work.trace_parent,
            job_id=work.job_id,
            candidates=len(work.request.candidates),
            specimens=len(work.request.specimens),
        ):
            return simulate(work).message.SerializeToString()

    def _find(self, digest: bytes, tables: bytes) -> Sequence[RuleTable]:
        """Tables as the simulator has them, converted once."""
        with self._lock:
            if digest not in self._recent:
                message = worker_service_pb2.TablesKnown.FromString(tables)
                if len(self._recent) >= _TABLES_KEPT:
                    oldest, _ = self._recent.popitem(last=False)
                    message.forgotten.append(oldest)
                self._known.learn(message)
            self._recent[digest] = None
            self._recent.move_to_end(digest)
            return self._known.find(digest)
