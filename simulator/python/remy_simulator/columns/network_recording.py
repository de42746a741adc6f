"""One simulation that is seen every so often, and its outcome."""

from __future__ import annotations

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, messages
from remy_simulator.columns.evaluation import InvalidRequest, native_tables
from remy_simulator.columns.senders import sender_columns
from remy_simulator.traces import Traces


def record(request: evaluation_pb2.EvaluationRequest, every_ms: float) -> _native.NetworkRecording:
    """Simulates a request's first specimen, seen every so often, as columns: of senders by time
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


def recorded_outcome(
    request: evaluation_pb2.EvaluationRequest, recording: _native.NetworkRecording
) -> evaluation_pb2.EvaluationOutcome:
    """The outcome that evaluate_columns gives for the recorded specimen, where nothing is scored or
    counted."""
    is_plain = messages.is_plain(request.specimens[0])
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=recording.outcome.packets_sent,
        senders=sender_columns(recording.outcome, is_plain=is_plain),
    )
