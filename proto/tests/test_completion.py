"""Completion of messages, including those of clients that predate a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_proto.completion import (
    NEWEST_EDITION,
    complete,
    constraint_of,
    default_text,
    is_alternative,
)
from remy_proto.v1 import (
    checkpoint_pb2,
    constraints_pb2,
    design_service_pb2,
    evaluation_pb2,
    job_pb2,
    progress_pb2,
    rule_table_pb2,
    spec_pb2,
    worker_service_pb2,
)

_FILES = (
    checkpoint_pb2,
    design_service_pb2,
    job_pb2,
    progress_pb2,
    rule_table_pb2,
    spec_pb2,
    worker_service_pb2,
)
_REQUESTS = [
    message
    for file in (design_service_pb2, worker_service_pb2)
    for name, message in vars(file).items()
    if name.endswith(("Request", "Hello", "Welcome"))
]


def _spec() -> spec_pb2.DesignSpec:
    """A specification with its required fields only."""
    exact = spec_pb2.Distribution
    return spec_pb2.DesignSpec(
        name="least",
        network=spec_pb2.NetworkModel(
            rate_mbps=exact(exact=15),
            rtt_ms=exact(exact=150),
            senders=exact(exact=2),
            traffic=spec_pb2.TrafficModel(
                flow_lengths=spec_pb2.TrafficModel.FlowLengths(), mean_off_ms=exact(exact=5000)
            ),
        ),
    )


def _is_required(field: FieldDescriptor) -> bool:
    return constraint_of(field).required or bool(constraint_of(field).required_unless)


def _paths(message: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field, value in message.ListFields():
        yield (*above, field.name)
        if field.message_type is not None and not field.is_repeated:
            yield from _paths(value, (*above, field.name))


def _without(message: Any, path: tuple[str, ...]) -> Any:
    """A copy of the message without the field."""
    copy = type(message)()
    copy.CopyFrom(message)
    inner = copy
    for name in path[:-1]:
        inner = getattr(inner, name)
    inner.ClearField(path[-1])
    return copy


def _field(message: Any, path: tuple[str, ...]) -> FieldDescriptor:
    for name in path[:-1]:
        message = getattr(message, name)
    field: FieldDescriptor = message.DESCRIPTOR.fields_by_name[path[-1]]
    return field


#: Every field of a completed specification, in each edition.
_CASES = [
    (edition, path)
    for edition in range(2, NEWEST_EDITION + 1)
    for path in _paths(complete(_spec(), edition=edition))
]


def _case(value: int | tuple[str, ...]) -> str:
    return str(value) if isinstance(value, int) else ".".join(value)


def _messages(descriptors: Any) -> Iterator[Descriptor]:
    for descriptor in descriptors:
        yield descriptor
        yield from _messages(descriptor.nested_types)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.__name__.rpartition(".")[2])
def test_every_scalar_has_presence(file: Any) -> None:
    for message in _messages(file.DESCRIPTOR.message_types_by_name.values()):
        for field in message.fields:
            assert field.is_repeated or field.has_presence, field.full_name


def test_evaluation_messages_have_no_defaults_and_one_encoding() -> None:
    """Requests and outcomes are compared and hashed as bytes (README.md says why)."""
    for descriptor in _messages(evaluation_pb2.DESCRIPTOR.message_types_by_name.values()):
        for field in descriptor.fields:
            assert not constraint_of(field).default, field.full_name
            if field.is_repeated or field.has_presence:
                continue
            message = message_factory.GetMessageClass(descriptor)()
            setattr(message, field.name, field.default_value)
            assert message.SerializeToString() == b"", field.full_name


@pytest.mark.parametrize("kind", _REQUESTS, ids=lambda kind: kind.__name__)
def test_an_empty_request_is_completed(kind: type[Message]) -> None:
    """One empty request covers all fields, since no default depends on another field."""
    empty: Any = complete(kind())
    descriptor: Any = kind.DESCRIPTOR
    for field in descriptor.fields:
        wanted = constraint_of(field).default
        if not field.is_repeated:
            assert empty.HasField(field.name) == bool(wanted), field.full_name
        if wanted and field.enum_type is None:
            assert float(getattr(empty, field.name)) == float(wanted)


@pytest.mark.parametrize(("edition", "path"), _CASES, ids=_case)
def test_an_absent_field_of_a_specification_takes_its_default(
    edition: int, path: tuple[str, ...]
) -> None:
    whole = complete(_spec(), edition=edition)
    completed = complete(_without(whole, path))
    field = _field(whole, path)
    if _is_required(field) or is_alternative(field):
        # Validation rejects its absence later.
        assert completed == _without(whole, path)
    elif path == ("edition",):
        # A client that predates editions gets the newest one.
        assert (completed.edition, _without(completed, path)) == (
            NEWEST_EDITION,
            _without(whole, path),
        )
    else:
        assert completed == whole


def test_an_explicit_zero_is_kept() -> None:
    spec = _spec()
    spec.objective.delta = 0
    spec.search.seed = 0
    assert (complete(spec).objective.delta, spec.search.seed, spec.objective.alpha) == (0, 0, 1)


def test_a_completed_specification_names_its_edition() -> None:
    assert complete(_spec()).edition == NEWEST_EDITION
    request = design_service_pb2.SubmitJobRequest(spec=_spec())
    assert complete(request).spec == complete(_spec())


def test_completing_twice_changes_nothing() -> None:
    once = spec_pb2.DesignSpec.FromString(complete(_spec()).SerializeToString())
    assert complete(_spec()) == once == complete(complete(_spec()))


@pytest.mark.parametrize(
    ("mode", "seconds"), [("PAPER", 100.0), ("JOINT", 30.0), ("PATTERN", 30.0)]
)
def test_the_simulated_time_depends_on_the_mode(mode: str, seconds: float) -> None:
    spec = _spec()
    spec.search.mode = getattr(spec_pb2, f"SEARCH_MODE_{mode}")
    assert complete(spec).search.simulated_seconds == seconds


def test_the_default_of_a_mapping_applies_key_by_key() -> None:
    spec = _spec()
    spec.search.paper.window_increment.factor = 2
    grid = complete(spec).search.paper.window_increment
    assert (grid.factor, grid.maximum, grid.steps) == (2, 256, 3)


def test_specifications_inside_stored_jobs_and_archives_are_completed() -> None:
    archive = job_pb2.JobArchive(record=job_pb2.JobRecord(job=job_pb2.Job(spec=_spec())))
    assert complete(archive).record.job.spec == complete(_spec())
    assert not complete(job_pb2.JobRecord()).job.HasField("spec")


def test_messages_without_defaults_are_unchanged() -> None:
    for message in (evaluation_pb2.EvaluationRequest(), progress_pb2.ProgressEvent()):
        assert not complete(message).ByteSize()


def test_a_default_may_change_with_an_edition() -> None:
    file = descriptor_pb2.FileDescriptorProto(
        name="editions.proto", package="editions", dependency=["remy_farm/v1/constraints.proto"]
    )
    field = file.message_type.add(name="Later").field.add(
        name="rules", number=1, label="LABEL_OPTIONAL", type="TYPE_STRING"
    )
    options: Any = field.options.Extensions
    constraint = options[constraints_pb2.constraint]
    constraint.default = "absolute"
    constraint.edition_defaults.add(edition=2, value="scale_free")
    constraint.edition_defaults.add(edition=4, value="other")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    later = pool.FindFieldByName("editions.Later.rules")
    found = [default_text(later, edition) for edition in (1, 2, 3, 4)]
    assert found == ["absolute", "scale_free", "scale_free", "other"]
