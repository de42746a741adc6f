from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Signal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIGNAL_UNSPECIFIED: _ClassVar[Signal]
    SIGNAL_SEND_EWMA: _ClassVar[Signal]
    SIGNAL_REC_EWMA: _ClassVar[Signal]
    SIGNAL_RTT_RATIO: _ClassVar[Signal]
    SIGNAL_SLOW_REC_EWMA: _ClassVar[Signal]
    SIGNAL_SEND_RATIO: _ClassVar[Signal]
    SIGNAL_SLOW_REC_RATIO: _ClassVar[Signal]
    SIGNAL_RTT_DIFF: _ClassVar[Signal]
    SIGNAL_QUEUEING_DELAY: _ClassVar[Signal]
    SIGNAL_LOSS_RATE: _ClassVar[Signal]
    SIGNAL_QUEUE_LENGTH: _ClassVar[Signal]
    SIGNAL_UTILIZATION: _ClassVar[Signal]
    SIGNAL_RTT_DIFF_RATIO: _ClassVar[Signal]
    SIGNAL_QUEUEING_DELAY_RATIO: _ClassVar[Signal]
    SIGNAL_QUEUE_RATIO: _ClassVar[Signal]
    SIGNAL_ECN_FRACTION: _ClassVar[Signal]
    SIGNAL_AGE: _ClassVar[Signal]
    SIGNAL_RTTS_SINCE_LOSS: _ClassVar[Signal]

class Rules(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RULES_UNSPECIFIED: _ClassVar[Rules]
    RULES_ABSOLUTE: _ClassVar[Rules]
    RULES_SCALE_FREE: _ClassVar[Rules]
    RULES_SCALE_FREE_REMEMBERING: _ClassVar[Rules]
SIGNAL_UNSPECIFIED: Signal
SIGNAL_SEND_EWMA: Signal
SIGNAL_REC_EWMA: Signal
SIGNAL_RTT_RATIO: Signal
SIGNAL_SLOW_REC_EWMA: Signal
SIGNAL_SEND_RATIO: Signal
SIGNAL_SLOW_REC_RATIO: Signal
SIGNAL_RTT_DIFF: Signal
SIGNAL_QUEUEING_DELAY: Signal
SIGNAL_LOSS_RATE: Signal
SIGNAL_QUEUE_LENGTH: Signal
SIGNAL_UTILIZATION: Signal
SIGNAL_RTT_DIFF_RATIO: Signal
SIGNAL_QUEUEING_DELAY_RATIO: Signal
SIGNAL_QUEUE_RATIO: Signal
SIGNAL_ECN_FRACTION: Signal
SIGNAL_AGE: Signal
SIGNAL_RTTS_SINCE_LOSS: Signal
RULES_UNSPECIFIED: Rules
RULES_ABSOLUTE: Rules
RULES_SCALE_FREE: Rules
RULES_SCALE_FREE_REMEMBERING: Rules

class Action(_message.Message):
    __slots__ = ("window_multiple", "window_increment", "intersend_ms")
    WINDOW_MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_MS_FIELD_NUMBER: _ClassVar[int]
    window_multiple: float
    window_increment: float
    intersend_ms: float
    def __init__(self, window_multiple: _Optional[float] = ..., window_increment: _Optional[float] = ..., intersend_ms: _Optional[float] = ...) -> None: ...

class Threshold(_message.Message):
    __slots__ = ("signal", "value")
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    signal: Signal
    value: float
    def __init__(self, signal: _Optional[_Union[Signal, str]] = ..., value: _Optional[float] = ...) -> None: ...

class Split(_message.Message):
    __slots__ = ("thresholds",)
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    thresholds: _containers.RepeatedCompositeFieldContainer[Threshold]
    def __init__(self, thresholds: _Optional[_Iterable[_Union[Threshold, _Mapping]]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("split", "action")
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    split: Split
    action: Action
    def __init__(self, split: _Optional[_Union[Split, _Mapping]] = ..., action: _Optional[_Union[Action, _Mapping]] = ...) -> None: ...

class PathModel(_message.Message):
    __slots__ = ("base_rtt_rounds", "tolerated_loss", "loss_debt_packets", "loss_window", "least_window_packets", "reference_rtt_ms", "additive_packets", "flight_bound", "competition_rtt_ratio")
    BASE_RTT_ROUNDS_FIELD_NUMBER: _ClassVar[int]
    TOLERATED_LOSS_FIELD_NUMBER: _ClassVar[int]
    LOSS_DEBT_PACKETS_FIELD_NUMBER: _ClassVar[int]
    LOSS_WINDOW_FIELD_NUMBER: _ClassVar[int]
    LEAST_WINDOW_PACKETS_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_RTT_MS_FIELD_NUMBER: _ClassVar[int]
    ADDITIVE_PACKETS_FIELD_NUMBER: _ClassVar[int]
    FLIGHT_BOUND_FIELD_NUMBER: _ClassVar[int]
    COMPETITION_RTT_RATIO_FIELD_NUMBER: _ClassVar[int]
    base_rtt_rounds: float
    tolerated_loss: float
    loss_debt_packets: float
    loss_window: float
    least_window_packets: float
    reference_rtt_ms: float
    additive_packets: float
    flight_bound: float
    competition_rtt_ratio: float
    def __init__(self, base_rtt_rounds: _Optional[float] = ..., tolerated_loss: _Optional[float] = ..., loss_debt_packets: _Optional[float] = ..., loss_window: _Optional[float] = ..., least_window_packets: _Optional[float] = ..., reference_rtt_ms: _Optional[float] = ..., additive_packets: _Optional[float] = ..., flight_bound: _Optional[float] = ..., competition_rtt_ratio: _Optional[float] = ...) -> None: ...

class RuleTable(_message.Message):
    __slots__ = ("signals", "nodes", "domain_upper", "dna_metadata", "rules", "path_model")
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_UPPER_FIELD_NUMBER: _ClassVar[int]
    DNA_METADATA_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    PATH_MODEL_FIELD_NUMBER: _ClassVar[int]
    signals: _containers.RepeatedScalarFieldContainer[Signal]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    domain_upper: float
    dna_metadata: bytes
    rules: Rules
    path_model: PathModel
    def __init__(self, signals: _Optional[_Iterable[_Union[Signal, str]]] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., domain_upper: _Optional[float] = ..., dna_metadata: _Optional[bytes] = ..., rules: _Optional[_Union[Rules, str]] = ..., path_model: _Optional[_Union[PathModel, _Mapping]] = ...) -> None: ...
