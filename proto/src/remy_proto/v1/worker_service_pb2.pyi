from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from remy_proto.v1 import evaluation_pb2 as _evaluation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadTraceRequest(_message.Message):
    __slots__ = ("sha256", "offset")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    offset: int
    def __init__(self, sha256: _Optional[bytes] = ..., offset: _Optional[int] = ...) -> None: ...

class ReadTraceResponse(_message.Message):
    __slots__ = ("content", "total_bytes")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    total_bytes: int
    def __init__(self, content: _Optional[bytes] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("worker_id", "version", "simulator_version", "simulator_digest", "cpus", "threads", "host", "job_id", "exit_when_idle", "watched", "scale_free_digest", "signals_digest", "protocols_digest", "path_model_digest", "network_signals_digest")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    EXIT_WHEN_IDLE_FIELD_NUMBER: _ClassVar[int]
    WATCHED_FIELD_NUMBER: _ClassVar[int]
    SCALE_FREE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PATH_MODEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NETWORK_SIGNALS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    version: str
    simulator_version: str
    simulator_digest: str
    cpus: int
    threads: int
    host: str
    job_id: str
    exit_when_idle: bool
    watched: bool
    scale_free_digest: str
    signals_digest: str
    protocols_digest: str
    path_model_digest: str
    network_signals_digest: str
    def __init__(self, worker_id: _Optional[str] = ..., version: _Optional[str] = ..., simulator_version: _Optional[str] = ..., simulator_digest: _Optional[str] = ..., cpus: _Optional[int] = ..., threads: _Optional[int] = ..., host: _Optional[str] = ..., job_id: _Optional[str] = ..., exit_when_idle: _Optional[bool] = ..., watched: _Optional[bool] = ..., scale_free_digest: _Optional[str] = ..., signals_digest: _Optional[str] = ..., protocols_digest: _Optional[str] = ..., path_model_digest: _Optional[str] = ..., network_signals_digest: _Optional[str] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    def __init__(self, tasks: _Optional[int] = ...) -> None: ...

class TaskResult(_message.Message):
    __slots__ = ("lease_id", "outcome", "sha256", "cpu_seconds", "wall_seconds")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WALL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    lease_id: int
    outcome: bytes
    sha256: bytes
    cpu_seconds: float
    wall_seconds: float
    def __init__(self, lease_id: _Optional[int] = ..., outcome: _Optional[bytes] = ..., sha256: _Optional[bytes] = ..., cpu_seconds: _Optional[float] = ..., wall_seconds: _Optional[float] = ...) -> None: ...

class TaskRefused(_message.Message):
    __slots__ = ("lease_id", "why", "over_packet_limit")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    OVER_PACKET_LIMIT_FIELD_NUMBER: _ClassVar[int]
    lease_id: int
    why: str
    over_packet_limit: bool
    def __init__(self, lease_id: _Optional[int] = ..., why: _Optional[str] = ..., over_packet_limit: _Optional[bool] = ...) -> None: ...

class TasksReturned(_message.Message):
    __slots__ = ("lease_ids",)
    LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
    lease_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, lease_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("why",)
    WHY_FIELD_NUMBER: _ClassVar[int]
    why: str
    def __init__(self, why: _Optional[str] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("unix_seconds", "level", "text")
    UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    unix_seconds: float
    level: str
    text: str
    def __init__(self, unix_seconds: _Optional[float] = ..., level: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ("hello", "credit", "result", "refused", "returned", "heartbeat", "goodbye", "ended", "log_line")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    LOG_LINE_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    credit: Credit
    result: TaskResult
    refused: TaskRefused
    returned: TasksReturned
    heartbeat: Heartbeat
    goodbye: Goodbye
    ended: Ended
    log_line: LogLine
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., result: _Optional[_Union[TaskResult, _Mapping]] = ..., refused: _Optional[_Union[TaskRefused, _Mapping]] = ..., returned: _Optional[_Union[TasksReturned, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ..., log_line: _Optional[_Union[LogLine, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("lease_seconds", "heartbeat_seconds", "takes_log_lines")
    LEASE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TAKES_LOG_LINES_FIELD_NUMBER: _ClassVar[int]
    lease_seconds: float
    heartbeat_seconds: float
    takes_log_lines: bool
    def __init__(self, lease_seconds: _Optional[float] = ..., heartbeat_seconds: _Optional[float] = ..., takes_log_lines: _Optional[bool] = ...) -> None: ...

class SharedPart(_message.Message):
    __slots__ = ("digest", "request", "forgotten")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    request: bytes
    forgotten: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, digest: _Optional[bytes] = ..., request: _Optional[bytes] = ..., forgotten: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("lease_id", "slice")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    SLICE_FIELD_NUMBER: _ClassVar[int]
    lease_id: int
    slice: _evaluation_pb2.EvaluationRequest
    def __init__(self, lease_id: _Optional[int] = ..., slice: _Optional[_Union[_evaluation_pb2.EvaluationRequest, _Mapping]] = ...) -> None: ...

class Tasks(_message.Message):
    __slots__ = ("shared_digest", "job_id", "trace_parent", "packet_limit", "tasks")
    SHARED_DIGEST_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_PARENT_FIELD_NUMBER: _ClassVar[int]
    PACKET_LIMIT_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    shared_digest: bytes
    job_id: str
    trace_parent: str
    packet_limit: int
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    def __init__(self, shared_digest: _Optional[bytes] = ..., job_id: _Optional[str] = ..., trace_parent: _Optional[str] = ..., packet_limit: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ...) -> None: ...

class TasksCancelled(_message.Message):
    __slots__ = ("lease_ids",)
    LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
    lease_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, lease_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class NothingLeft(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("welcome", "shared", "tasks", "cancelled", "nothing_left")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    NOTHING_LEFT_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    shared: SharedPart
    tasks: Tasks
    cancelled: TasksCancelled
    nothing_left: NothingLeft
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., shared: _Optional[_Union[SharedPart, _Mapping]] = ..., tasks: _Optional[_Union[Tasks, _Mapping]] = ..., cancelled: _Optional[_Union[TasksCancelled, _Mapping]] = ..., nothing_left: _Optional[_Union[NothingLeft, _Mapping]] = ...) -> None: ...
