"""Requests and outcomes as columns: simulated, checked and scored without an object a simulation.

A request's specimens are columns (`pack_specimens`), and so is what an evaluation comes to: one
score a simulation if there is an objective, the results of every sender if there is none. Both are
cut by slices and put together again with exactly the same bytes, whatever the slices and their
order. Columns of numbers are bytes: little-endian, 8 bytes a number (`numpy.frombuffer` and
`memoryview.cast` read them).
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import _native, messages
from remy_simulator.cpus import allowed_cpus
from remy_simulator.traces import RecordedTrace, Traces

_NUMBER_BYTES = 8
# Fewer are added up before a second thread has begun.
_SPECIMENS_FOR_THREADS = 2048
# Sums of times may exceed their bound by rounding errors.
_TOLERANCE = 1 + 1e-9
# The longest that a packet can be under way: not a bound of the simulator, but of sanity.
_LARGEST_DELAY_MS = 1e15

_RECORDINGS = {
    evaluation_pb2.RECORDING_UNSPECIFIED: _native.Recording.NOTHING,
    evaluation_pb2.RECORDING_USES: _native.Recording.USES,
    evaluation_pb2.RECORDING_MEMORY: _native.Recording.MEMORY,
    evaluation_pb2.RECORDING_USED: _native.Recording.USED,
    evaluation_pb2.RECORDING_SHARES: _native.Recording.SHARES,
}
_RECORDS_MEMORY = (evaluation_pb2.RECORDING_MEMORY, evaluation_pb2.RECORDING_SHARES)
_COUNTS_USES = (evaluation_pb2.RECORDING_USES, *_RECORDS_MEMORY)


class InvalidRequest(ValueError):
    """An evaluation request that makes no sense, in one sentence."""


class ImpossibleOutcome(ValueError):
    """An outcome that cannot answer its request, in one sentence."""


# Specimens


def pack_specimens(
    specimens: Iterable[evaluation_pb2.Specimen],
) -> evaluation_pb2.SpecimenColumns:
    """Specimens as columns, equal ones to equal bytes."""
    columns = evaluation_pb2.SpecimenColumns()
    kinds: dict[bytes, int] = {}
    numbers, counts = [], []
    keys, rates, rtts, losses = array("Q"), array("d"), array("d"), array("d")
    buffers = []
    for specimen in specimens:
        keys.append(specimen.key)
        rates.append(specimen.link_rate_packets_per_ms)
        rtts.append(specimen.rtt_ms)
        losses.append(specimen.loss_probability)
        buffers.append(specimen.buffer_packets + 1 if specimen.HasField("buffer_packets") else 0)
        kind = evaluation_pb2.SpecimenKind(senders=specimen.senders, links=specimen.links)
        if specimen.HasField("measurement"):
            kind.measurement.CopyFrom(specimen.measurement)
        if specimen.HasField("bottleneck"):
            kind.bottleneck.CopyFrom(specimen.bottleneck)
        for group in kind.senders:
            counts.append(group.count)
            group.ClearField("count")
        name = kind.SerializeToString(deterministic=True)
        number = kinds.setdefault(name, len(kinds))
        if number == len(columns.kinds):
            columns.kinds.append(kind)
        numbers.append(number)
    columns.keys = keys.tobytes()
    columns.link_rates_packets_per_ms = rates.tobytes()
    columns.rtts_ms = rtts.tobytes()
    columns.sender_counts.extend(counts)
    if any(buffers):
        columns.buffers.extend(buffers)
    if any(losses):
        columns.loss_probabilities = losses.tobytes()
    if any(numbers):
        columns.kind.extend(numbers)
    return columns


def unpack_specimens(
    columns: evaluation_pb2.SpecimenColumns,
) -> list[evaluation_pb2.Specimen]:
    """The inverse of pack_specimens."""
    specimens = []
    count = iter(columns.sender_counts)
    for number, key in enumerate(memoryview(columns.keys).cast("Q")):
        kind = columns.kinds[columns.kind[number] if columns.kind else 0]
        specimen = evaluation_pb2.Specimen(
            key=key,
            link_rate_packets_per_ms=_numbers(columns.link_rates_packets_per_ms)[number],
            rtt_ms=_numbers(columns.rtts_ms)[number],
            senders=kind.senders,
            links=kind.links,
        )
        if columns.buffers and columns.buffers[number]:
            specimen.buffer_packets = columns.buffers[number] - 1
        if columns.loss_probabilities:
            specimen.loss_probability = _numbers(columns.loss_probabilities)[number]
        if kind.HasField("measurement"):
            specimen.measurement.CopyFrom(kind.measurement)
        if kind.HasField("bottleneck"):
            specimen.bottleneck.CopyFrom(kind.bottleneck)
        for group in specimen.senders:
            group.count = next(count)
        specimens.append(specimen)
    return specimens


def specimen_count(request: evaluation_pb2.EvaluationRequest) -> int:
    """How many specimens a request has."""
    return len(request.specimens) or len(request.specimen_columns.keys) // _NUMBER_BYTES


def packed(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
    """The request with its specimens as columns; itself if they are."""
    if not request.specimens:
        return request
    copy = evaluation_pb2.EvaluationRequest()
    copy.CopyFrom(request)
    copy.specimen_columns.CopyFrom(pack_specimens(request.specimens))
    copy.ClearField("specimens")
    return copy


def _group_counts(columns: evaluation_pb2.SpecimenColumns) -> list[int]:
    """Sender groups before each specimen, and of all."""
    groups = [len(kind.senders) for kind in columns.kinds]
    specimens = len(columns.keys) // _NUMBER_BYTES
    if not columns.kind:
        width = groups[0] if groups else 0
        return [width * number for number in range(specimens + 1)]
    before = [0]
    for number in columns.kind:
        before.append(before[-1] + groups[number])
    return before


def _groups_before(columns: evaluation_pb2.SpecimenColumns, specimen: int) -> int:
    """Sender groups of all specimens before this one."""
    if columns.kind:
        return _group_counts(columns)[specimen]
    return specimen * len(columns.kinds[0].senders) if columns.kinds else 0


def _sender_counts(columns: evaluation_pb2.SpecimenColumns) -> list[int]:
    """Senders of each specimen."""
    before = _group_counts(columns)
    counts = columns.sender_counts[:]
    if before[-1] == len(before) - 1:
        return counts
    return [sum(counts[first:behind]) for first, behind in pairwise(before)]


# Slices


@dataclass(frozen=True)
class Slice:
    """Some of a request's candidates on some of its specimens."""

    candidates: range
    specimens: range

    @property
    def simulations(self) -> int:
        """Simulations of one specimen under one candidate."""
        return len(self.candidates) * len(self.specimens)


def whole(request: evaluation_pb2.EvaluationRequest) -> Slice:
    """All of a request."""
    return Slice(range(len(request.candidates)), range(specimen_count(request)))


def shared_part(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
    """What all slices of a packed request have in common: all but candidates and specimens.

    A request is its shared part merged with `slice_request` (`MergeFrom`, or serialized one behind
    the other), so that whoever gets many slices needs the shared part once.
    """
    shared = evaluation_pb2.EvaluationRequest(
        tables=request.tables,
        duration_ms=request.duration_ms,
        seed=request.seed,
        recording=request.recording,
        specimen_columns=evaluation_pb2.SpecimenColumns(kinds=request.specimen_columns.kinds),
        traces=request.traces,
    )
    if request.HasField("objective"):
        shared.objective.CopyFrom(request.objective)
    if request.HasField("bounds"):
        shared.bounds.CopyFrom(request.bounds)
    return shared


def slice_request(
    request: evaluation_pb2.EvaluationRequest, part: Slice
) -> evaluation_pb2.EvaluationRequest:
    """The candidates and specimens of a slice of a packed request, and nothing else."""
    return Slicing(request).slice(part)


class Slicing:
    """`slice_request` of many slices: a message's bytes are copied whenever they are looked at."""

    def __init__(self, request: evaluation_pb2.EvaluationRequest) -> None:
        """The request must not change."""
        self.request = request
        columns = request.specimen_columns
        self._keys, self._rates, self._rtts, self._losses = (
            memoryview(column)
            for column in (
                columns.keys,
                columns.link_rates_packets_per_ms,
                columns.rtts_ms,
                columns.loss_probabilities,
            )
        )

    @cached_property
    def rules(self) -> int:
        """Rules of the table that candidates change."""
        return rule_count(self.request.tables[0]) if self.request.tables else 0

    def slice(self, part: Slice) -> evaluation_pb2.EvaluationRequest:
        """The candidates and specimens of a slice."""
        request, columns = self.request, self.request.specimen_columns
        first, behind = part.specimens.start, part.specimens.stop
        place = slice(first * _NUMBER_BYTES, behind * _NUMBER_BYTES)
        groups = slice(_groups_before(columns, first), _groups_before(columns, behind))
        return evaluation_pb2.EvaluationRequest(
            candidates=request.candidates[part.candidates.start : part.candidates.stop],
            specimen_columns=evaluation_pb2.SpecimenColumns(
                keys=bytes(self._keys[place]),
                link_rates_packets_per_ms=bytes(self._rates[place]),
                rtts_ms=bytes(self._rtts[place]),
                buffers=columns.buffers[first:behind],
                loss_probabilities=bytes(self._losses[place]),
                kind=columns.kind[first:behind],
                sender_counts=columns.sender_counts[groups],
            ),
        )


# Evaluation


class PreparedRequest:
    """What all slices of a request have in common, as the simulator has it: converted once.

    Safe for use by several threads at a time.
    """

    def __init__(
        self,
        shared: evaluation_pb2.EvaluationRequest,
        tables: Sequence[_native.RuleTable] | None = None,
        find_trace: Callable[[bytes], RecordedTrace | None] = lambda sha256: None,
    ) -> None:
        """`shared` may be a whole request: its candidates and specimens are not looked at. `tables`
        take the place of its tables, `find_trace` knows traces that it names alone. Raises
        InvalidRequest.
        """
        if shared.recording not in _RECORDINGS:
            raise InvalidRequest(f"recording is {shared.recording}, which is not one of 0 to 3")
        self.shared = shared
        self._recording = _RECORDINGS[shared.recording]
        try:
            native = native_tables(shared.tables) if tables is None else tables
            self._tables = [_native.CompiledTable(table) for table in native]
            kinds = shared.specimen_columns.kinds
            self._traces = Traces(shared.traces, find_trace)
            self._kinds = [_native_kind(kind, self._traces) for kind in kinds]
        except ValueError as problem:
            raise InvalidRequest(str(problem)) from problem
        self._all_plain = all(map(messages.is_plain, kinds))
        self._objective = (
            messages.native_objective(shared.objective) if shared.HasField("objective") else None
        )

    @property
    def rules(self) -> int:
        """Rules of the table that candidates change."""
        return self._tables[0].rule_count if self._tables else 0

    def evaluate(
        self,
        part: evaluation_pb2.EvaluationRequest,
        threads: int = 1,
        cancellation: _native.Cancellation | None = None,
        packet_limit: int | None = None,
    ) -> evaluation_pb2.EvaluationOutcome:
        """Simulates, and scores if there is an objective: one native call, without the GIL.

        `part` is what `slice_request` gives, or the whole request. Raises InvalidRequest, and
        Cancelled within milliseconds after `cancellation.cancel()`, and if more than `packet_limit`
        packets are sent; in the main thread, signal handlers run, and what they raise is raised.
        """
        try:
            if part.specimens:
                part = packed(part)
                kinds = [_native_kind(kind, self._traces) for kind in part.specimen_columns.kinds]
                all_plain = all(map(messages.is_plain, part.specimen_columns.kinds))
            else:
                kinds, all_plain = self._kinds, self._all_plain
            columns = part.specimen_columns
            result = _native.evaluate_columns(
                self._tables,
                [self._candidate(candidate) for candidate in part.candidates],
                kinds,
                columns.keys,
                columns.link_rates_packets_per_ms,
                columns.rtts_ms,
                columns.buffers[:],
                columns.loss_probabilities,
                columns.kind[:],
                columns.sender_counts[:],
                self.shared.duration_ms,
                self.shared.seed,
                self._recording,
                self._objective,
                max(threads, 1),
                cancellation,
                packet_limit,
            )
        except ValueError as problem:
            raise InvalidRequest(str(problem)) from problem
        outcome = evaluation_pb2.EvaluationOutcome(
            packets_sent=result.packets_sent,
            scores=result.scores,
            rule_uses=result.rule_uses,
            used_rules=result.used_rules,
        )
        if self._objective is None:
            outcome.senders.CopyFrom(_senders(result, is_plain=all_plain))
        if self.shared.recording in _RECORDS_MEMORY:
            outcome.memory.CopyFrom(_memory(result.memory_places, result.memory_counts))
        return outcome

    def _candidate(
        self, candidate: evaluation_pb2.Candidate
    ) -> _native.Unchanged | _native.ActionChanges | _native.Perturbation:
        if not candidate.HasField("perturbation"):
            return messages.native_candidate(candidate)
        perturbation = candidate.perturbation
        seed = perturbation.seed if perturbation.HasField("seed") else self.shared.seed
        if perturbation.HasField("bounds"):
            bounds = messages.native_bounds(perturbation.bounds)
        else:
            bounds = self._bounds
        return _native.Perturbation(seed, perturbation.scale, bounds)

    @cached_property
    def _bounds(self) -> _native.ActionBounds:
        return messages.native_bounds(self.shared.bounds)


def evaluate_columns(
    request: evaluation_pb2.EvaluationRequest,
    threads: int = 1,
    tables: Sequence[_native.RuleTable] | None = None,
    cancellation: _native.Cancellation | None = None,
    packet_limit: int | None = None,
) -> evaluation_pb2.EvaluationOutcome:
    """Simulates every candidate on every specimen. See PreparedRequest for what it raises.

    It can be retried, duplicated and split by candidate and specimen: what a simulation comes to
    depends on nothing but the tables, the candidate, the specimen, the duration and the seed, and
    is the same bits on every machine and with any number of threads.
    """
    return PreparedRequest(request, tables).evaluate(request, threads, cancellation, packet_limit)


def _senders(result: _native.OutcomeColumns, *, is_plain: bool) -> evaluation_pb2.SenderColumns:
    senders = evaluation_pb2.SenderColumns(
        packets_received=result.packets_received,
        packets_sent=result.sender_packets_sent,
        packets_lost=result.packets_lost,
        on_ms=result.on_ms,
        share_ms=result.share_ms,
        delay_sum_ms=result.delay_sum_ms,
        first_on_ms=result.first_on_ms,
    )
    if not is_plain:
        _set_transport(senders.transport, result.transport)
    return senders


def recorded_outcome(
    request: evaluation_pb2.EvaluationRequest, recording: _native.NetworkRecording
) -> evaluation_pb2.EvaluationOutcome:
    """What evaluate_columns gives for the recorded specimen, where nothing is scored or counted."""
    is_plain = messages.is_plain(request.specimens[0])
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=recording.outcome.packets_sent,
        senders=_senders(recording.outcome, is_plain=is_plain),
    )


def record(request: evaluation_pb2.EvaluationRequest, every_ms: float) -> _native.NetworkRecording:
    """What is seen of a request's first specimen every so often, as columns: of senders by time
    and sender, of links by time and link; and what recorded_outcome() makes an outcome of.
    Raises InvalidRequest."""
    specimen = request.specimens[0]
    try:
        traces = Traces(request.traces)
        return _native.record(
            [_native.CompiledTable(table) for table in native_tables(request.tables)],
            _native.Specimen(
                specimen.key,
                specimen.link_rate_packets_per_ms,
                specimen.rtt_ms,
                specimen.buffer_packets if specimen.HasField("buffer_packets") else None,
                specimen.loss_probability,
                messages.native_measurement(specimen.measurement),
                [messages.native_senders(group) for group in specimen.senders],
                messages.native_bottleneck(specimen),
                [messages.native_link(link, traces) for link in specimen.links],
            ),
            request.duration_ms,
            request.seed,
            every_ms,
        )
    except ValueError as problem:
        raise InvalidRequest(str(problem)) from problem


def native_tables(tables: Iterable[rule_table_pb2.RuleTable]) -> list[_native.RuleTable]:
    """Tables as the simulator has them. Raises InvalidTable, which is a ValueError."""
    return [messages.to_native(table) for table in tables]


def _native_kind(kind: evaluation_pb2.SpecimenKind, traces: Traces) -> _native.SpecimenKind:
    return _native.SpecimenKind(
        messages.native_measurement(kind.measurement),
        [messages.native_senders(group) for group in kind.senders],
        messages.native_bottleneck(kind),
        [messages.native_link(link, traces) for link in kind.links],
    )


# In the order of the fields: counts by sender, then of each flow, then means by sender.
_TRANSPORT = tuple(field.name for field in evaluation_pb2.TransportColumns.DESCRIPTOR.fields)
_COUNTS, _MEANS = _TRANSPORT[:7], _TRANSPORT[9:]


def _set_transport(
    columns: evaluation_pb2.TransportColumns, values: Sequence[Sequence[int] | bytes]
) -> None:
    for name, column in zip(_TRANSPORT, values, strict=True):
        if isinstance(column, bytes):
            setattr(columns, name, column)
        else:
            getattr(columns, name).extend(column)


class _TransportRows:
    """TransportColumns that are cut by senders."""

    def __init__(self, columns: evaluation_pb2.TransportColumns) -> None:
        self._columns = columns
        self._flows_before = [0, *itertools.accumulate(columns.flows)]
        # A message's bytes are copied whenever they are looked at.
        self._completion_ms = columns.completion_ms
        self._means = [(name, getattr(columns, name)) for name in _MEANS]

    def append_to(self, target: evaluation_pb2.TransportColumns, first: int, behind: int) -> None:
        """The senders from `first` up to, and without, `behind`."""
        for name in _COUNTS:
            getattr(target, name).extend(getattr(self._columns, name)[first:behind])
        begin, end = self._flows_before[first], self._flows_before[behind]
        target.flow_packets.extend(self._columns.flow_packets[begin:end])
        target.completion_ms += self._completion_ms[begin * _NUMBER_BYTES : end * _NUMBER_BYTES]
        for name, column in self._means:
            means = column[first * _NUMBER_BYTES : behind * _NUMBER_BYTES]
            setattr(target, name, getattr(target, name) + means)


# Outcomes


def assemble(
    request: evaluation_pb2.EvaluationRequest,
    parts: Iterable[tuple[Slice, evaluation_pb2.EvaluationOutcome]],
) -> evaluation_pb2.EvaluationOutcome:
    """The outcome of a packed request from those of slices that cover it once, in any order.

    The parts must have been checked. The result is equal, byte for byte, to what the whole request
    evaluates to. Raises ValueError if the slices do not cover it.
    """
    specimens = specimen_count(request)
    simulations = len(request.candidates) * specimens
    parts = list(parts)
    outcome = evaluation_pb2.EvaluationOutcome()
    # Rows of the parts by where they belong: a candidate's simulations on neighbouring specimens.
    rows = sorted(
        (candidate * specimens + part.specimens.start, row * len(part.specimens), number)
        for number, (part, _) in enumerate(parts)
        for row, candidate in enumerate(part.candidates)
    )
    packets: list[int] = []
    scores = []
    for place, first, number in rows:
        part, result = parts[number]
        behind = first + len(part.specimens)
        if place != len(packets):
            break
        packets += result.packets_sent[first:behind]
        scores.append(result.scores[first * _NUMBER_BYTES : behind * _NUMBER_BYTES])
    if len(packets) != simulations or sum(part.simulations for part, _ in parts) != simulations:
        raise ValueError(f"the parts do not cover the request's {simulations} simulations once")
    outcome.packets_sent.extend(packets)
    if request.HasField("objective"):
        outcome.scores = b"".join(scores)
    else:
        _assemble_senders(request, parts, rows, outcome.senders)
    if request.recording in _COUNTS_USES:
        outcome.rule_uses.extend(
            sum(uses) for uses in zip(*(result.rule_uses for _, result in parts), strict=True)
        )
    if request.recording == evaluation_pb2.RECORDING_USED and simulations:
        outcome.used_rules = _union(parts, specimens)
    if request.recording in _RECORDS_MEMORY:
        counts: dict[int, int] = {}
        for _, result in parts:
            place = 0
            for step, count in zip(result.memory.places, result.memory.counts, strict=True):
                place += step
                counts[place] = counts.get(place, 0) + count
        places = sorted(counts)
        outcome.memory.CopyFrom(_memory(places, [counts[place] for place in places]))
    return outcome


def _assemble_senders(
    request: evaluation_pb2.EvaluationRequest,
    parts: Sequence[tuple[Slice, evaluation_pb2.EvaluationOutcome]],
    rows: Iterable[tuple[int, int, int]],
    senders: evaluation_pb2.SenderColumns,
) -> None:
    counts = _sender_counts(request.specimen_columns)
    times: list[list[bytes]] = [[], [], [], []]
    transports = [_TransportRows(result.senders.transport) for _, result in parts]
    if any(result.senders.HasField("transport") for _, result in parts):
        senders.transport.SetInParent()
    for _, first, number in rows:
        part, result = parts[number]
        width = sum(counts[part.specimens.start : part.specimens.stop])
        begin = first // max(len(part.specimens), 1) * width
        columns, end = result.senders, begin + width
        senders.packets_received.extend(columns.packets_received[begin:end])
        senders.packets_sent.extend(columns.packets_sent[begin:end])
        senders.packets_lost.extend(columns.packets_lost[begin:end])
        if columns.HasField("transport"):
            transports[number].append_to(senders.transport, begin, end)
        place = slice(begin * _NUMBER_BYTES, end * _NUMBER_BYTES)
        for column, values in zip(times, _times(columns), strict=True):
            column.append(values[place])
    senders.on_ms, senders.share_ms, senders.delay_sum_ms, senders.first_on_ms = (
        b"".join(column) for column in times
    )


def _union(
    parts: Iterable[tuple[Slice, evaluation_pb2.EvaluationOutcome]], specimens: int
) -> bytes:
    """Masks by specimen of the rules that any candidate used."""
    union = bytearray()
    for part, result in parts:
        if not part.simulations:
            continue
        width = len(result.used_rules) // len(part.specimens)
        union = union or bytearray(width * specimens)
        place = slice(part.specimens.start * width, part.specimens.stop * width)
        both = int.from_bytes(union[place], "little") | int.from_bytes(result.used_rules, "little")
        union[place] = both.to_bytes(len(result.used_rules), "little")
    return bytes(union)


def check(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    rules: int | None = None,
    part: Slice | None = None,
) -> None:
    """Raises ImpossibleOutcome for what no evaluation of a slice of a packed request comes to.

    `rules` is the number of rules of the request's first table, for those who know it; `part` is
    the whole request unless it is given.
    """
    part = part or whole(request)
    if rules is None:
        rules = rule_count(request.tables[0]) if request.tables else 0
    if len(outcome.packets_sent) != part.simulations:
        raise ImpossibleOutcome(
            f"the outcome counts the packets of {len(outcome.packets_sent)} simulations; the "
            f"request asks for {len(part.candidates)} candidates on {len(part.specimens)} specimens"
        )
    if request.HasField("objective"):
        _check_scores(outcome, part)
    else:
        _check_senders(request, outcome, part)
    _check_recording(request.recording, outcome, rules, part)


def _check_scores(outcome: evaluation_pb2.EvaluationOutcome, part: Slice) -> None:
    if len(outcome.scores) != part.simulations * _NUMBER_BYTES or outcome.HasField("senders"):
        raise ImpossibleOutcome(
            f"the outcome holds {len(outcome.scores)} bytes of scores where {part.simulations} "
            "simulations were to be scored"
        )
    scores = _numbers(outcome.scores)
    if any(map(math.isinf, scores)):
        number, score = next(each for each in enumerate(scores) if math.isinf(each[1]))
        raise ImpossibleOutcome(
            f"candidate {part.candidates[number // len(part.specimens)]} scored {score} on "
            f"specimen {part.specimens[number % len(part.specimens)]}; scores are finite"
        )


def _check_senders(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    part: Slice,
) -> None:
    columns = request.specimen_columns
    counts = _sender_counts(columns)[part.specimens.start : part.specimens.stop]
    senders = sum(counts) * len(part.candidates)
    if outcome.scores or not outcome.HasField("senders"):
        raise ImpossibleOutcome("the outcome holds scores where senders' results were asked for")
    received, sent, lost = (
        outcome.senders.packets_received[:],
        outcome.senders.packets_sent[:],
        outcome.senders.packets_lost[:],
    )
    times = _times(outcome.senders)
    if any(len(values) != senders for values in (received, sent, lost)) or any(
        len(values) != senders * _NUMBER_BYTES for values in times
    ):
        raise ImpossibleOutcome(
            f"the outcome does not hold one entry for each of its simulations' {senders} senders"
        )
    first = 0
    for number, packets in enumerate(outcome.packets_sent):
        behind = first + counts[number % len(counts)]
        if sum(sent[first:behind]) != packets:
            raise ImpossibleOutcome(
                f"simulation {number} of the outcome sent {packets} packets, and its senders "
                f"{sum(sent[first:behind])}"
            )
        first = behind
    if any(got > out for got, out in zip(received, sent, strict=True)):
        raise ImpossibleOutcome("the outcome has more packets received than sent")
    if any(gone > out for gone, out in zip(lost, sent, strict=True)):
        raise ImpossibleOutcome("the outcome has more packets lost than sent")
    _check_transport(request, outcome.senders, senders)
    longest_ms = request.duration_ms * _TOLERANCE
    on, share, delays, first_on = (_numbers(values) for values in times)
    for values, longest in (
        (on, longest_ms),
        (share, longest_ms),
        (first_on, longest_ms),
        (delays, _LARGEST_DELAY_MS),
    ):
        if not all(0.0 <= value <= longest for value in values):
            raise ImpossibleOutcome(
                "the outcome has a time that is not between 0 and what is possible"
            )
    if any(part > all_of_it * _TOLERANCE for part, all_of_it in zip(share, on, strict=True)):
        raise ImpossibleOutcome(
            "the outcome has a sender with a larger share of the time than it was on"
        )


def _check_transport(
    request: evaluation_pb2.EvaluationRequest,
    columns: evaluation_pb2.SenderColumns,
    senders: int,
) -> None:
    is_expected = not all(map(messages.is_plain, request.specimen_columns.kinds))
    if columns.HasField("transport") != is_expected:
        raise ImpossibleOutcome(
            "the outcome does not say what protocols, bodies and queues came to"
            if is_expected
            else "the outcome says what protocols came to, of which there are none"
        )
    if not is_expected:
        return
    transport = columns.transport
    counts = [getattr(transport, name) for name in _COUNTS]
    means = [getattr(transport, name) for name in _MEANS]
    flows = sum(transport.flows)
    if (
        any(len(values) != senders for values in counts)
        or any(len(values) != senders * _NUMBER_BYTES for values in means)
        or len(transport.flow_packets) != flows
        or len(transport.completion_ms) != flows * _NUMBER_BYTES
    ):
        raise ImpossibleOutcome(
            f"the outcome does not hold one entry for each of its {senders} senders and their flows"
        )
    for values in (transport.packets_in_order, transport.throughput_packets):
        if any(got > out for got, out in zip(values, columns.packets_sent, strict=True)):
            raise ImpossibleOutcome("the outcome has more packets handed on than sent")
    if any(
        again > out
        for again, out in zip(transport.packets_repeated, columns.packets_sent, strict=True)
    ):
        raise ImpossibleOutcome("the outcome has more packets repeated than sent")
    longest_ms = request.duration_ms * _TOLERANCE
    if not all(0.0 <= value <= longest_ms for value in _numbers(transport.completion_ms)):
        raise ImpossibleOutcome("the outcome has a flow that took longer than was simulated")
    if not all(0.0 <= rtt_ms <= _LARGEST_DELAY_MS for each in means for rtt_ms in _numbers(each)):
        raise ImpossibleOutcome("the outcome has an RTT that is not between 0 and what is possible")


def _check_recording(
    recording: evaluation_pb2.Recording,
    outcome: evaluation_pb2.EvaluationOutcome,
    rules: int,
    part: Slice,
) -> None:
    counted = rules if recording in _COUNTS_USES else 0
    if len(outcome.rule_uses) != counted:
        raise ImpossibleOutcome(
            f"the outcome counts the uses of {len(outcome.rule_uses)} rules, not of {counted}"
        )
    masked = recording == evaluation_pb2.RECORDING_USED
    width = (rules + 7) // 8
    if len(outcome.used_rules) != (len(part.specimens) * width if masked else 0):
        raise ImpossibleOutcome(
            f"the outcome has {len(outcome.used_rules)} bytes of used rules for "
            f"{len(part.specimens)} specimens and a table of {rules} rules"
        )
    if masked and rules % 8 and max(outcome.used_rules[width - 1 :: width], default=0) >> rules % 8:
        raise ImpossibleOutcome(f"the outcome names used rules beyond the table's {rules}")
    steps, counts = outcome.memory.places[:], outcome.memory.counts[:]
    if recording not in _RECORDS_MEMORY:
        if outcome.HasField("memory"):
            raise ImpossibleOutcome("the outcome holds memory that was not to be recorded")
        return
    if (
        len(steps) != len(counts)
        or any(step == 0 for step in steps[1:])
        or any(count == 0 for count in counts)
        or (steps and sum(steps) >= rules * messages.AXES * _native.MEMORY_BUCKETS)
    ):
        raise ImpossibleOutcome("the outcome's memory does not lie on its scale")


# Reading outcomes


def score_rows(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> list[list[float | None]]:
    """The scores of every candidate (first index) on every specimen; None where no sender could be
    scored."""
    scores = [None if score != score else score for score in _numbers(outcome.scores)]
    width = specimen_count(request)
    return [scores[row * width : (row + 1) * width] for row in range(len(request.candidates))]


def specimen_outcomes(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> list[evaluation_pb2.SpecimenOutcome]:
    """The senders' results by simulation, without what was recorded of rules."""
    counts = _sender_counts(packed(request).specimen_columns) * len(request.candidates)
    columns = outcome.senders
    on, share, delays, first_on = (_numbers(values) for values in _times(columns))
    transport = _TransportRows(columns.transport)
    results = []
    first = 0
    for count in counts:
        place = slice(first, first + count)
        results.append(
            evaluation_pb2.SpecimenOutcome(
                packets_received=columns.packets_received[place],
                packets_sent=columns.packets_sent[place],
                packets_lost=columns.packets_lost[place],
                on_ms=on[place],
                share_ms=share[place],
                delay_sum_ms=delays[place],
                first_on_ms=first_on[place],
            )
        )
        if columns.HasField("transport"):
            transport.append_to(results[-1].transport, first, first + count)
        first += count
    return results


def digest(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> str:
    """16 hexadecimal digits that stand for every sender's exact results, in order."""
    results = specimen_outcomes(request, outcome)
    return _native.digest(
        [messages.sender_rows(each) for each in results],
        [messages.transport_rows(each.transport) for each in results],
    )


def memory_summaries(
    outcome: evaluation_pb2.EvaluationOutcome,
) -> dict[tuple[int, int], tuple[list[int], list[int]]]:
    """What triggered the rules: (buckets, counts), as `remy_simulator.summary_median` takes them,
    by (rule, axis)."""
    summaries: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    place, usual_rows = 0, len(outcome.rule_uses) * messages.USUAL_AXES
    for step, count in zip(outcome.memory.places, outcome.memory.counts, strict=True):
        place += step
        row, bucket = divmod(place, _native.MEMORY_BUCKETS)
        if row < usual_rows:
            rule, axis = divmod(row, messages.USUAL_AXES)
        else:
            rule, axis = divmod(row - usual_rows, messages.AXES - messages.USUAL_AXES)
            axis += messages.USUAL_AXES
        buckets, counts = summaries.setdefault((rule, axis), ([], []))
        buckets.append(bucket)
        counts.append(count)
    return summaries


def gradient_moments(
    seed: int,
    keys: bytes,
    sizes: bytes,
    used: bytes,
    rules: int,
    ranges: Sequence[tuple[int, int]],
    threads: int | None = None,
) -> tuple[bytes, bytes, bytes, bytes]:
    """First and second moments of a step's gradient samples, by rule and by range of rules.

    `seed` is the perturbation's, `keys` and `used` the columns of the specimens and of
    the outcome. `sizes` is a column: by specimen, half the difference of the pair's scores over the
    scale of the perturbation (limited as the search likes), NaN where there is none. A rule's
    sample on a specimen is its noise times the size if either of the pair used it, else 0; a
    range's (first, first behind) is the sum over its rules.

    Four columns of three numbers a row: the rules' mean and sum of squares over the square of the
    number of samples, then the same of the ranges: the same bits with any number of threads. By
    default they are as many as the process may keep busy, and one for few specimens.
    """
    if threads is None:
        many = len(sizes) >= _SPECIMENS_FOR_THREADS * _NUMBER_BYTES
        threads = allowed_cpus() if many else 1
    return _native.gradient_moments(seed, keys, sizes, used, rules, list(ranges), threads)


def rule_count(table: rule_table_pb2.RuleTable) -> int:
    """Rules of a table."""
    return [node.HasField("action") for node in table.nodes].count(True)


def _memory(places: Sequence[int], counts: Sequence[int]) -> evaluation_pb2.MemoryColumns:
    before = [0, *places]
    return evaluation_pb2.MemoryColumns(
        places=[place - last for last, place in zip(before, places, strict=False)], counts=counts
    )


def _times(columns: evaluation_pb2.SenderColumns) -> tuple[bytes, bytes, bytes, bytes]:
    return columns.on_ms, columns.share_ms, columns.delay_sum_ms, columns.first_on_ms


def _numbers(column: bytes) -> memoryview[float]:
    return memoryview(column).cast("d")
