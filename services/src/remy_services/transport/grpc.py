"""Workers that call in over gRPC: one stream each, tasks one way, results the other."""

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

# Heartbeats in a lease: some may come late, or get lost with a stalled machine.
_HEARTBEATS_PER_LEASE = 6
# A task that may have ended its worker waits for one that has been heard of since.
_LONGEST_SECONDS_BETWEEN_HEARTBEATS = 2.0


@dataclass(frozen=True)
class WorkerFleetSettings:
    """How a coordinator treats its workers. Times are seconds."""

    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    #: How long there must have been nothing to do before workers that exit when idle are told.
    idle_seconds: float = 10.0
    #: How long a caller may take to say who it is.
    hello_seconds: float = 10.0

    @property
    def heartbeat_seconds(self) -> float:
        """How often a worker should be heard of."""
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
    """Simulators with equal identities give equal results."""

    version: str
    #: `remy_simulator.fingerprint` of absolute and of scale-free rules, of more signals, and
    #: of protocols.
    digest: str
    scale_free_digest: str
    signals_digest: str
    protocols_digest: str

    @classmethod
    def own(cls) -> SimulatorIdentity:
        """Of the simulator that is installed here."""
        scale_free = remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE)
        return cls(
            version("remy-simulator"),
            remy_simulator.fingerprint(),
            scale_free,
            remy_simulator.signals_fingerprint(),
            remy_simulator.protocols_fingerprint(),
        )

    @property
    def sha256(self) -> bytes:
        """Of all digests: equal where results are."""
        digests = (self.digest, self.scale_free_digest, self.signals_digest, self.protocols_digest)
        return hashlib.sha256(" ".join(digests).encode()).digest()


class Unwelcome(Exception):
    """A caller is sent away: with what status, and why, in one sentence."""

    def __init__(self, code: grpc.StatusCode, why: str) -> None:
        super().__init__(why)
        self.code = code


def check_hello(hello: worker_service_pb2.Hello, own: SimulatorIdentity) -> WorkerFacts:
    """What the scheduler needs to know of a worker. Raises Unwelcome."""
    for name, value in (("worker_id", hello.worker_id), ("job_id", hello.job_id)):
        if len(value) > _LONGEST_NAME or not value.isprintable():
            raise _misspoken(f"{name} must be printable, of at most {_LONGEST_NAME} characters")
    if not hello.worker_id:
        raise _misspoken("worker_id is missing from Hello")
    if not 1 <= hello.threads <= _MOST_THREADS:
        raise _misspoken(f"threads is {hello.threads}; it must be 1 to {_MOST_THREADS}")
    rules = hello.simulator_digest, hello.scale_free_digest, hello.signals_digest
    theirs = SimulatorIdentity(hello.simulator_version, *rules, hello.protocols_digest)
    if theirs != own:
        raise Unwelcome(
            # Unlike a quarantine, this holds for every worker of that version.
            grpc.StatusCode.UNIMPLEMENTED,
            f"worker {hello.worker_id} has simulator {_describe(theirs)} and this coordinator "
            f"{_describe(own)}, so that their results would differ; install the coordinator's "
            "version of remy-farm-worker",
        )
    version, host = _describe(theirs), hello.host[:_LONGEST_NAME]
    return WorkerFacts(hello.worker_id, hello.threads, hello.job_id, version, host)


def _misspoken(why: str) -> Unwelcome:
    return Unwelcome(grpc.StatusCode.INVALID_ARGUMENT, why)


def _describe(identity: SimulatorIdentity) -> str:
    # What a stranger sends is not repeated at length.
    digests = (
        identity.digest,
        identity.scale_free_digest,
        identity.signals_digest,
        identity.protocols_digest,
    )
    shown = ", ".join(digest[:12] or "no digest" for digest in digests)
    return f"{identity.version[:20] or '(none)'} ({shown})"


Context = grpc.aio.ServicerContext[worker_service_pb2.WorkRequest, worker_service_pb2.WorkResponse]


@dataclass
class Traffic:
    """Bytes of messages, without what gRPC adds."""

    task_bytes: int = 0
    shared_bytes: int = 0
    trace_bytes: int = 0
    result_bytes: int = 0


class LastLines:
    """The last lines that workers have reported of their logs, also of those that have left."""

    def __init__(self) -> None:
        # By worker, those last that reported last.
        self._lines: OrderedDict[str, deque[WorkerLine]] = OrderedDict()
        self._jobs: dict[str, str] = {}

    def add(self, facts: WorkerFacts, line: worker_service_pb2.LogLine) -> None:
        """What a worker says is shown to people: it is cut, and made of printable characters."""
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

    def of(self, job_id: str) -> list[WorkerLine]:
        """Of the workers that work for a job alone, or for any; by time."""
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
    """The coordinator's end of a call: what is to be written, and what is known of the worker."""

    facts: WorkerFacts
    exit_when_idle: bool
    traffic: Traffic
    #: Where lines of its log go.
    lines: LastLines = field(default_factory=LastLines)
    #: Digests of the shared parts that the worker has, those last that were named last.
    shared: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    #: Since when there has been nothing for the worker to do; None: there is something.
    idle_since: float | None = None
    told_idle: bool = False
    #: How it left, as far as it has said.
    goodbye: str = ""
    #: Why the coordinator ends the stream.
    dismissal: Exception | None = None
    _outbox: deque[worker_service_pb2.WorkResponse] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False

    def send(self, message: worker_service_pb2.WorkResponse) -> None:
        """Has a message written as soon as the worker takes it."""
        self._outbox.append(message)
        self._changed.set()

    def end(self, dismissal: Exception | None = None) -> None:
        """Ends the stream: at once with an error, or without one when all has been written."""
        self._ended = True
        self.dismissal = self.dismissal or dismissal
        self._changed.set()

    async def write_until_ended(self, context: Context) -> None:
        """Writes what there is to write. Raises what the stream was ended with."""
        while True:
            while self._outbox and self.dismissal is None:
                await context.write(self._outbox.popleft())
            if self.dismissal is not None:
                raise self.dismissal
            if self._ended:
                return
            self._changed.clear()
            await self._changed.wait()


# More than a worker could use; a mistake rather than an ability.
_MOST_CREDIT_PER_THREAD = 64
_LONGEST_SENTENCE = 500
#: Why workers say that they end.
GOODBYES: Final = ("idle", "signal", "spot_interruption")
_NOTHING = evaluation_pb2.EvaluationOutcome()


def hear(
    scheduler: TaskScheduler,
    stream: WorkerStream,
    message: worker_service_pb2.WorkRequest,
    now: float,
) -> None:
    """What a worker says after its Hello. Raises Unwelcome for what makes no sense."""
    worker_id = stream.facts.worker_id
    match message.WhichOneof("message"):
        case "result":
            stream.traffic.result_bytes += message.ByteSize()
            _hear_result(scheduler, worker_id, message.result, now)
        case "credit":
            if message.credit.tasks > _MOST_CREDIT_PER_THREAD * stream.facts.threads:
                raise _misspoken(
                    f"credit for {message.credit.tasks} tasks is more than "
                    f"{_MOST_CREDIT_PER_THREAD} for each of {stream.facts.threads} threads"
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
            scheduler.say_goodbye(
                worker_id, stream.goodbye if stream.goodbye in GOODBYES else "goodbye"
            )
        case other:
            raise _misspoken(f"a {other or 'message without content'} after Hello")


def _hear_result(
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


def tell_the_idle(
    streams: Iterable[WorkerStream],
    has_work: Callable[[str], bool],
    idle_seconds: float,
    now: float,
) -> None:
    """Workers that end when there is nothing left are told, once, after `idle_seconds` of that."""
    for stream in streams:
        if not stream.exit_when_idle or stream.told_idle:
            continue
        if has_work(stream.facts.job_id):
            stream.idle_since = None
        elif stream.idle_since is None:
            stream.idle_since = now
        elif now - stream.idle_since >= idle_seconds:
            stream.told_idle = True
            nothing = worker_service_pb2.NothingLeft()
            stream.send(worker_service_pb2.WorkResponse(nothing_left=nothing))


_Requests = AsyncIterator[worker_service_pb2.WorkRequest]

_SHUTTING_DOWN = "the coordinator is shutting down"
# Of a recording: far below the limit that any message has.
_LARGEST_TRACE_PART_BYTES = 1 << 20

_log = structlog.get_logger()


class WorkerServicer(worker_service_pb2_grpc.WorkerServiceServicer):
    """One stream for each worker, from its Hello to its end.

    Who may call is decided before a call gets here.
    """

    def __init__(
        self,
        settings: WorkerFleetSettings,
        simulator: SimulatorIdentity,
        dispatcher: Dispatcher,
        traffic: Traffic,
    ) -> None:
        """What workers say goes to the dispatcher's scheduler."""
        self._settings = settings
        self._simulator = simulator
        self._dispatcher = dispatcher
        self._traffic = traffic
        self._closed = False
        #: By the worker's name.
        self.streams: dict[str, WorkerStream] = {}
        self.lines = LastLines()

    def close(self) -> None:
        """Sends all workers away, to call again later."""
        self._closed = True
        for stream in self.streams.values():
            stream.end(Unwelcome(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN))

    async def Work(self, request_iterator: _Requests, context: Context) -> None:  # noqa: N802
        try:
            stream = await self._welcome(request_iterator)
        except Unwelcome as problem:
            _log.warning("worker sent away", why=str(problem))
            await context.abort(problem.code, str(problem))
            return
        reading = asyncio.create_task(self._read(stream, request_iterator))
        try:
            await stream.write_until_ended(context)
        except Unwelcome as problem:
            await context.abort(problem.code, str(problem))
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            self._part(stream)

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

    async def _welcome(self, requests: _Requests) -> WorkerStream:
        """The first message decides. Raises Unwelcome."""
        if self._closed:
            raise Unwelcome(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN)
        hello = await self._hello(requests)
        facts = check_hello(hello, self._simulator)
        try:
            self._dispatcher.scheduler.join(facts, self._dispatcher.now())
        except WorkerQuarantined as problem:
            raise Unwelcome(grpc.StatusCode.FAILED_PRECONDITION, str(problem)) from None
        former = self.streams.get(facts.worker_id)
        if former is not None:
            former.end(Unwelcome(grpc.StatusCode.ABORTED, "the worker has called again"))
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

    async def _hello(self, requests: _Requests) -> worker_service_pb2.Hello:
        try:
            async with asyncio.timeout(self._settings.hello_seconds):
                message = await anext(requests, None)
        except TimeoutError:
            message = None
        if message is None or message.WhichOneof("message") != "hello":
            raise _misspoken("the first message must be Hello")
        return complete(message.hello)

    async def _read(self, stream: WorkerStream, requests: _Requests) -> None:
        """Hears the worker until it ends the stream, or it breaks."""
        try:
            async for message in requests:
                # A stream that another one has replaced speaks for nobody any more.
                if self.streams.get(stream.facts.worker_id) is stream:
                    hear(self._dispatcher.scheduler, stream, message, self._dispatcher.now())
                    self._dispatcher.advance_soon()
            stream.end()
        except Exception as problem:
            stream.end(problem)

    def _part(self, stream: WorkerStream) -> None:
        """A stream has ended, however it did."""
        worker_id = stream.facts.worker_id
        if self.streams.get(worker_id) is not stream:
            return
        del self.streams[worker_id]
        self._dispatcher.scheduler.leave(worker_id, self._dispatcher.now())
        if not self._closed:
            self._dispatcher.advance_soon()
        why = str(stream.dismissal) if stream.dismissal else stream.goodbye or "connection lost"
        _log.info("worker left", worker_id=worker_id, why=why)


# Jobs that take turns should not send what is shared again and again.
_SHARED_PARTS_OF_A_STREAM = 16


class WorkerFleet(Dispatcher):
    """A SharedEvaluator; workers reach it through the gRPC server that it is added to."""

    kind = "workers"

    def __init__(
        self,
        settings: WorkerFleetSettings | None = None,
        *,
        work_left: Callable[[str], bool] = lambda job_id: False,
        simulator: SimulatorIdentity | None = None,
        **options: Any,
    ) -> None:
        """No workers yet. For arguments that are not named here see Dispatcher.

        `work_left(job_id)` says whether a job, or any if empty, will still have something to
        evaluate after what it has asked for so far; workers that exit when idle wait for it.
        `simulator` is what a worker's must equal, by default the one that is installed here.
        """
        self._settings = settings or WorkerFleetSettings()
        self._work_left = work_left
        # Far from what another coordinator's scheduler, or an earlier one's, counted up to.
        scheduler = TaskScheduler(self._settings.scheduler, first_lease_id=secrets.randbits(48))
        super().__init__(scheduler, **options)
        # By evaluation: what its tasks have in common, as it is sent.
        self._shared: dict[int, worker_service_pb2.SharedPart] = {}
        self._idle_watch: asyncio.Task[None] | None = None
        self.traffic = Traffic()
        self._servicer = WorkerServicer(
            self._settings, simulator or SimulatorIdentity.own(), self, self.traffic
        )

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serves WorkerService; who may call is for the server's interceptors to decide.

        To be called once, in the event loop.
        """
        # What is generated has no types.
        add: Any = worker_service_pb2_grpc.add_WorkerServiceServicer_to_server
        add(self._servicer, server)
        self._idle_watch = asyncio.create_task(self._watch_the_idle())

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return self._servicer.lines.of(job_id)

    async def close(self) -> None:
        if self._idle_watch is not None:
            self._idle_watch.cancel()
            await asyncio.gather(self._idle_watch, return_exceptions=True)
        await super().close()
        self._servicer.close()

    def _assign(self, assignments: Sequence[Assignment]) -> None:
        # What one worker gets of one evaluation is one message.
        together: defaultdict[tuple[str, int], list[Assignment]] = defaultdict(list)
        for assignment in assignments:
            together[assignment.worker_id, assignment.evaluation_id].append(assignment)
        for (worker_id, _), tasks in together.items():
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
            stream.end(Unwelcome(grpc.StatusCode.FAILED_PRECONDITION, sentence))

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
            # Those of evaluations that have ended are of no use any more.
            for evaluation_id in self._shared.keys() - self._pending.keys():
                del self._shared[evaluation_id]
            content = shared_part(assignment.whole).SerializeToString(deterministic=True)
            digest = hashlib.sha256(content).digest()
            shared = worker_service_pb2.SharedPart(digest=digest, request=content)
            self._shared[assignment.evaluation_id] = shared
        return shared

    async def _watch_the_idle(self) -> None:
        while True:
            await asyncio.sleep(min(self._settings.idle_seconds / 4, 1.0))
            streams, seconds = self._servicer.streams.values(), self._settings.idle_seconds
            tell_the_idle(streams, self._has_work, seconds, self.now())

    def _has_work(self, job_id: str) -> bool:
        return self.scheduler.has_evaluations(job_id) or self._work_left(job_id)
