"""Worker transport over gRPC: each worker has one stream, with tasks out and results in."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

import grpc
import structlog
from google.protobuf.message import DecodeError

import remy_simulator
from remy_farm.evaluation.dispatcher import Dispatcher
from remy_farm.evaluation.interface import WorkerLine
from remy_farm.evaluation.scheduler.records import Assignment, SchedulerSettings
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler, WorkerQuarantined
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_proto.completion import complete
from remy_proto.v1 import (
    evaluation_pb2,
    rule_table_pb2,
    worker_service_pb2,
    worker_service_pb2_grpc,
)
from remy_rpc.logs import LEVELS
from remy_simulator import ImpossibleOutcome
from remy_simulator.columns import check, shared_part

# Several heartbeats per lease, so that late or lost ones do not end it.
_HEARTBEATS_PER_LEASE = 6
# Bounds how long a task suspected of crashing its worker waits for a fresh heartbeat elsewhere.
_LONGEST_SECONDS_BETWEEN_HEARTBEATS = 2.0


@dataclass(frozen=True)
class WorkerFleetSettings:
    """Settings of the worker transport, in seconds."""

    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    #: Idle time after which workers that exit when idle are told to exit.
    idle_seconds: float = 10.0
    #: Deadline for a worker's Hello.
    hello_seconds: float = 10.0

    @property
    def heartbeat_seconds(self) -> float:
        """Interval between a worker's heartbeats."""
        by_lease = self.scheduler.lease_seconds / _HEARTBEATS_PER_LEASE
        return min(by_lease, _LONGEST_SECONDS_BETWEEN_HEARTBEATS)


_LONGEST_NAME = 200
_LINES_OF_A_WORKER = 100
_WORKERS_WITH_LINES = 500
_MOST_LINES_SHOWN = 500
_LONGEST_LINE = 1000
_MOST_THREADS = 4096


@dataclass(frozen=True)
class SimulatorIdentity:
    """Version and digests of a simulator. Equal identities give equal results."""

    version: str
    #: Fingerprints of absolute rules, scale-free rules, additional signals, protocols, path
    #: models, and additional signals on all networks.
    digest: str
    scale_free_digest: str
    signals_digest: str
    protocols_digest: str
    path_model_digest: str
    network_signals_digest: str

    @classmethod
    def own(cls) -> SimulatorIdentity:
        """Returns the identity of the installed simulator."""
        scale_free = remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE)
        return cls(
            version("remy-simulator"),
            remy_simulator.fingerprint(),
            scale_free,
            remy_simulator.signals_fingerprint(),
            remy_simulator.protocols_fingerprint(),
            remy_simulator.path_model_fingerprint(),
            remy_simulator.network_signals_fingerprint(),
        )

    @property
    def sha256(self) -> bytes:
        """Hash of all digests; equal for simulators with equal results."""
        digests = (
            self.digest,
            self.scale_free_digest,
            self.signals_digest,
            self.protocols_digest,
            self.path_model_digest,
            self.network_signals_digest,
        )
        return hashlib.sha256(" ".join(digests).encode()).digest()


class WorkerRejected(Exception):
    """A worker's stream is refused or ended, with a gRPC status and a sentence."""

    def __init__(self, code: grpc.StatusCode, why: str) -> None:
        super().__init__(why)
        self.code = code


def check_hello(hello: worker_service_pb2.Hello, expected: SimulatorIdentity) -> WorkerFacts:
    """Validates a worker's Hello and returns its facts. Raises WorkerRejected."""
    for name, value in (("worker_id", hello.worker_id), ("job_id", hello.job_id)):
        if len(value) > _LONGEST_NAME or not value.isprintable():
            raise _protocol_error(
                f"{name} must be printable text of at most {_LONGEST_NAME} characters"
            )
    if not hello.worker_id:
        raise _protocol_error("worker_id is missing from Hello")
    if not 1 <= hello.threads <= _MOST_THREADS:
        raise _protocol_error(f"threads is {hello.threads}; it must be 1 to {_MOST_THREADS}")
    rules = hello.simulator_digest, hello.scale_free_digest, hello.signals_digest
    others = hello.protocols_digest, hello.path_model_digest, hello.network_signals_digest
    actual = SimulatorIdentity(hello.simulator_version, *rules, *others)
    if actual != expected:
        raise WorkerRejected(
            # UNIMPLEMENTED, because unlike a quarantine this applies to every worker of that
            # version.
            grpc.StatusCode.UNIMPLEMENTED,
            f"worker {hello.worker_id} has simulator {_describe(actual)}, but this coordinator has "
            f"{_describe(expected)}, so results would differ; install the coordinator's version of "
            "remy-farm-worker",
        )
    version, host = _describe(actual), hello.host[:_LONGEST_NAME]
    return WorkerFacts(hello.worker_id, hello.threads, hello.job_id, version, host)


def _protocol_error(why: str) -> WorkerRejected:
    return WorkerRejected(grpc.StatusCode.INVALID_ARGUMENT, why)


def _describe(identity: SimulatorIdentity) -> str:
    # Input of an unverified peer is shortened.
    digests = (
        identity.digest,
        identity.scale_free_digest,
        identity.signals_digest,
        identity.protocols_digest,
        identity.path_model_digest,
        identity.network_signals_digest,
    )
    shown = ", ".join(digest[:12] or "no digest" for digest in digests)
    return f"{identity.version[:20] or '(none)'} ({shown})"


Context = grpc.aio.ServicerContext[worker_service_pb2.WorkRequest, worker_service_pb2.WorkResponse]


@dataclass
class Traffic:
    """Message bytes sent and received, without gRPC overhead."""

    task_bytes: int = 0
    shared_bytes: int = 0
    trace_bytes: int = 0
    result_bytes: int = 0


class LastLines:
    """The latest log lines of workers, including disconnected ones."""

    def __init__(self) -> None:
        # By worker id, in order of the last report.
        self._lines: OrderedDict[str, deque[WorkerLine]] = OrderedDict()
        self._jobs: dict[str, str] = {}

    def add(self, facts: WorkerFacts, line: worker_service_pb2.LogLine) -> None:
        """Adds a line, shortened and with printable characters only."""
        worker_id, text = facts.worker_id, line.text[:_LONGEST_LINE]
        kept = self._lines.setdefault(worker_id, deque(maxlen=_LINES_OF_A_WORKER))
        kept.append(
            WorkerLine(
                worker_id=worker_id,
                host=_printable(facts.host),
                unix_seconds=line.unix_seconds if 0 <= line.unix_seconds < 1e11 else 0.0,
                level=line.level if line.level in LEVELS else "info",
                text=_printable(text),
            )
        )
        self._lines.move_to_end(worker_id)
        self._jobs[worker_id] = facts.job_id
        if len(self._lines) > _WORKERS_WITH_LINES:
            del self._jobs[self._lines.popitem(last=False)[0]]

    def for_job(self, job_id: str) -> list[WorkerLine]:
        """Returns the lines of workers dedicated to a job or to none, in order of time."""
        lines = [
            line
            for worker_id, kept in self._lines.items()
            if self._jobs[worker_id] in ("", job_id)
            for line in kept
        ]
        return sorted(lines, key=lambda line: line.unix_seconds)[-_MOST_LINES_SHOWN:]


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


@dataclass(eq=False)
class WorkerStream:
    """The coordinator's end of a worker's stream: outbox and state of the worker."""

    facts: WorkerFacts
    exit_when_idle: bool
    traffic: Traffic
    #: Collects the worker's log lines.
    lines: LastLines = field(default_factory=LastLines)
    #: Digests of the shared parts that the worker has, least recently used first.
    shared: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    #: Time since which the worker has had no work; None while there is work.
    idle_since: float | None = None
    notified_idle: bool = False
    #: The reason in the worker's Goodbye; empty before one.
    goodbye: str = ""
    #: Error with which the coordinator ends the stream.
    error: Exception | None = None
    _outbox: deque[worker_service_pb2.WorkResponse] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False

    def send(self, message: worker_service_pb2.WorkResponse) -> None:
        """Queues a message for the worker."""
        self._outbox.append(message)
        self._changed.set()

    def end(self, error: Exception | None = None) -> None:
        """Ends the stream: at once if there is an error, otherwise after the queued messages."""
        self._ended = True
        self.error = self.error or error
        self._changed.set()

    async def write_until_ended(self, context: Context) -> None:
        """Writes queued messages until the stream ends. Raises the stream's error."""
        while True:
            while self._outbox and self.error is None:
                await context.write(self._outbox.popleft())
            if self.error is not None:
                raise self.error
            if self._ended:
                return
            self._changed.clear()
            await self._changed.wait()


# More credit than a worker can use indicates a defect.
_MOST_CREDIT_PER_THREAD = 64
_LONGEST_SENTENCE = 500
#: Known reasons in a worker's Goodbye.
GOODBYES: Final = ("idle", "signal", "spot_interruption")
_NOTHING = evaluation_pb2.EvaluationOutcome()


def handle_message(
    scheduler: TaskScheduler,
    stream: WorkerStream,
    message: worker_service_pb2.WorkRequest,
    now: float,
) -> None:
    """Handles a message after Hello. Raises WorkerRejected for an invalid one."""
    worker_id = stream.facts.worker_id
    match message.WhichOneof("message"):
        case "result":
            stream.traffic.result_bytes += message.ByteSize()
            _handle_result(scheduler, worker_id, message.result, now)
        case "credit":
            if message.credit.tasks > _MOST_CREDIT_PER_THREAD * stream.facts.threads:
                raise _protocol_error(
                    f"credit is {message.credit.tasks} tasks, but at most "
                    f"{_MOST_CREDIT_PER_THREAD} per thread are allowed, with "
                    f"{stream.facts.threads} threads"
                )
            scheduler.credit(worker_id, message.credit.tasks, now)
        case "heartbeat":
            scheduler.heartbeat(worker_id, now)
        case "log_line":
            scheduler.heartbeat(worker_id, now)
            stream.lines.add(stream.facts, complete(message.log_line))
        case "refused":
            why = message.refused.why[:_LONGEST_SENTENCE]
            lease_id, over_limit = message.refused.lease_id, message.refused.over_packet_limit
            scheduler.refuse(worker_id, lease_id, why, now, over_limit=over_limit)
        case "returned":
            scheduler.give_back(worker_id, message.returned.lease_ids, now)
        case "goodbye":
            stream.goodbye = message.goodbye.why[:20] or "goodbye"
            scheduler.record_goodbye(
                worker_id, stream.goodbye if stream.goodbye in GOODBYES else "goodbye"
            )
        case other:
            raise _protocol_error(f"unexpected message after Hello: {other or 'empty'}")


def _handle_result(
    scheduler: TaskScheduler, worker_id: str, result: worker_service_pb2.TaskResult, now: float
) -> None:
    lease_id = result.lease_id
    seconds = result.cpu_seconds if 0 <= result.cpu_seconds < 1e6 else 0.0
    task = scheduler.task(lease_id)
    if task is None:
        scheduler.complete(worker_id, lease_id, _NOTHING, result.sha256, seconds, now)
        return
    if hashlib.sha256(result.outcome).digest() != result.sha256:
        scheduler.reject(worker_id, lease_id, "digest", now)
        return
    slicing, piece = task
    try:
        outcome = evaluation_pb2.EvaluationOutcome.FromString(result.outcome)
        check(slicing.request, outcome, slicing.rules, piece)
    except DecodeError:
        scheduler.reject(worker_id, lease_id, "encoding", now)
    except ImpossibleOutcome as problem:
        scheduler.reject_implausible(worker_id, lease_id, result.sha256, str(problem), now)
    else:
        scheduler.complete(worker_id, lease_id, outcome, result.sha256, seconds, now)


def notify_idle_workers(
    streams: Iterable[WorkerStream],
    has_work: Callable[[str], bool],
    idle_seconds: float,
    now: float,
) -> None:
    """Tells workers that exit when idle, once, that there has been no work for `idle_seconds`."""
    for stream in streams:
        if not stream.exit_when_idle or stream.notified_idle:
            continue
        if has_work(stream.facts.job_id):
            stream.idle_since = None
        elif stream.idle_since is None:
            stream.idle_since = now
        elif now - stream.idle_since >= idle_seconds:
            stream.notified_idle = True
            nothing = worker_service_pb2.NothingLeft()
            stream.send(worker_service_pb2.WorkResponse(nothing_left=nothing))


_Requests = AsyncIterator[worker_service_pb2.WorkRequest]

_SHUTTING_DOWN = "the coordinator is shutting down"
# Part size of link traces, far below the message size limit.
_LARGEST_TRACE_PART_BYTES = 1 << 20

_log = structlog.get_logger()


class WorkerServicer(worker_service_pb2_grpc.WorkerServiceServicer):
    """Serves a stream for each worker, from its Hello to its end.

    Callers are authorized by the server's interceptor.
    """

    def __init__(
        self,
        settings: WorkerFleetSettings,
        simulator: SimulatorIdentity,
        dispatcher: Dispatcher,
        traffic: Traffic,
    ) -> None:
        """Passes messages of workers to the dispatcher's scheduler."""
        self._settings = settings
        self._simulator = simulator
        self._dispatcher = dispatcher
        self._traffic = traffic
        self._closed = False
        #: Streams by worker id.
        self.streams: dict[str, WorkerStream] = {}
        self.lines = LastLines()

    def close(self) -> None:
        """Ends all streams with UNAVAILABLE, so that workers reconnect later."""
        self._closed = True
        for stream in self.streams.values():
            stream.end(WorkerRejected(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN))

    async def Work(self, request_iterator: _Requests, context: Context) -> None:  # noqa: N802
        try:
            stream = await self._accept(request_iterator)
        except WorkerRejected as problem:
            _log.warning("worker rejected", why=str(problem))
            await context.abort(problem.code, str(problem))
            return
        reading = asyncio.create_task(self._read(stream, request_iterator))
        try:
            await stream.write_until_ended(context)
        except WorkerRejected as problem:
            await context.abort(problem.code, str(problem))
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            self._on_disconnect(stream)

    async def ReadTrace(  # noqa: N802
        self, request: worker_service_pb2.ReadTraceRequest, context: Any
    ) -> worker_service_pb2.ReadTraceResponse:
        complete(request)
        recording = self._dispatcher.find_trace(request.sha256)
        if recording is None:
            why = f"no evaluation needs the trace {request.sha256[:32].hex()}"
            await context.abort(grpc.StatusCode.NOT_FOUND, why)
            raise AssertionError
        content, offset = recording.opportunities_us, request.offset
        if offset >= len(content):
            why = f"offset is {offset}, but the trace has {len(content)} bytes"
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, why)
        part = content[offset : offset + _LARGEST_TRACE_PART_BYTES]
        self._traffic.trace_bytes += len(part)
        return worker_service_pb2.ReadTraceResponse(content=part, total_bytes=len(content))

    async def _accept(self, requests: _Requests) -> WorkerStream:
        """Reads Hello and registers the worker. Raises WorkerRejected."""
        if self._closed:
            raise WorkerRejected(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN)
        hello = await self._read_hello(requests)
        facts = check_hello(hello, self._simulator)
        try:
            self._dispatcher.scheduler.join(facts, self._dispatcher.now())
        except WorkerQuarantined as problem:
            raise WorkerRejected(grpc.StatusCode.FAILED_PRECONDITION, str(problem)) from None
        former = self.streams.get(facts.worker_id)
        if former is not None:
            former.end(
                WorkerRejected(grpc.StatusCode.ABORTED, "the worker has opened another stream")
            )
        stream = WorkerStream(facts, hello.exit_when_idle, self._traffic, self.lines)
        self.streams[facts.worker_id] = stream
        welcome = worker_service_pb2.Welcome(
            lease_seconds=self._settings.scheduler.lease_seconds,
            heartbeat_seconds=self._settings.heartbeat_seconds,
            takes_log_lines=True,
        )
        stream.send(worker_service_pb2.WorkResponse(welcome=welcome))
        _log.info(
            "worker joined",
            worker_id=facts.worker_id,
            host=hello.host,
            threads=facts.threads,
            version=hello.version,
            job_id=facts.job_id,
        )
        return stream

    async def _read_hello(self, requests: _Requests) -> worker_service_pb2.Hello:
        try:
            async with asyncio.timeout(self._settings.hello_seconds):
                message = await anext(requests, None)
        except TimeoutError:
            message = None
        if message is None or message.WhichOneof("message") != "hello":
            raise _protocol_error("the first message must be Hello")
        return complete(message.hello)

    async def _read(self, stream: WorkerStream, requests: _Requests) -> None:
        """Handles the worker's messages until the stream ends or breaks."""
        try:
            async for message in requests:
                # Messages on a replaced stream are ignored.
                if self.streams.get(stream.facts.worker_id) is stream:
                    handle_message(
                        self._dispatcher.scheduler, stream, message, self._dispatcher.now()
                    )
                    self._dispatcher.advance_soon()
            stream.end()
        except Exception as problem:
            stream.end(problem)

    def _on_disconnect(self, stream: WorkerStream) -> None:
        """Removes the worker of an ended stream, unless another stream has replaced it."""
        worker_id = stream.facts.worker_id
        if self.streams.get(worker_id) is not stream:
            return
        del self.streams[worker_id]
        self._dispatcher.scheduler.leave(worker_id, self._dispatcher.now())
        if not self._closed:
            self._dispatcher.advance_soon()
        why = str(stream.error) if stream.error else stream.goodbye or "connection lost"
        _log.info("worker left", worker_id=worker_id, why=why)


# Cached per stream, so that alternating jobs do not resend their shared parts.
_SHARED_PARTS_OF_A_STREAM = 16


class WorkerFleet(Dispatcher):
    """A SharedEvaluator whose workers connect to a gRPC server."""

    kind = "workers"

    def __init__(
        self,
        settings: WorkerFleetSettings | None = None,
        *,
        work_left: Callable[[str], bool] = lambda job_id: False,
        simulator: SimulatorIdentity | None = None,
        **options: Any,
    ) -> None:
        """Starts without workers. `options` are passed to Dispatcher.

        `work_left(job_id)` returns whether the job, or any job if empty, may need further
        evaluations; workers that exit when idle stay connected while it does. `simulator` is the
        identity required of workers, by default that of the installed simulator.
        """
        self._settings = settings or WorkerFleetSettings()
        self._work_left = work_left
        # A random start makes collisions with lease ids of other coordinators unlikely.
        scheduler = TaskScheduler(self._settings.scheduler, first_lease_id=secrets.randbits(48))
        super().__init__(scheduler, **options)
        # Shared part of the tasks of each evaluation, as it is sent.
        self._shared: dict[int, worker_service_pb2.SharedPart] = {}
        self._idle_task: asyncio.Task[None] | None = None
        self.traffic = Traffic()
        self._servicer = WorkerServicer(
            self._settings, simulator or SimulatorIdentity.own(), self, self.traffic
        )

    def add_to(self, server: grpc.aio.Server) -> None:
        """Adds WorkerService to a server, whose interceptor authorizes callers.

        To be called once, in the event loop.
        """
        # Generated gRPC code has no type hints.
        add: Any = worker_service_pb2_grpc.add_WorkerServiceServicer_to_server
        add(self._servicer, server)
        self._idle_task = asyncio.create_task(self._watch_idle_workers())

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return self._servicer.lines.for_job(job_id)

    async def close(self) -> None:
        if self._idle_task is not None:
            self._idle_task.cancel()
            await asyncio.gather(self._idle_task, return_exceptions=True)
        await super().close()
        self._servicer.close()

    def _assign(self, assignments: Sequence[Assignment]) -> None:
        # Tasks of one evaluation for one worker share a message.
        batches: defaultdict[tuple[str, int], list[Assignment]] = defaultdict(list)
        for assignment in assignments:
            batches[assignment.worker_id, assignment.evaluation_id].append(assignment)
        for (worker_id, _), tasks in batches.items():
            stream = self._servicer.streams.get(worker_id)
            if stream is not None:
                self._send_tasks(stream, tasks)

    def _cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        stream = self._servicer.streams.get(worker_id)
        if stream is not None:
            cancelled = worker_service_pb2.TasksCancelled(lease_ids=lease_ids)
            stream.send(worker_service_pb2.WorkResponse(cancelled=cancelled))

    def _expel(self, worker_id: str, why: str) -> None:
        _log.error("worker quarantined", worker_id=worker_id, why=why)
        stream = self._servicer.streams.get(worker_id)
        if stream is not None:
            sentence = f"worker {worker_id} is quarantined: {why}"
            stream.end(WorkerRejected(grpc.StatusCode.FAILED_PRECONDITION, sentence))

    def _send_tasks(self, stream: WorkerStream, assignments: Sequence[Assignment]) -> None:
        first = assignments[0]
        shared = self._shared_part(first)
        if shared.digest not in stream.shared:
            part = worker_service_pb2.SharedPart(digest=shared.digest, request=shared.request)
            if len(stream.shared) >= _SHARED_PARTS_OF_A_STREAM:
                part.forgotten.append(stream.shared.popitem(last=False)[0])
            message = worker_service_pb2.WorkResponse(shared=part)
            self.traffic.shared_bytes += message.ByteSize()
            stream.send(message)
        stream.shared[shared.digest] = None
        stream.shared.move_to_end(shared.digest)
        tasks = worker_service_pb2.Tasks(
            shared_digest=shared.digest,
            job_id=first.share.job_id,
            trace_parent=first.share.trace_parent,
            packet_limit=first.share.packet_limit,
            tasks=[
                worker_service_pb2.Task(
                    lease_id=each.lease_id, slice=each.slicing.slice(each.slice)
                )
                for each in assignments
            ],
        )
        message = worker_service_pb2.WorkResponse(tasks=tasks)
        self.traffic.task_bytes += message.ByteSize()
        stream.send(message)

    def _shared_part(self, assignment: Assignment) -> worker_service_pb2.SharedPart:
        shared = self._shared.get(assignment.evaluation_id)
        if shared is None:
            # Drops the shared parts of ended evaluations.
            for evaluation_id in self._shared.keys() - self._pending.keys():
                del self._shared[evaluation_id]
            content = shared_part(assignment.whole).SerializeToString(deterministic=True)
            digest = hashlib.sha256(content).digest()
            shared = worker_service_pb2.SharedPart(digest=digest, request=content)
            self._shared[assignment.evaluation_id] = shared
        return shared

    async def _watch_idle_workers(self) -> None:
        while True:
            await asyncio.sleep(min(self._settings.idle_seconds / 4, 1.0))
            streams, seconds = self._servicer.streams.values(), self._settings.idle_seconds
            notify_idle_workers(streams, self._has_work, seconds, self.now())

    def _has_work(self, job_id: str) -> bool:
        return self.scheduler.has_evaluations(job_id) or self._work_left(job_id)
