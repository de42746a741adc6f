from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Axis(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AXIS_SEND_EWMA: _ClassVar[Axis]
    AXIS_REC_EWMA: _ClassVar[Axis]
    AXIS_RTT_RATIO: _ClassVar[Axis]
    AXIS_SLOW_REC_EWMA: _ClassVar[Axis]
    AXIS_RTT_DIFF: _ClassVar[Axis]
    AXIS_QUEUEING_DELAY: _ClassVar[Axis]
AXIS_SEND_EWMA: Axis
AXIS_REC_EWMA: Axis
AXIS_RTT_RATIO: Axis
AXIS_SLOW_REC_EWMA: Axis
AXIS_RTT_DIFF: Axis
AXIS_QUEUEING_DELAY: Axis

class WhiskerTree(_message.Message):
    __slots__ = ("domain", "children", "leaf", "config", "optimizer", "configvector")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    LEAF_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZER_FIELD_NUMBER: _ClassVar[int]
    CONFIGVECTOR_FIELD_NUMBER: _ClassVar[int]
    domain: MemoryRange
    children: _containers.RepeatedCompositeFieldContainer[WhiskerTree]
    leaf: Whisker
    config: ConfigRange
    optimizer: bytes
    configvector: bytes
    def __init__(self, domain: _Optional[_Union[MemoryRange, _Mapping]] = ..., children: _Optional[_Iterable[_Union[WhiskerTree, _Mapping]]] = ..., leaf: _Optional[_Union[Whisker, _Mapping]] = ..., config: _Optional[_Union[ConfigRange, _Mapping]] = ..., optimizer: _Optional[bytes] = ..., configvector: _Optional[bytes] = ...) -> None: ...

class MemoryRange(_message.Message):
    __slots__ = ("lower", "upper", "active_axis")
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_AXIS_FIELD_NUMBER: _ClassVar[int]
    lower: Memory
    upper: Memory
    active_axis: _containers.RepeatedScalarFieldContainer[Axis]
    def __init__(self, lower: _Optional[_Union[Memory, _Mapping]] = ..., upper: _Optional[_Union[Memory, _Mapping]] = ..., active_axis: _Optional[_Iterable[_Union[Axis, str]]] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("rec_send_ewma", "rec_rec_ewma", "rtt_ratio", "slow_rec_rec_ewma", "rtt_diff", "queueing_delay")
    REC_SEND_EWMA_FIELD_NUMBER: _ClassVar[int]
    REC_REC_EWMA_FIELD_NUMBER: _ClassVar[int]
    RTT_RATIO_FIELD_NUMBER: _ClassVar[int]
    SLOW_REC_REC_EWMA_FIELD_NUMBER: _ClassVar[int]
    RTT_DIFF_FIELD_NUMBER: _ClassVar[int]
    QUEUEING_DELAY_FIELD_NUMBER: _ClassVar[int]
    rec_send_ewma: float
    rec_rec_ewma: float
    rtt_ratio: float
    slow_rec_rec_ewma: float
    rtt_diff: float
    queueing_delay: float
    def __init__(self, rec_send_ewma: _Optional[float] = ..., rec_rec_ewma: _Optional[float] = ..., rtt_ratio: _Optional[float] = ..., slow_rec_rec_ewma: _Optional[float] = ..., rtt_diff: _Optional[float] = ..., queueing_delay: _Optional[float] = ...) -> None: ...

class Whisker(_message.Message):
    __slots__ = ("window_increment", "window_multiple", "intersend", "domain")
    WINDOW_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    window_increment: int
    window_multiple: float
    intersend: float
    domain: MemoryRange
    def __init__(self, window_increment: _Optional[int] = ..., window_multiple: _Optional[float] = ..., intersend: _Optional[float] = ..., domain: _Optional[_Union[MemoryRange, _Mapping]] = ...) -> None: ...

class ConfigRange(_message.Message):
    __slots__ = ("link_packets_per_ms", "rtt", "num_senders", "buffer_size", "mean_off_duration", "mean_on_duration", "simulation_ticks", "stochastic_loss_rate")
    LINK_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_FIELD_NUMBER: _ClassVar[int]
    NUM_SENDERS_FIELD_NUMBER: _ClassVar[int]
    BUFFER_SIZE_FIELD_NUMBER: _ClassVar[int]
    MEAN_OFF_DURATION_FIELD_NUMBER: _ClassVar[int]
    MEAN_ON_DURATION_FIELD_NUMBER: _ClassVar[int]
    SIMULATION_TICKS_FIELD_NUMBER: _ClassVar[int]
    STOCHASTIC_LOSS_RATE_FIELD_NUMBER: _ClassVar[int]
    link_packets_per_ms: Range
    rtt: Range
    num_senders: Range
    buffer_size: Range
    mean_off_duration: Range
    mean_on_duration: Range
    simulation_ticks: int
    stochastic_loss_rate: Range
    def __init__(self, link_packets_per_ms: _Optional[_Union[Range, _Mapping]] = ..., rtt: _Optional[_Union[Range, _Mapping]] = ..., num_senders: _Optional[_Union[Range, _Mapping]] = ..., buffer_size: _Optional[_Union[Range, _Mapping]] = ..., mean_off_duration: _Optional[_Union[Range, _Mapping]] = ..., mean_on_duration: _Optional[_Union[Range, _Mapping]] = ..., simulation_ticks: _Optional[int] = ..., stochastic_loss_rate: _Optional[_Union[Range, _Mapping]] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("low", "high", "incr")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    INCR_FIELD_NUMBER: _ClassVar[int]
    low: float
    high: float
    incr: float
    def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ..., incr: _Optional[float] = ...) -> None: ...
