import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from remy_proto.v1 import evaluation_pb2 as _evaluation_pb2
from remy_proto.v1 import progress_pb2 as _progress_pb2
from remy_proto.v1 import rule_table_pb2 as _rule_table_pb2
from remy_proto.v1 import spec_pb2 as _spec_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PENDING: _ClassVar[JobState]
    JOB_STATE_SCHEDULING: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_PAUSING: _ClassVar[JobState]
    JOB_STATE_PAUSED: _ClassVar[JobState]
    JOB_STATE_RECOVERING: _ClassVar[JobState]
    JOB_STATE_CANCELLING: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]
    JOB_STATE_SUCCEEDED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]

class FailureReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_REASON_UNSPECIFIED: _ClassVar[FailureReason]
    FAILURE_REASON_INTERNAL: _ClassVar[FailureReason]
    FAILURE_REASON_SNAPSHOTS_LOST: _ClassVar[FailureReason]
    FAILURE_REASON_OTHER_VERSION: _ClassVar[FailureReason]
    FAILURE_REASON_TASK_QUARANTINED: _ClassVar[FailureReason]
    FAILURE_REASON_REQUEST_REFUSED: _ClassVar[FailureReason]
    FAILURE_REASON_WORK_LIMIT: _ClassVar[FailureReason]
    FAILURE_REASON_RESULTS_DIFFER: _ClassVar[FailureReason]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PENDING: JobState
JOB_STATE_SCHEDULING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_PAUSING: JobState
JOB_STATE_PAUSED: JobState
JOB_STATE_RECOVERING: JobState
JOB_STATE_CANCELLING: JobState
JOB_STATE_CANCELLED: JobState
JOB_STATE_SUCCEEDED: JobState
JOB_STATE_FAILED: JobState
FAILURE_REASON_UNSPECIFIED: FailureReason
FAILURE_REASON_INTERNAL: FailureReason
FAILURE_REASON_SNAPSHOTS_LOST: FailureReason
FAILURE_REASON_OTHER_VERSION: FailureReason
FAILURE_REASON_TASK_QUARANTINED: FailureReason
FAILURE_REASON_REQUEST_REFUSED: FailureReason
FAILURE_REASON_WORK_LIMIT: FailureReason
FAILURE_REASON_RESULTS_DIFFER: FailureReason

class ForkOrigin(_message.Message):
    __slots__ = ("job_id", "epoch")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    epoch: int
    def __init__(self, job_id: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class EvaluationWork(_message.Message):
    __slots__ = ("parts", "simulator_sha256", "traces")
    class Part(_message.Message):
        __slots__ = ("sha256", "packets")
        SHA256_FIELD_NUMBER: _ClassVar[int]
        PACKETS_FIELD_NUMBER: _ClassVar[int]
        sha256: bytes
        packets: float
        def __init__(self, sha256: _Optional[bytes] = ..., packets: _Optional[float] = ...) -> None: ...
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_SHA256_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[EvaluationWork.Part]
    simulator_sha256: bytes
    traces: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, parts: _Optional[_Iterable[_Union[EvaluationWork.Part, _Mapping]]] = ..., simulator_sha256: _Optional[bytes] = ..., traces: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("id", "name", "owner", "state", "priority", "weight", "spec", "stop_reason", "failure_reason", "status_message", "progress", "create_time", "start_time", "end_time", "revision", "fork", "campaign", "queue_name", "evaluation")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    FAILURE_REASON_FIELD_NUMBER: _ClassVar[int]
    STATUS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    FORK_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    owner: str
    state: JobState
    priority: int
    weight: float
    spec: _spec_pb2.DesignSpec
    stop_reason: _progress_pb2.StopReason
    failure_reason: FailureReason
    status_message: str
    progress: _progress_pb2.JobProgress
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    revision: int
    fork: ForkOrigin
    campaign: str
    queue_name: str
    evaluation: EvaluationWork
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., owner: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., priority: _Optional[int] = ..., weight: _Optional[float] = ..., spec: _Optional[_Union[_spec_pb2.DesignSpec, _Mapping]] = ..., stop_reason: _Optional[_Union[_progress_pb2.StopReason, str]] = ..., failure_reason: _Optional[_Union[FailureReason, str]] = ..., status_message: _Optional[str] = ..., progress: _Optional[_Union[_progress_pb2.JobProgress, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revision: _Optional[int] = ..., fork: _Optional[_Union[ForkOrigin, _Mapping]] = ..., campaign: _Optional[str] = ..., queue_name: _Optional[str] = ..., evaluation: _Optional[_Union[EvaluationWork, _Mapping]] = ...) -> None: ...

class JobRecord(_message.Message):
    __slots__ = ("job", "client_request_id", "request_sha256", "first_table")
    JOB_FIELD_NUMBER: _ClassVar[int]
    CLIENT_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    FIRST_TABLE_FIELD_NUMBER: _ClassVar[int]
    job: Job
    client_request_id: str
    request_sha256: bytes
    first_table: _rule_table_pb2.RuleTable
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., client_request_id: _Optional[str] = ..., request_sha256: _Optional[bytes] = ..., first_table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ...) -> None: ...

class StateChanged(_message.Message):
    __slots__ = ("to", "message", "by")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    to: JobState
    message: str
    by: str
    def __init__(self, to: _Optional[_Union[JobState, str]] = ..., message: _Optional[str] = ..., by: _Optional[str] = ..., **kwargs) -> None: ...

class Recovered(_message.Message):
    __slots__ = ("step", "coordinator")
    STEP_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    step: int
    coordinator: str
    def __init__(self, step: _Optional[int] = ..., coordinator: _Optional[str] = ...) -> None: ...

class SnapshotRefused(_message.Message):
    __slots__ = ("snapshot_revision", "why")
    SNAPSHOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    snapshot_revision: int
    why: str
    def __init__(self, snapshot_revision: _Optional[int] = ..., why: _Optional[str] = ...) -> None: ...

class BudgetChanged(_message.Message):
    __slots__ = ("stop", "joint_steps", "by", "priority")
    STOP_FIELD_NUMBER: _ClassVar[int]
    JOINT_STEPS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    stop: _spec_pb2.Stop
    joint_steps: int
    by: str
    priority: int
    def __init__(self, stop: _Optional[_Union[_spec_pb2.Stop, _Mapping]] = ..., joint_steps: _Optional[int] = ..., by: _Optional[str] = ..., priority: _Optional[int] = ...) -> None: ...

class PartsEvaluated(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: int
    def __init__(self, parts: _Optional[int] = ...) -> None: ...

class JobEvent(_message.Message):
    __slots__ = ("revision", "time", "progress", "state_changed", "recovered", "snapshot_refused", "budget_changed", "parts_evaluated")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    STATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_REFUSED_FIELD_NUMBER: _ClassVar[int]
    BUDGET_CHANGED_FIELD_NUMBER: _ClassVar[int]
    PARTS_EVALUATED_FIELD_NUMBER: _ClassVar[int]
    revision: int
    time: _timestamp_pb2.Timestamp
    progress: _progress_pb2.ProgressEvent
    state_changed: StateChanged
    recovered: Recovered
    snapshot_refused: SnapshotRefused
    budget_changed: BudgetChanged
    parts_evaluated: PartsEvaluated
    def __init__(self, revision: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., progress: _Optional[_Union[_progress_pb2.ProgressEvent, _Mapping]] = ..., state_changed: _Optional[_Union[StateChanged, _Mapping]] = ..., recovered: _Optional[_Union[Recovered, _Mapping]] = ..., snapshot_refused: _Optional[_Union[SnapshotRefused, _Mapping]] = ..., budget_changed: _Optional[_Union[BudgetChanged, _Mapping]] = ..., parts_evaluated: _Optional[_Union[PartsEvaluated, _Mapping]] = ...) -> None: ...

class EvaluatedPart(_message.Message):
    __slots__ = ("request", "outcome")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    request: bytes
    outcome: bytes
    def __init__(self, request: _Optional[bytes] = ..., outcome: _Optional[bytes] = ...) -> None: ...

class JobEpoch(_message.Message):
    __slots__ = ("record", "table", "time", "cpu_seconds", "companions", "measured", "part")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPANIONS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    record: _progress_pb2.EpochRecord
    table: _rule_table_pb2.RuleTable
    time: _timestamp_pb2.Timestamp
    cpu_seconds: float
    companions: _containers.RepeatedCompositeFieldContainer[_rule_table_pb2.RuleTable]
    measured: _progress_pb2.ThroughputDelay
    part: EvaluatedPart
    def __init__(self, record: _Optional[_Union[_progress_pb2.EpochRecord, _Mapping]] = ..., table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cpu_seconds: _Optional[float] = ..., companions: _Optional[_Iterable[_Union[_rule_table_pb2.RuleTable, _Mapping]]] = ..., measured: _Optional[_Union[_progress_pb2.ThroughputDelay, _Mapping]] = ..., part: _Optional[_Union[EvaluatedPart, _Mapping]] = ...) -> None: ...

class JobArchive(_message.Message):
    __slots__ = ("format_version", "record", "events", "epochs", "snapshot", "snapshot_revision", "snapshot_schema_version", "traces")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_REVISION_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    record: JobRecord
    events: _containers.RepeatedCompositeFieldContainer[JobEvent]
    epochs: _containers.RepeatedCompositeFieldContainer[JobEpoch]
    snapshot: bytes
    snapshot_revision: int
    snapshot_schema_version: int
    traces: _containers.RepeatedCompositeFieldContainer[_evaluation_pb2.Trace]
    def __init__(self, format_version: _Optional[int] = ..., record: _Optional[_Union[JobRecord, _Mapping]] = ..., events: _Optional[_Iterable[_Union[JobEvent, _Mapping]]] = ..., epochs: _Optional[_Iterable[_Union[JobEpoch, _Mapping]]] = ..., snapshot: _Optional[bytes] = ..., snapshot_revision: _Optional[int] = ..., snapshot_schema_version: _Optional[int] = ..., traces: _Optional[_Iterable[_Union[_evaluation_pb2.Trace, _Mapping]]] = ...) -> None: ...

class SealedJobArchive(_message.Message):
    __slots__ = ("archive", "sha256")
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    archive: bytes
    sha256: bytes
    def __init__(self, archive: _Optional[bytes] = ..., sha256: _Optional[bytes] = ...) -> None: ...
