"""A worker: calls its coordinator, again and again, until it is to end."""

from __future__ import annotations

import os
import random
import threading
from typing import Any

import grpc
import structlog

from remy_farm.v1 import worker_service_pb2_grpc
from remy_workers.backoff import Backoff
from remy_workers.call import Call, hello
from remy_workers.connection import call_metadata, open_channel
from remy_workers.ending import IDLE, Ending
from remy_workers.exit_codes import ExitCode
from remy_workers.finality import FINAL
from remy_workers.heartbeat import Heartbeat
from remy_workers.outbox import Outbox
from remy_workers.settings import WorkerSettings
from remy_workers.simulation_threads import SimulationDesk, start_simulation_threads
from remy_workers.tables import KnownTables
from remy_workers.telemetry.metrics import TaskEnd, WorkerMetrics

# Tasks in reserve for each thread, so that none waits for the network.
_RESERVE = 1
# For the coordinator to hear what was said last.
_LAST_WORDS_SECONDS = 1.5

_log = structlog.get_logger()


class Worker:
    """Simulates for a coordinator. `run` is the whole of its life."""

    def __init__(self, settings: WorkerSettings, ending: Ending, metrics: WorkerMetrics) -> None:
        """Ends in order when `ending` is asked for."""
        self._settings = settings
        self._ending = ending
        self._metrics = metrics
        self._desk = SimulationDesk()
        self._heartbeat = Heartbeat(self._desk)
        self._backoff = Backoff(random.SystemRandom())
        # The call that is under way, and whether there may be another.
        self._lock = threading.Lock()
        self._call: grpc.Call | None = None
        self._call_is_over = threading.Condition(self._lock)

    def run(self) -> int:
        """The exit code, in the end. Works until it is to end, or the coordinator will not have it.

        Threads may be simulating still when this returns. Raises SettingsError.
        """
        settings = self._settings
        self._heartbeat.start()
        start_simulation_threads(
            settings.threads,
            self._desk,
            self._metrics,
            pin=settings.pin_threads,
            # At once and without a goodbye: the task may be what ended this worker.
            on_failure=lambda: os._exit(ExitCode.INTERNAL),
        )
        winding_down = threading.Thread(target=self._wind_down, name="ending", daemon=True)
        winding_down.start()
        while True:
            code = self._work()
            if self._ending.why:
                winding_down.join()
                return self._ended()
            if code is not None:
                return code
            if self._ending.wait(self._backoff.seconds()):
                return self._ended()

    def _ended(self) -> int:
        why = self._ending.why
        _log.info("ended", why=why)
        return ExitCode.DONE if why == IDLE else self._settings.interrupted_exit_code

    def _work(self) -> ExitCode | None:
        """One call, until it ends. The exit code if there is no use in another one."""
        settings = self._settings
        metadata = call_metadata(settings)
        call = Call(
            settings, self._desk, KnownTables(), self._ending, self._heartbeat, self._metrics
        )
        with open_channel(settings) as channel:
            outbox = Outbox()
            outbox.put(hello(settings))
            with self._lock:
                if self._ending.why:
                    return None
                # What is generated has no types.
                make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
                responses = make_stub(channel).Work(outbox, metadata=metadata)
                self._call = responses
                self._desk.open(outbox, settings.threads * (1 + _RESERVE))
            try:
                call.hear_all(responses)
                why: str | None = "the coordinator ended the call"
                code = None
            except grpc.RpcError as error:
                why, code = error.details(), FINAL.get(error.code())
            finally:
                self._desk.shut()
                with self._lock:
                    self._call = None
                    self._call_is_over.notify_all()
        if call.was_welcome:
            self._metrics.disconnected()
            self._backoff.reset()
        if code is not None:
            _log.error("the coordinator refuses this worker", why=why)
        elif not self._ending.why:
            _log.warning("not connected", coordinator=str(settings.coordinator), why=why)
        return code

    def _wind_down(self) -> None:
        """Once the worker is to end: ends what has begun, returns the rest, and hangs up."""
        self._ending.wait()
        _log.info("ending", why=self._ending.why)
        for _ in range(self._desk.wind_down(self._ending.why)):
            self._metrics.task_dropped(TaskEnd.RETURNED)
        self._desk.wait_until_done(self._settings.drain_seconds)
        self._desk.close()
        with self._lock:
            over = self._call_is_over.wait_for(lambda: self._call is None, _LAST_WORDS_SECONDS)
            if not over and self._call is not None:
                self._call.cancel()
