"""A designer at work, and what it has said that is not committed yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.keeping import Environment
from remy_services.designer import Designer
from remy_services.designer.clock_budgets import Elapsed
from remy_services.jobs.progress import follow, measure
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Batch:
    """What is to be committed together."""

    events: Sequence[progress_pb2.ProgressEvent]
    #: Complete up to the designer's present state, but for what only a clock knows.
    progress: job_pb2.JobProgress
    epochs: Sequence[job_pb2.JobEpoch]
    snapshot: bytes


class Desk:
    """Has one designer compute, in a thread and one thing at a time."""

    def __init__(
        self,
        environment: Environment,
        job_id: str,
        designer: Designer,
        *,
        spec: spec_pb2.DesignSpec,
        first_table: RuleTable | None,
        progress: job_pb2.JobProgress,
        last_sequence: int,
        elapsed: Callable[[], Elapsed],
    ) -> None:
        """`last_sequence` is that of the last progress event in the job's history: a designer that
        an older snapshot was taken of makes those after it again, and they are not told twice."""
        self._environment = environment
        self._job_id = job_id
        self._designer = designer
        #: What the designer goes by.
        self.spec = spec
        self._first_table = first_table
        self._progress = job_pb2.JobProgress()
        self._progress.CopyFrom(progress)
        self._last_sequence = last_sequence
        self._elapsed = elapsed
        self._events: list[progress_pb2.ProgressEvent] = []
        self._epochs: list[job_pb2.JobEpoch] = []
        self._one_at_a_time = asyncio.Lock()

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        """Why the design is finished; None while it is not."""
        return self._designer.finished

    @property
    def steps(self) -> int:
        """Steps made."""
        return self._designer.steps

    @property
    def epochs(self) -> int:
        """Epochs completed."""
        return len(self._designer.epochs)

    @property
    def share_done(self) -> float | None:
        """How much of a search of fixed length is done, from 0 to 1."""
        return self._designer.share_done

    @property
    def evaluations(self) -> int:
        """Simulations of one specimen under one candidate in all steps made."""
        return self._designer.evaluations

    @property
    def simulated_packets(self) -> int:
        """Packets sent in them."""
        return self._designer.simulated_packets

    @property
    def has_news(self) -> bool:
        """Whether there is something to commit."""
        return bool(self._events)

    async def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """What to evaluate next; None if the design is finished."""
        return await self._compute(self._designer.next_request)

    async def receive(self, outcome: evaluation_pb2.EvaluationOutcome) -> None:
        """Makes a step. Raises OutcomeError."""
        await self._compute(lambda: self._take(self._designer.receive(outcome)))

    async def stop(self, reason: progress_pb2.StopReason) -> None:
        """Stops the design; one more evaluation may be due."""
        await self._compute(lambda: self._take(self._designer.stop(reason)))

    async def reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        """Goes on with a specification that may have other budgets. Raises CheckpointError."""
        await self._compute(lambda: self._reconsider(spec))

    async def batch(self) -> Batch:
        """All that is not committed yet."""
        return await self._compute(self._batch)

    def forget(self, batch: Batch) -> None:
        """The batch, which was the last, has been committed."""
        del self._events[: len(batch.events)]
        del self._epochs[: len(batch.epochs)]

    async def _compute(self, call: Callable[[], _Result]) -> _Result:
        async with self._one_at_a_time:
            result, seconds = await self._environment.threads.compute(_timed, call)
        self._environment.observer.computed(self._job_id, seconds)
        return result

    def _reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        if spec != self.spec:
            data = self._designer.checkpoint()
            self._designer = Designer.resume(spec, data, first_table=self._first_table)
            self.spec = spec
        self._take(self._designer.reconsider())

    def _take(self, events: Sequence[progress_pb2.ProgressEvent]) -> None:
        elapsed = self._elapsed()
        for event in events:
            event.wall_seconds = elapsed.wall_seconds
            event.cpu_seconds = elapsed.cpu_seconds
            if event.HasField("epoch_finished"):
                self._epochs.append(self._epoch(event.epoch_finished.record, elapsed))
        follow(self._progress, events)
        self._events += [event for event in events if event.sequence > self._last_sequence]

    def _epoch(self, record: progress_pb2.EpochRecord, elapsed: Elapsed) -> job_pb2.JobEpoch:
        return job_pb2.JobEpoch(
            record=record,
            table=from_native(self._designer.table),
            time=self._environment.clock(),
            cpu_seconds=elapsed.cpu_seconds,
        )

    def _batch(self) -> Batch:
        progress = job_pb2.JobProgress()
        progress.CopyFrom(self._progress)
        measure(progress, self._designer)
        return Batch(
            events=tuple(self._events),
            progress=progress,
            epochs=tuple(self._epochs),
            snapshot=self._designer.checkpoint(),
        )


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    began = time.thread_time()
    return call(), time.thread_time() - began
