"""Records one simulation at regular intervals, and its outcome."""

from __future__ import annotations

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, messages
from remy_simulator.columns.evaluation import InvalidRequest, native_tables
from remy_simulator.columns.senders import sender_columns
from remy_simulator.traces import Traces


def record(
    request: evaluation_pb2.EvaluationRequest,
    every_ms: float,
    *,
    capture_sender: int | None = None,
) -> _native.NetworkRecording:
    """Simulates a request's first specimen and samples it every `every_ms`.

    The recording has columns of senders (by time and sender) and of links (by time and link), the
    results from which recorded_outcome() makes an outcome, and what the sender with the index
    `capture_sender` sends and receives. Raises InvalidRequest.
    """
    specimen = request.specimens[0]
    try:
        traces = Traces(request.traces)
        buffer_packets = specimen.buffer_packets if specimen.HasField("buffer_packets") else None
        return _native.record(
            tables=[_native.CompiledTable(table) for table in native_tables(request.tables)],
            specimen=_native.Specimen(
                key=specimen.key,
                link_rate_packets_per_ms=specimen.link_rate_packets_per_ms,
                rtt_ms=specimen.rtt_ms,
                buffer_packets=buffer_packets,
                loss_probability=specimen.loss_probability,
                measurement=messages.native_measurement(specimen.measurement),
                senders=[messages.native_senders(group) for group in specimen.senders],
                bottleneck=messages.native_bottleneck(specimen),
                links=[messages.native_link(link, traces) for link in specimen.links],
            ),
            duration_ms=request.duration_ms,
            seed=request.seed,
            every_ms=every_ms,
            distributions=request.distributions,
            capture_sender=capture_sender,
        )
    except ValueError as problem:
        raise InvalidRequest(str(problem)) from problem


def recorded_outcome(
    request: evaluation_pb2.EvaluationRequest, recording: _native.NetworkRecording
) -> evaluation_pb2.EvaluationOutcome:
    """Returns the outcome of the recorded specimen, equal to that of evaluate_columns for a request
    without objective and recording."""
    has_transports = messages.has_transports(request.specimens, request)
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=recording.outcome.packets_sent,
        senders=sender_columns(recording.outcome, has_transports=has_transports),
    )
