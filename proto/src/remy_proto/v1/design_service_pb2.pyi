from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from remy_proto.v1 import job_pb2 as _job_pb2
from remy_proto.v1 import spec_pb2 as _spec_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RemyCCFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REMY_CC_FORMAT_UNSPECIFIED: _ClassVar[RemyCCFormat]
    REMY_CC_FORMAT_JSON: _ClassVar[RemyCCFormat]
    REMY_CC_FORMAT_DNA: _ClassVar[RemyCCFormat]
REMY_CC_FORMAT_UNSPECIFIED: RemyCCFormat
REMY_CC_FORMAT_JSON: RemyCCFormat
REMY_CC_FORMAT_DNA: RemyCCFormat

class UploadTraceRequest(_message.Message):
    __slots__ = ("part",)
    PART_FIELD_NUMBER: _ClassVar[int]
    part: bytes
    def __init__(self, part: _Optional[bytes] = ...) -> None: ...

class UploadTraceResponse(_message.Message):
    __slots__ = ("sha256",)
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    def __init__(self, sha256: _Optional[bytes] = ...) -> None: ...

class SubmitJobRequest(_message.Message):
    __slots__ = ("client_request_id", "spec_text", "spec", "name", "priority", "weight", "campaign", "validate_only", "queue_name")
    CLIENT_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_TEXT_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    client_request_id: str
    spec_text: str
    spec: _spec_pb2.DesignSpec
    name: str
    priority: int
    weight: float
    campaign: str
    validate_only: bool
    queue_name: str
    def __init__(self, client_request_id: _Optional[str] = ..., spec_text: _Optional[str] = ..., spec: _Optional[_Union[_spec_pb2.DesignSpec, _Mapping]] = ..., name: _Optional[str] = ..., priority: _Optional[int] = ..., weight: _Optional[float] = ..., campaign: _Optional[str] = ..., validate_only: _Optional[bool] = ..., queue_name: _Optional[str] = ...) -> None: ...

class SubmitJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class SubmitEvaluationRequest(_message.Message):
    __slots__ = ("client_request_id", "name", "priority", "weight", "queue_name", "request", "simulator_sha256")
    CLIENT_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_SHA256_FIELD_NUMBER: _ClassVar[int]
    client_request_id: str
    name: str
    priority: int
    weight: float
    queue_name: str
    request: bytes
    simulator_sha256: bytes
    def __init__(self, client_request_id: _Optional[str] = ..., name: _Optional[str] = ..., priority: _Optional[int] = ..., weight: _Optional[float] = ..., queue_name: _Optional[str] = ..., request: _Optional[bytes] = ..., simulator_sha256: _Optional[bytes] = ...) -> None: ...

class SubmitEvaluationResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ReadEvaluationRequest(_message.Message):
    __slots__ = ("job", "part")
    JOB_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    job: str
    part: int
    def __init__(self, job: _Optional[str] = ..., part: _Optional[int] = ...) -> None: ...

class ReadEvaluationResponse(_message.Message):
    __slots__ = ("piece",)
    PIECE_FIELD_NUMBER: _ClassVar[int]
    piece: bytes
    def __init__(self, piece: _Optional[bytes] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "owner", "name_contains", "campaign")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_CONTAINS_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[_job_pb2.JobState]
    owner: str
    name_contains: str
    campaign: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_job_pb2.JobState, str]]] = ..., owner: _Optional[str] = ..., name_contains: _Optional[str] = ..., campaign: _Optional[str] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("job", "after_revision")
    JOB_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    job: str
    after_revision: int
    def __init__(self, job: _Optional[str] = ..., after_revision: _Optional[int] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("event", "job")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    event: _job_pb2.JobEvent
    job: _job_pb2.Job
    def __init__(self, event: _Optional[_Union[_job_pb2.JobEvent, _Mapping]] = ..., job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class PauseJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class PauseJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ResumeJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class ResumeJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ExtendJobRequest(_message.Message):
    __slots__ = ("job", "stop", "joint_steps", "priority")
    JOB_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    JOINT_STEPS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    job: str
    stop: _spec_pb2.Stop
    joint_steps: int
    priority: int
    def __init__(self, job: _Optional[str] = ..., stop: _Optional[_Union[_spec_pb2.Stop, _Mapping]] = ..., joint_steps: _Optional[int] = ..., priority: _Optional[int] = ...) -> None: ...

class ExtendJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class ForkJobRequest(_message.Message):
    __slots__ = ("client_request_id", "job", "epoch", "name", "settings", "priority")
    CLIENT_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    client_request_id: str
    job: str
    epoch: int
    name: str
    settings: _containers.RepeatedScalarFieldContainer[str]
    priority: int
    def __init__(self, client_request_id: _Optional[str] = ..., job: _Optional[str] = ..., epoch: _Optional[int] = ..., name: _Optional[str] = ..., settings: _Optional[_Iterable[str]] = ..., priority: _Optional[int] = ...) -> None: ...

class ForkJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class DeleteJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class DeleteJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRemyCCRequest(_message.Message):
    __slots__ = ("job", "epoch", "format", "table")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    job: str
    epoch: int
    format: RemyCCFormat
    table: str
    def __init__(self, job: _Optional[str] = ..., epoch: _Optional[int] = ..., format: _Optional[_Union[RemyCCFormat, str]] = ..., table: _Optional[str] = ...) -> None: ...

class GetRemyCCResponse(_message.Message):
    __slots__ = ("content", "sha256", "rules")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    sha256: bytes
    rules: int
    def __init__(self, content: _Optional[bytes] = ..., sha256: _Optional[bytes] = ..., rules: _Optional[int] = ...) -> None: ...

class ListEpochsRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class ListEpochsResponse(_message.Message):
    __slots__ = ("epochs",)
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    epochs: _containers.RepeatedCompositeFieldContainer[_job_pb2.JobEpoch]
    def __init__(self, epochs: _Optional[_Iterable[_Union[_job_pb2.JobEpoch, _Mapping]]] = ...) -> None: ...

class ListWorkerLinesRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class WorkerLine(_message.Message):
    __slots__ = ("worker_id", "host", "unix_seconds", "level", "text")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    host: str
    unix_seconds: float
    level: str
    text: str
    def __init__(self, worker_id: _Optional[str] = ..., host: _Optional[str] = ..., unix_seconds: _Optional[float] = ..., level: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class ListWorkerLinesResponse(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[WorkerLine]
    def __init__(self, lines: _Optional[_Iterable[_Union[WorkerLine, _Mapping]]] = ...) -> None: ...

class CompareJobsRequest(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class SettingDifference(_message.Message):
    __slots__ = ("path", "values")
    PATH_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    path: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, path: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class CompareJobsResponse(_message.Message):
    __slots__ = ("jobs", "differences")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    differences: _containers.RepeatedCompositeFieldContainer[SettingDifference]
    def __init__(self, jobs: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., differences: _Optional[_Iterable[_Union[SettingDifference, _Mapping]]] = ...) -> None: ...

class ExportJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class ExportJobResponse(_message.Message):
    __slots__ = ("part",)
    PART_FIELD_NUMBER: _ClassVar[int]
    part: bytes
    def __init__(self, part: _Optional[bytes] = ...) -> None: ...

class ImportJobRequest(_message.Message):
    __slots__ = ("part",)
    PART_FIELD_NUMBER: _ClassVar[int]
    part: bytes
    def __init__(self, part: _Optional[bytes] = ...) -> None: ...

class ImportJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: _job_pb2.Job
    def __init__(self, job: _Optional[_Union[_job_pb2.Job, _Mapping]] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StoreInfo(_message.Message):
    __slots__ = ("kind", "version", "durability", "durable", "available", "trouble")
    KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    TROUBLE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    version: str
    durability: str
    durable: bool
    available: bool
    trouble: str
    def __init__(self, kind: _Optional[str] = ..., version: _Optional[str] = ..., durability: _Optional[str] = ..., durable: _Optional[bool] = ..., available: _Optional[bool] = ..., trouble: _Optional[str] = ...) -> None: ...

class EvaluatorsInfo(_message.Message):
    __slots__ = ("kind", "workers", "busy_workers", "threads", "quarantined_workers", "tasks_waiting", "tasks_running")
    KIND_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    BUSY_WORKERS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_WORKERS_FIELD_NUMBER: _ClassVar[int]
    TASKS_WAITING_FIELD_NUMBER: _ClassVar[int]
    TASKS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    kind: str
    workers: int
    busy_workers: int
    threads: int
    quarantined_workers: int
    tasks_waiting: int
    tasks_running: int
    def __init__(self, kind: _Optional[str] = ..., workers: _Optional[int] = ..., busy_workers: _Optional[int] = ..., threads: _Optional[int] = ..., quarantined_workers: _Optional[int] = ..., tasks_waiting: _Optional[int] = ..., tasks_running: _Optional[int] = ...) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "simulator_version", "simulator_digest", "coordinator", "unix_seconds", "store", "evaluators", "caller", "role", "running_jobs", "waiting_jobs", "scale_free_digest", "protocols_digest", "path_model_digest", "network_signals_digest")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_JOBS_FIELD_NUMBER: _ClassVar[int]
    WAITING_JOBS_FIELD_NUMBER: _ClassVar[int]
    SCALE_FREE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PATH_MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NETWORK_SIGNALS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    version: str
    simulator_version: str
    simulator_digest: str
    coordinator: str
    unix_seconds: float
    store: StoreInfo
    evaluators: EvaluatorsInfo
    caller: str
    role: str
    running_jobs: int
    waiting_jobs: int
    scale_free_digest: str
    protocols_digest: str
    path_model_digest: str
    network_signals_digest: str
    def __init__(self, version: _Optional[str] = ..., simulator_version: _Optional[str] = ..., simulator_digest: _Optional[str] = ..., coordinator: _Optional[str] = ..., unix_seconds: _Optional[float] = ..., store: _Optional[_Union[StoreInfo, _Mapping]] = ..., evaluators: _Optional[_Union[EvaluatorsInfo, _Mapping]] = ..., caller: _Optional[str] = ..., role: _Optional[str] = ..., running_jobs: _Optional[int] = ..., waiting_jobs: _Optional[int] = ..., scale_free_digest: _Optional[str] = ..., protocols_digest: _Optional[str] = ..., path_model_digest: _Optional[str] = ..., network_signals_digest: _Optional[str] = ...) -> None: ...
