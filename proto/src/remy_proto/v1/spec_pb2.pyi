from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from remy_proto.v1 import rule_table_pb2 as _rule_table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TraceSemantics(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRACE_SEMANTICS_UNSPECIFIED: _ClassVar[TraceSemantics]
    TRACE_SEMANTICS_NS2: _ClassVar[TraceSemantics]
    TRACE_SEMANTICS_MAHIMAHI: _ClassVar[TraceSemantics]
    TRACE_SEMANTICS_CELLSIM: _ClassVar[TraceSemantics]

class ThroughputMeasure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    THROUGHPUT_MEASURE_UNSPECIFIED: _ClassVar[ThroughputMeasure]
    THROUGHPUT_MEASURE_EQUAL_SHARE: _ClassVar[ThroughputMeasure]
    THROUGHPUT_MEASURE_ON_TIME: _ClassVar[ThroughputMeasure]
    THROUGHPUT_MEASURE_COMPLETION: _ClassVar[ThroughputMeasure]

class GroupAggregate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GROUP_AGGREGATE_UNSPECIFIED: _ClassVar[GroupAggregate]
    GROUP_AGGREGATE_MEAN: _ClassVar[GroupAggregate]
    GROUP_AGGREGATE_MINIMUM: _ClassVar[GroupAggregate]

class SearchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEARCH_MODE_UNSPECIFIED: _ClassVar[SearchMode]
    SEARCH_MODE_PAPER: _ClassVar[SearchMode]
    SEARCH_MODE_JOINT: _ClassVar[SearchMode]
    SEARCH_MODE_PATTERN: _ClassVar[SearchMode]

class JointSplits(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOINT_SPLITS_UNSPECIFIED: _ClassVar[JointSplits]
    JOINT_SPLITS_ORTHANTS: _ClassVar[JointSplits]
    JOINT_SPLITS_DISAGREEMENT: _ClassVar[JointSplits]
TRACE_SEMANTICS_UNSPECIFIED: TraceSemantics
TRACE_SEMANTICS_NS2: TraceSemantics
TRACE_SEMANTICS_MAHIMAHI: TraceSemantics
TRACE_SEMANTICS_CELLSIM: TraceSemantics
THROUGHPUT_MEASURE_UNSPECIFIED: ThroughputMeasure
THROUGHPUT_MEASURE_EQUAL_SHARE: ThroughputMeasure
THROUGHPUT_MEASURE_ON_TIME: ThroughputMeasure
THROUGHPUT_MEASURE_COMPLETION: ThroughputMeasure
GROUP_AGGREGATE_UNSPECIFIED: GroupAggregate
GROUP_AGGREGATE_MEAN: GroupAggregate
GROUP_AGGREGATE_MINIMUM: GroupAggregate
SEARCH_MODE_UNSPECIFIED: SearchMode
SEARCH_MODE_PAPER: SearchMode
SEARCH_MODE_JOINT: SearchMode
SEARCH_MODE_PATTERN: SearchMode
JOINT_SPLITS_UNSPECIFIED: JointSplits
JOINT_SPLITS_ORTHANTS: JointSplits
JOINT_SPLITS_DISAGREEMENT: JointSplits

class Distribution(_message.Message):
    __slots__ = ("exact", "uniform", "log_uniform", "integer_uniform", "list")
    class Uniform(_message.Message):
        __slots__ = ("low", "high")
        LOW_FIELD_NUMBER: _ClassVar[int]
        HIGH_FIELD_NUMBER: _ClassVar[int]
        low: float
        high: float
        def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...
    class LogUniform(_message.Message):
        __slots__ = ("low", "high")
        LOW_FIELD_NUMBER: _ClassVar[int]
        HIGH_FIELD_NUMBER: _ClassVar[int]
        low: float
        high: float
        def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...
    class IntegerUniform(_message.Message):
        __slots__ = ("low", "high")
        LOW_FIELD_NUMBER: _ClassVar[int]
        HIGH_FIELD_NUMBER: _ClassVar[int]
        low: int
        high: int
        def __init__(self, low: _Optional[int] = ..., high: _Optional[int] = ...) -> None: ...
    class ValueList(_message.Message):
        __slots__ = ("values",)
        VALUES_FIELD_NUMBER: _ClassVar[int]
        values: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...
    EXACT_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    LOG_UNIFORM_FIELD_NUMBER: _ClassVar[int]
    INTEGER_UNIFORM_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    exact: float
    uniform: Distribution.Uniform
    log_uniform: Distribution.LogUniform
    integer_uniform: Distribution.IntegerUniform
    list: Distribution.ValueList
    def __init__(self, exact: _Optional[float] = ..., uniform: _Optional[_Union[Distribution.Uniform, _Mapping]] = ..., log_uniform: _Optional[_Union[Distribution.LogUniform, _Mapping]] = ..., integer_uniform: _Optional[_Union[Distribution.IntegerUniform, _Mapping]] = ..., list: _Optional[_Union[Distribution.ValueList, _Mapping]] = ...) -> None: ...

class Buffer(_message.Message):
    __slots__ = ("infinite", "packets", "ms", "bdp", "kilobytes")
    class Infinite(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    INFINITE_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    MS_FIELD_NUMBER: _ClassVar[int]
    BDP_FIELD_NUMBER: _ClassVar[int]
    KILOBYTES_FIELD_NUMBER: _ClassVar[int]
    infinite: Buffer.Infinite
    packets: Distribution
    ms: Distribution
    bdp: Distribution
    kilobytes: Distribution
    def __init__(self, infinite: _Optional[_Union[Buffer.Infinite, _Mapping]] = ..., packets: _Optional[_Union[Distribution, _Mapping]] = ..., ms: _Optional[_Union[Distribution, _Mapping]] = ..., bdp: _Optional[_Union[Distribution, _Mapping]] = ..., kilobytes: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...

class MeasurementModel(_message.Message):
    __slots__ = ("jitter", "timestamp_resolution_ms", "bunch_packets", "delayed_ack_ms", "rtt_offset_maximum_ms", "reordering")
    class Jitter(_message.Message):
        __slots__ = ("exponential_mean_ms", "uniform_maximum_ms", "log_normal", "exponential_mean_packets")
        class LogNormal(_message.Message):
            __slots__ = ("median_ms", "percentile_99_ms")
            MEDIAN_MS_FIELD_NUMBER: _ClassVar[int]
            PERCENTILE_99_MS_FIELD_NUMBER: _ClassVar[int]
            median_ms: Distribution
            percentile_99_ms: Distribution
            def __init__(self, median_ms: _Optional[_Union[Distribution, _Mapping]] = ..., percentile_99_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
        EXPONENTIAL_MEAN_MS_FIELD_NUMBER: _ClassVar[int]
        UNIFORM_MAXIMUM_MS_FIELD_NUMBER: _ClassVar[int]
        LOG_NORMAL_FIELD_NUMBER: _ClassVar[int]
        EXPONENTIAL_MEAN_PACKETS_FIELD_NUMBER: _ClassVar[int]
        exponential_mean_ms: Distribution
        uniform_maximum_ms: Distribution
        log_normal: MeasurementModel.Jitter.LogNormal
        exponential_mean_packets: Distribution
        def __init__(self, exponential_mean_ms: _Optional[_Union[Distribution, _Mapping]] = ..., uniform_maximum_ms: _Optional[_Union[Distribution, _Mapping]] = ..., log_normal: _Optional[_Union[MeasurementModel.Jitter.LogNormal, _Mapping]] = ..., exponential_mean_packets: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class Reordering(_message.Message):
        __slots__ = ("probability", "delay_ms")
        PROBABILITY_FIELD_NUMBER: _ClassVar[int]
        DELAY_MS_FIELD_NUMBER: _ClassVar[int]
        probability: Distribution
        delay_ms: Distribution
        def __init__(self, probability: _Optional[_Union[Distribution, _Mapping]] = ..., delay_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    JITTER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_RESOLUTION_MS_FIELD_NUMBER: _ClassVar[int]
    BUNCH_PACKETS_FIELD_NUMBER: _ClassVar[int]
    DELAYED_ACK_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_OFFSET_MAXIMUM_MS_FIELD_NUMBER: _ClassVar[int]
    REORDERING_FIELD_NUMBER: _ClassVar[int]
    jitter: MeasurementModel.Jitter
    timestamp_resolution_ms: Distribution
    bunch_packets: Distribution
    delayed_ack_ms: Distribution
    rtt_offset_maximum_ms: Distribution
    reordering: MeasurementModel.Reordering
    def __init__(self, jitter: _Optional[_Union[MeasurementModel.Jitter, _Mapping]] = ..., timestamp_resolution_ms: _Optional[_Union[Distribution, _Mapping]] = ..., bunch_packets: _Optional[_Union[Distribution, _Mapping]] = ..., delayed_ack_ms: _Optional[_Union[Distribution, _Mapping]] = ..., rtt_offset_maximum_ms: _Optional[_Union[Distribution, _Mapping]] = ..., reordering: _Optional[_Union[MeasurementModel.Reordering, _Mapping]] = ...) -> None: ...

class TraceModel(_message.Message):
    __slots__ = ("path", "sha256", "semantics", "ends", "mean_rate_mbps")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    MEAN_RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
    path: str
    sha256: str
    semantics: TraceSemantics
    ends: bool
    mean_rate_mbps: float
    def __init__(self, path: _Optional[str] = ..., sha256: _Optional[str] = ..., semantics: _Optional[_Union[TraceSemantics, str]] = ..., ends: _Optional[bool] = ..., mean_rate_mbps: _Optional[float] = ...) -> None: ...

class CellularModel(_message.Message):
    __slots__ = ("maximum_packets_per_s", "volatility_packets_per_s", "outage_escape_per_s", "tick_ms", "semantics", "seed")
    MAXIMUM_PACKETS_PER_S_FIELD_NUMBER: _ClassVar[int]
    VOLATILITY_PACKETS_PER_S_FIELD_NUMBER: _ClassVar[int]
    OUTAGE_ESCAPE_PER_S_FIELD_NUMBER: _ClassVar[int]
    TICK_MS_FIELD_NUMBER: _ClassVar[int]
    SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    maximum_packets_per_s: Distribution
    volatility_packets_per_s: Distribution
    outage_escape_per_s: Distribution
    tick_ms: Distribution
    semantics: TraceSemantics
    seed: int
    def __init__(self, maximum_packets_per_s: _Optional[_Union[Distribution, _Mapping]] = ..., volatility_packets_per_s: _Optional[_Union[Distribution, _Mapping]] = ..., outage_escape_per_s: _Optional[_Union[Distribution, _Mapping]] = ..., tick_ms: _Optional[_Union[Distribution, _Mapping]] = ..., semantics: _Optional[_Union[TraceSemantics, str]] = ..., seed: _Optional[int] = ...) -> None: ...

class LinkScheduleModel(_message.Message):
    __slots__ = ("steps", "repeat_after_ms")
    class Step(_message.Message):
        __slots__ = ("at_ms", "rate_mbps", "delay_ms", "loss_probability")
        AT_MS_FIELD_NUMBER: _ClassVar[int]
        RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
        DELAY_MS_FIELD_NUMBER: _ClassVar[int]
        LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
        at_ms: float
        rate_mbps: float
        delay_ms: float
        loss_probability: float
        def __init__(self, at_ms: _Optional[float] = ..., rate_mbps: _Optional[float] = ..., delay_ms: _Optional[float] = ..., loss_probability: _Optional[float] = ...) -> None: ...
    STEPS_FIELD_NUMBER: _ClassVar[int]
    REPEAT_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[LinkScheduleModel.Step]
    repeat_after_ms: float
    def __init__(self, steps: _Optional[_Iterable[_Union[LinkScheduleModel.Step, _Mapping]]] = ..., repeat_after_ms: _Optional[float] = ...) -> None: ...

class LinkWalkModel(_message.Message):
    __slots__ = ("every_ms", "rate_mbps", "delay_ms", "loss_probability", "step")
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    every_ms: float
    rate_mbps: Distribution.Uniform
    delay_ms: Distribution.Uniform
    loss_probability: Distribution.Uniform
    step: float
    def __init__(self, every_ms: _Optional[float] = ..., rate_mbps: _Optional[_Union[Distribution.Uniform, _Mapping]] = ..., delay_ms: _Optional[_Union[Distribution.Uniform, _Mapping]] = ..., loss_probability: _Optional[_Union[Distribution.Uniform, _Mapping]] = ..., step: _Optional[float] = ...) -> None: ...

class GilbertElliottModel(_message.Message):
    __slots__ = ("good_to_bad", "bad_to_good", "loss_in_good", "loss_in_bad")
    GOOD_TO_BAD_FIELD_NUMBER: _ClassVar[int]
    BAD_TO_GOOD_FIELD_NUMBER: _ClassVar[int]
    LOSS_IN_GOOD_FIELD_NUMBER: _ClassVar[int]
    LOSS_IN_BAD_FIELD_NUMBER: _ClassVar[int]
    good_to_bad: Distribution
    bad_to_good: Distribution
    loss_in_good: Distribution
    loss_in_bad: Distribution
    def __init__(self, good_to_bad: _Optional[_Union[Distribution, _Mapping]] = ..., bad_to_good: _Optional[_Union[Distribution, _Mapping]] = ..., loss_in_good: _Optional[_Union[Distribution, _Mapping]] = ..., loss_in_bad: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...

class PolicerModel(_message.Message):
    __slots__ = ("rate_mbps", "burst_packets")
    RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
    BURST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    rate_mbps: Distribution
    burst_packets: Distribution
    def __init__(self, rate_mbps: _Optional[_Union[Distribution, _Mapping]] = ..., burst_packets: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...

class JitterBoxModel(_message.Message):
    __slots__ = ("periodic", "batches", "random")
    class Periodic(_message.Message):
        __slots__ = ("period_ms",)
        PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
        period_ms: Distribution
        def __init__(self, period_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class Batches(_message.Message):
        __slots__ = ("packets", "longest_wait_ms")
        PACKETS_FIELD_NUMBER: _ClassVar[int]
        LONGEST_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
        packets: Distribution
        longest_wait_ms: Distribution
        def __init__(self, packets: _Optional[_Union[Distribution, _Mapping]] = ..., longest_wait_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class Random(_message.Message):
        __slots__ = ("longest_hold_ms", "probability", "reorders")
        LONGEST_HOLD_MS_FIELD_NUMBER: _ClassVar[int]
        PROBABILITY_FIELD_NUMBER: _ClassVar[int]
        REORDERS_FIELD_NUMBER: _ClassVar[int]
        longest_hold_ms: Distribution
        probability: Distribution
        reorders: bool
        def __init__(self, longest_hold_ms: _Optional[_Union[Distribution, _Mapping]] = ..., probability: _Optional[_Union[Distribution, _Mapping]] = ..., reorders: _Optional[bool] = ...) -> None: ...
    PERIODIC_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    RANDOM_FIELD_NUMBER: _ClassVar[int]
    periodic: JitterBoxModel.Periodic
    batches: JitterBoxModel.Batches
    random: JitterBoxModel.Random
    def __init__(self, periodic: _Optional[_Union[JitterBoxModel.Periodic, _Mapping]] = ..., batches: _Optional[_Union[JitterBoxModel.Batches, _Mapping]] = ..., random: _Optional[_Union[JitterBoxModel.Random, _Mapping]] = ...) -> None: ...

class LinkModel(_message.Message):
    __slots__ = ("name", "rate_mbps", "trace", "generated", "delay_ms", "buffer", "queue", "loss_probability", "gilbert_elliott", "schedule", "walk", "policer", "jitter_box")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    GENERATED_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    GILBERT_ELLIOTT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    POLICER_FIELD_NUMBER: _ClassVar[int]
    JITTER_BOX_FIELD_NUMBER: _ClassVar[int]
    name: str
    rate_mbps: Distribution
    trace: TraceModel
    generated: CellularModel
    delay_ms: Distribution
    buffer: Buffer
    queue: str
    loss_probability: Distribution
    gilbert_elliott: GilbertElliottModel
    schedule: LinkScheduleModel
    walk: LinkWalkModel
    policer: PolicerModel
    jitter_box: JitterBoxModel
    def __init__(self, name: _Optional[str] = ..., rate_mbps: _Optional[_Union[Distribution, _Mapping]] = ..., trace: _Optional[_Union[TraceModel, _Mapping]] = ..., generated: _Optional[_Union[CellularModel, _Mapping]] = ..., delay_ms: _Optional[_Union[Distribution, _Mapping]] = ..., buffer: _Optional[_Union[Buffer, _Mapping]] = ..., queue: _Optional[str] = ..., loss_probability: _Optional[_Union[Distribution, _Mapping]] = ..., gilbert_elliott: _Optional[_Union[GilbertElliottModel, _Mapping]] = ..., schedule: _Optional[_Union[LinkScheduleModel, _Mapping]] = ..., walk: _Optional[_Union[LinkWalkModel, _Mapping]] = ..., policer: _Optional[_Union[PolicerModel, _Mapping]] = ..., jitter_box: _Optional[_Union[JitterBoxModel, _Mapping]] = ...) -> None: ...

class RouteModel(_message.Message):
    __slots__ = ("links", "return_links", "delay_ms", "return_delay_ms")
    LINKS_FIELD_NUMBER: _ClassVar[int]
    RETURN_LINKS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RETURN_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedScalarFieldContainer[str]
    return_links: _containers.RepeatedScalarFieldContainer[str]
    delay_ms: float
    return_delay_ms: float
    def __init__(self, links: _Optional[_Iterable[str]] = ..., return_links: _Optional[_Iterable[str]] = ..., delay_ms: _Optional[float] = ..., return_delay_ms: _Optional[float] = ...) -> None: ...

class NetworkModel(_message.Message):
    __slots__ = ("rate_mbps", "rtt_ms", "senders", "buffer", "loss_probability", "measurement", "sender_groups", "queue", "links", "ack_bytes", "traffic", "packet_bytes", "transport")
    RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
    RTT_MS_FIELD_NUMBER: _ClassVar[int]
    SENDERS_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    SENDER_GROUPS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    ACK_BYTES_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    PACKET_BYTES_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    rate_mbps: Distribution
    rtt_ms: Distribution
    senders: Distribution
    buffer: Buffer
    loss_probability: Distribution
    measurement: MeasurementModel
    sender_groups: _containers.RepeatedCompositeFieldContainer[GroupModel]
    queue: str
    links: _containers.RepeatedCompositeFieldContainer[LinkModel]
    ack_bytes: float
    traffic: TrafficModel
    packet_bytes: float
    transport: str
    def __init__(self, rate_mbps: _Optional[_Union[Distribution, _Mapping]] = ..., rtt_ms: _Optional[_Union[Distribution, _Mapping]] = ..., senders: _Optional[_Union[Distribution, _Mapping]] = ..., buffer: _Optional[_Union[Buffer, _Mapping]] = ..., loss_probability: _Optional[_Union[Distribution, _Mapping]] = ..., measurement: _Optional[_Union[MeasurementModel, _Mapping]] = ..., sender_groups: _Optional[_Iterable[_Union[GroupModel, _Mapping]]] = ..., queue: _Optional[str] = ..., links: _Optional[_Iterable[_Union[LinkModel, _Mapping]]] = ..., ack_bytes: _Optional[float] = ..., traffic: _Optional[_Union[TrafficModel, _Mapping]] = ..., packet_bytes: _Optional[float] = ..., transport: _Optional[str] = ...) -> None: ...

class FixedTable(_message.Message):
    __slots__ = ("path", "json")
    PATH_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    path: str
    json: str
    def __init__(self, path: _Optional[str] = ..., json: _Optional[str] = ...) -> None: ...

class GroupModel(_message.Message):
    __slots__ = ("design", "protocol", "table", "count", "traffic", "transport", "weight", "objective", "rtt_ms", "route", "name", "first_on_ms", "rtt_offset_ms")
    DESIGN_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    RTT_MS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIRST_ON_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_OFFSET_MS_FIELD_NUMBER: _ClassVar[int]
    design: str
    protocol: str
    table: FixedTable
    count: Distribution
    traffic: TrafficModel
    transport: str
    weight: float
    objective: Objective
    rtt_ms: Distribution
    route: RouteModel
    name: str
    first_on_ms: float
    rtt_offset_ms: float
    def __init__(self, design: _Optional[str] = ..., protocol: _Optional[str] = ..., table: _Optional[_Union[FixedTable, _Mapping]] = ..., count: _Optional[_Union[Distribution, _Mapping]] = ..., traffic: _Optional[_Union[TrafficModel, _Mapping]] = ..., transport: _Optional[str] = ..., weight: _Optional[float] = ..., objective: _Optional[_Union[Objective, _Mapping]] = ..., rtt_ms: _Optional[_Union[Distribution, _Mapping]] = ..., route: _Optional[_Union[RouteModel, _Mapping]] = ..., name: _Optional[str] = ..., first_on_ms: _Optional[float] = ..., rtt_offset_ms: _Optional[float] = ...) -> None: ...

class WeightedModel(_message.Message):
    __slots__ = ("weight", "network")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    weight: float
    network: NetworkModel
    def __init__(self, weight: _Optional[float] = ..., network: _Optional[_Union[NetworkModel, _Mapping]] = ...) -> None: ...

class TrafficModel(_message.Message):
    __slots__ = ("exponential_time", "exponential_bytes", "flow_lengths", "empirical_bytes", "constant_bytes", "always", "intervals", "mean_off_ms", "first_off_factor", "poisson", "periodic", "barrier", "load")
    class ExponentialTime(_message.Message):
        __slots__ = ("mean_ms",)
        MEAN_MS_FIELD_NUMBER: _ClassVar[int]
        mean_ms: Distribution
        def __init__(self, mean_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class ExponentialBytes(_message.Message):
        __slots__ = ("mean_bytes",)
        MEAN_BYTES_FIELD_NUMBER: _ClassVar[int]
        mean_bytes: Distribution
        def __init__(self, mean_bytes: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class FlowLengths(_message.Message):
        __slots__ = ("scale_bytes", "shape", "shift_bytes", "extra_bytes", "maximum_bytes")
        SCALE_BYTES_FIELD_NUMBER: _ClassVar[int]
        SHAPE_FIELD_NUMBER: _ClassVar[int]
        SHIFT_BYTES_FIELD_NUMBER: _ClassVar[int]
        EXTRA_BYTES_FIELD_NUMBER: _ClassVar[int]
        MAXIMUM_BYTES_FIELD_NUMBER: _ClassVar[int]
        scale_bytes: float
        shape: float
        shift_bytes: float
        extra_bytes: float
        maximum_bytes: float
        def __init__(self, scale_bytes: _Optional[float] = ..., shape: _Optional[float] = ..., shift_bytes: _Optional[float] = ..., extra_bytes: _Optional[float] = ..., maximum_bytes: _Optional[float] = ...) -> None: ...
    class EmpiricalBytes(_message.Message):
        __slots__ = ("name", "extra_bytes", "probabilities", "bytes")
        NAME_FIELD_NUMBER: _ClassVar[int]
        EXTRA_BYTES_FIELD_NUMBER: _ClassVar[int]
        PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
        BYTES_FIELD_NUMBER: _ClassVar[int]
        name: str
        extra_bytes: float
        probabilities: _containers.RepeatedScalarFieldContainer[float]
        bytes: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, name: _Optional[str] = ..., extra_bytes: _Optional[float] = ..., probabilities: _Optional[_Iterable[float]] = ..., bytes: _Optional[_Iterable[float]] = ...) -> None: ...
    class ConstantBytes(_message.Message):
        __slots__ = ("bytes",)
        BYTES_FIELD_NUMBER: _ClassVar[int]
        bytes: Distribution
        def __init__(self, bytes: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class Always(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Intervals(_message.Message):
        __slots__ = ("begin_ms", "end_ms")
        BEGIN_MS_FIELD_NUMBER: _ClassVar[int]
        END_MS_FIELD_NUMBER: _ClassVar[int]
        begin_ms: _containers.RepeatedScalarFieldContainer[float]
        end_ms: _containers.RepeatedScalarFieldContainer[float]
        def __init__(self, begin_ms: _Optional[_Iterable[float]] = ..., end_ms: _Optional[_Iterable[float]] = ...) -> None: ...
    class Poisson(_message.Message):
        __slots__ = ("mean_interval_ms",)
        MEAN_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
        mean_interval_ms: Distribution
        def __init__(self, mean_interval_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class Periodic(_message.Message):
        __slots__ = ("interval_ms",)
        INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
        interval_ms: Distribution
        def __init__(self, interval_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    class Barrier(_message.Message):
        __slots__ = ("pause_ms",)
        PAUSE_MS_FIELD_NUMBER: _ClassVar[int]
        pause_ms: Distribution
        def __init__(self, pause_ms: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    EXPONENTIAL_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOW_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    EMPIRICAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ALWAYS_FIELD_NUMBER: _ClassVar[int]
    INTERVALS_FIELD_NUMBER: _ClassVar[int]
    MEAN_OFF_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFF_FACTOR_FIELD_NUMBER: _ClassVar[int]
    POISSON_FIELD_NUMBER: _ClassVar[int]
    PERIODIC_FIELD_NUMBER: _ClassVar[int]
    BARRIER_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    exponential_time: TrafficModel.ExponentialTime
    exponential_bytes: TrafficModel.ExponentialBytes
    flow_lengths: TrafficModel.FlowLengths
    empirical_bytes: TrafficModel.EmpiricalBytes
    constant_bytes: TrafficModel.ConstantBytes
    always: TrafficModel.Always
    intervals: TrafficModel.Intervals
    mean_off_ms: Distribution
    first_off_factor: float
    poisson: TrafficModel.Poisson
    periodic: TrafficModel.Periodic
    barrier: TrafficModel.Barrier
    load: Distribution
    def __init__(self, exponential_time: _Optional[_Union[TrafficModel.ExponentialTime, _Mapping]] = ..., exponential_bytes: _Optional[_Union[TrafficModel.ExponentialBytes, _Mapping]] = ..., flow_lengths: _Optional[_Union[TrafficModel.FlowLengths, _Mapping]] = ..., empirical_bytes: _Optional[_Union[TrafficModel.EmpiricalBytes, _Mapping]] = ..., constant_bytes: _Optional[_Union[TrafficModel.ConstantBytes, _Mapping]] = ..., always: _Optional[_Union[TrafficModel.Always, _Mapping]] = ..., intervals: _Optional[_Union[TrafficModel.Intervals, _Mapping]] = ..., mean_off_ms: _Optional[_Union[Distribution, _Mapping]] = ..., first_off_factor: _Optional[float] = ..., poisson: _Optional[_Union[TrafficModel.Poisson, _Mapping]] = ..., periodic: _Optional[_Union[TrafficModel.Periodic, _Mapping]] = ..., barrier: _Optional[_Union[TrafficModel.Barrier, _Mapping]] = ..., load: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...

class Objective(_message.Message):
    __slots__ = ("alpha", "beta", "delta", "throughput", "minimum_on_ms", "over_groups", "worst_specimens", "loss_price")
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    THROUGHPUT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_ON_MS_FIELD_NUMBER: _ClassVar[int]
    OVER_GROUPS_FIELD_NUMBER: _ClassVar[int]
    WORST_SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    LOSS_PRICE_FIELD_NUMBER: _ClassVar[int]
    alpha: float
    beta: float
    delta: float
    throughput: ThroughputMeasure
    minimum_on_ms: float
    over_groups: GroupAggregate
    worst_specimens: float
    loss_price: float
    def __init__(self, alpha: _Optional[float] = ..., beta: _Optional[float] = ..., delta: _Optional[float] = ..., throughput: _Optional[_Union[ThroughputMeasure, str]] = ..., minimum_on_ms: _Optional[float] = ..., over_groups: _Optional[_Union[GroupAggregate, str]] = ..., worst_specimens: _Optional[float] = ..., loss_price: _Optional[float] = ...) -> None: ...

class ActionGrid(_message.Message):
    __slots__ = ("minimum", "maximum", "first_step", "factor", "steps", "initial")
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_FIELD_NUMBER: _ClassVar[int]
    minimum: float
    maximum: float
    first_step: float
    factor: float
    steps: int
    initial: float
    def __init__(self, minimum: _Optional[float] = ..., maximum: _Optional[float] = ..., first_step: _Optional[float] = ..., factor: _Optional[float] = ..., steps: _Optional[int] = ..., initial: _Optional[float] = ...) -> None: ...

class PaperSearch(_message.Message):
    __slots__ = ("window_increment", "window_multiple", "intersend_ms", "epochs_per_split", "validation_specimens")
    WINDOW_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_PER_SPLIT_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    window_increment: ActionGrid
    window_multiple: ActionGrid
    intersend_ms: ActionGrid
    epochs_per_split: int
    validation_specimens: int
    def __init__(self, window_increment: _Optional[_Union[ActionGrid, _Mapping]] = ..., window_multiple: _Optional[_Union[ActionGrid, _Mapping]] = ..., intersend_ms: _Optional[_Union[ActionGrid, _Mapping]] = ..., epochs_per_split: _Optional[int] = ..., validation_specimens: _Optional[int] = ...) -> None: ...

class ComponentRange(_message.Message):
    __slots__ = ("minimum", "maximum")
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    minimum: float
    maximum: float
    def __init__(self, minimum: _Optional[float] = ..., maximum: _Optional[float] = ...) -> None: ...

class JointSearch(_message.Message):
    __slots__ = ("steps", "cpu_seconds", "starts", "start_steps", "maximum_rules", "first_split", "steps_per_split", "perturbation", "step_size", "fine_share", "steps_per_epoch", "validation_specimens", "window_multiple", "window_increment", "intersend_ms", "splits", "tuned_for_specimens", "simulated_packets", "window_increment_percent", "intersend_ratio", "overgrowth", "rates_at_start", "average_share", "steps_in_flight")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    START_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_RULES_FIELD_NUMBER: _ClassVar[int]
    FIRST_SPLIT_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SPLIT_FIELD_NUMBER: _ClassVar[int]
    PERTURBATION_FIELD_NUMBER: _ClassVar[int]
    STEP_SIZE_FIELD_NUMBER: _ClassVar[int]
    FINE_SHARE_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_MS_FIELD_NUMBER: _ClassVar[int]
    SPLITS_FIELD_NUMBER: _ClassVar[int]
    TUNED_FOR_SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_PERCENT_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_RATIO_FIELD_NUMBER: _ClassVar[int]
    OVERGROWTH_FIELD_NUMBER: _ClassVar[int]
    RATES_AT_START_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_SHARE_FIELD_NUMBER: _ClassVar[int]
    STEPS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    steps: int
    cpu_seconds: float
    starts: int
    start_steps: int
    maximum_rules: int
    first_split: int
    steps_per_split: int
    perturbation: float
    step_size: float
    fine_share: float
    steps_per_epoch: int
    validation_specimens: int
    window_multiple: ComponentRange
    window_increment: ComponentRange
    intersend_ms: ComponentRange
    splits: JointSplits
    tuned_for_specimens: int
    simulated_packets: int
    window_increment_percent: ComponentRange
    intersend_ratio: ComponentRange
    overgrowth: float
    rates_at_start: int
    average_share: float
    steps_in_flight: int
    def __init__(self, steps: _Optional[int] = ..., cpu_seconds: _Optional[float] = ..., starts: _Optional[int] = ..., start_steps: _Optional[int] = ..., maximum_rules: _Optional[int] = ..., first_split: _Optional[int] = ..., steps_per_split: _Optional[int] = ..., perturbation: _Optional[float] = ..., step_size: _Optional[float] = ..., fine_share: _Optional[float] = ..., steps_per_epoch: _Optional[int] = ..., validation_specimens: _Optional[int] = ..., window_multiple: _Optional[_Union[ComponentRange, _Mapping]] = ..., window_increment: _Optional[_Union[ComponentRange, _Mapping]] = ..., intersend_ms: _Optional[_Union[ComponentRange, _Mapping]] = ..., splits: _Optional[_Union[JointSplits, str]] = ..., tuned_for_specimens: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., window_increment_percent: _Optional[_Union[ComponentRange, _Mapping]] = ..., intersend_ratio: _Optional[_Union[ComponentRange, _Mapping]] = ..., overgrowth: _Optional[float] = ..., rates_at_start: _Optional[int] = ..., average_share: _Optional[float] = ..., steps_in_flight: _Optional[int] = ...) -> None: ...

class PatternSearch(_message.Message):
    __slots__ = ("steps", "maximum_rules", "race_specimens", "first_step", "minimum_step", "growth_threshold", "epochs_per_split", "validation_specimens", "window_multiple", "window_increment", "intersend_ms", "window_increment_percent", "intersend_ratio")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_RULES_FIELD_NUMBER: _ClassVar[int]
    RACE_SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_STEP_FIELD_NUMBER: _ClassVar[int]
    GROWTH_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_PER_SPLIT_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MULTIPLE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_MS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_PERCENT_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_RATIO_FIELD_NUMBER: _ClassVar[int]
    steps: int
    maximum_rules: int
    race_specimens: int
    first_step: float
    minimum_step: float
    growth_threshold: float
    epochs_per_split: int
    validation_specimens: int
    window_multiple: ComponentRange
    window_increment: ComponentRange
    intersend_ms: ComponentRange
    window_increment_percent: ComponentRange
    intersend_ratio: ComponentRange
    def __init__(self, steps: _Optional[int] = ..., maximum_rules: _Optional[int] = ..., race_specimens: _Optional[int] = ..., first_step: _Optional[float] = ..., minimum_step: _Optional[float] = ..., growth_threshold: _Optional[float] = ..., epochs_per_split: _Optional[int] = ..., validation_specimens: _Optional[int] = ..., window_multiple: _Optional[_Union[ComponentRange, _Mapping]] = ..., window_increment: _Optional[_Union[ComponentRange, _Mapping]] = ..., intersend_ms: _Optional[_Union[ComponentRange, _Mapping]] = ..., window_increment_percent: _Optional[_Union[ComponentRange, _Mapping]] = ..., intersend_ratio: _Optional[_Union[ComponentRange, _Mapping]] = ...) -> None: ...

class Search(_message.Message):
    __slots__ = ("mode", "specimens", "simulated_seconds", "seed", "paper", "joint", "pattern", "maximum_rules", "follow_workers", "worker_schedule")
    MODE_FIELD_NUMBER: _ClassVar[int]
    SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PAPER_FIELD_NUMBER: _ClassVar[int]
    JOINT_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_RULES_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_WORKERS_FIELD_NUMBER: _ClassVar[int]
    WORKER_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    mode: SearchMode
    specimens: int
    simulated_seconds: float
    seed: int
    paper: PaperSearch
    joint: JointSearch
    pattern: PatternSearch
    maximum_rules: int
    follow_workers: bool
    worker_schedule: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, mode: _Optional[_Union[SearchMode, str]] = ..., specimens: _Optional[int] = ..., simulated_seconds: _Optional[float] = ..., seed: _Optional[int] = ..., paper: _Optional[_Union[PaperSearch, _Mapping]] = ..., joint: _Optional[_Union[JointSearch, _Mapping]] = ..., pattern: _Optional[_Union[PatternSearch, _Mapping]] = ..., maximum_rules: _Optional[int] = ..., follow_workers: _Optional[bool] = ..., worker_schedule: _Optional[_Iterable[int]] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("epochs", "rules", "steps", "cpu_seconds", "wall_seconds", "epochs_without_gain")
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WALL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_WITHOUT_GAIN_FIELD_NUMBER: _ClassVar[int]
    epochs: int
    rules: int
    steps: int
    cpu_seconds: float
    wall_seconds: float
    epochs_without_gain: int
    def __init__(self, epochs: _Optional[int] = ..., rules: _Optional[int] = ..., steps: _Optional[int] = ..., cpu_seconds: _Optional[float] = ..., wall_seconds: _Optional[float] = ..., epochs_without_gain: _Optional[int] = ...) -> None: ...

class Workers(_message.Message):
    __slots__ = ("minimum", "maximum", "image", "cpus", "memory_mib")
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    minimum: int
    maximum: int
    image: str
    cpus: float
    memory_mib: int
    def __init__(self, minimum: _Optional[int] = ..., maximum: _Optional[int] = ..., image: _Optional[str] = ..., cpus: _Optional[float] = ..., memory_mib: _Optional[int] = ...) -> None: ...

class DesignSpec(_message.Message):
    __slots__ = ("name", "edition", "network", "models", "objective", "signals", "rules", "path_model", "search", "stop", "workers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EDITION_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    PATH_MODEL_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    edition: int
    network: NetworkModel
    models: _containers.RepeatedCompositeFieldContainer[WeightedModel]
    objective: Objective
    signals: _containers.RepeatedScalarFieldContainer[_rule_table_pb2.Signal]
    rules: _rule_table_pb2.Rules
    path_model: _rule_table_pb2.PathModel
    search: Search
    stop: Stop
    workers: Workers
    def __init__(self, name: _Optional[str] = ..., edition: _Optional[int] = ..., network: _Optional[_Union[NetworkModel, _Mapping]] = ..., models: _Optional[_Iterable[_Union[WeightedModel, _Mapping]]] = ..., objective: _Optional[_Union[Objective, _Mapping]] = ..., signals: _Optional[_Iterable[_Union[_rule_table_pb2.Signal, str]]] = ..., rules: _Optional[_Union[_rule_table_pb2.Rules, str]] = ..., path_model: _Optional[_Union[_rule_table_pb2.PathModel, _Mapping]] = ..., search: _Optional[_Union[Search, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., workers: _Optional[_Union[Workers, _Mapping]] = ...) -> None: ...
