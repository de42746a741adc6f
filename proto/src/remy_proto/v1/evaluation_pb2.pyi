from remy_proto.v1 import rule_table_pb2 as _rule_table_pb2
from remy_proto.v1 import spec_pb2 as _spec_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Recording(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECORDING_UNSPECIFIED: _ClassVar[Recording]
    RECORDING_USES: _ClassVar[Recording]
    RECORDING_MEMORY: _ClassVar[Recording]
    RECORDING_USED: _ClassVar[Recording]
    RECORDING_SHARES: _ClassVar[Recording]
RECORDING_UNSPECIFIED: Recording
RECORDING_USES: Recording
RECORDING_MEMORY: Recording
RECORDING_USED: Recording
RECORDING_SHARES: Recording

class Traffic(_message.Message):
    __slots__ = ("exponential_time", "exponential_bytes", "pareto_bytes", "empirical_bytes", "constant_bytes", "always", "intervals", "mean_off_ms", "poisson", "periodic", "barrier", "first_off_factor")
    class ExponentialTime(_message.Message):
        __slots__ = ("mean_ms",)
        MEAN_MS_FIELD_NUMBER: _ClassVar[int]
        mean_ms: float
        def __init__(self, mean_ms: _Optional[float] = ...) -> None: ...
    class ExponentialBytes(_message.Message):
        __slots__ = ("mean_bytes",)
        MEAN_BYTES_FIELD_NUMBER: _ClassVar[int]
        mean_bytes: float
        def __init__(self, mean_bytes: _Optional[float] = ...) -> None: ...
    class ParetoBytes(_message.Message):
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
        __slots__ = ("name", "probabilities", "bytes", "extra_bytes")
        NAME_FIELD_NUMBER: _ClassVar[int]
        PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
        BYTES_FIELD_NUMBER: _ClassVar[int]
        EXTRA_BYTES_FIELD_NUMBER: _ClassVar[int]
        name: str
        probabilities: _containers.RepeatedScalarFieldContainer[float]
        bytes: _containers.RepeatedScalarFieldContainer[float]
        extra_bytes: float
        def __init__(self, name: _Optional[str] = ..., probabilities: _Optional[_Iterable[float]] = ..., bytes: _Optional[_Iterable[float]] = ..., extra_bytes: _Optional[float] = ...) -> None: ...
    class ConstantBytes(_message.Message):
        __slots__ = ("bytes",)
        BYTES_FIELD_NUMBER: _ClassVar[int]
        bytes: float
        def __init__(self, bytes: _Optional[float] = ...) -> None: ...
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
        mean_interval_ms: float
        def __init__(self, mean_interval_ms: _Optional[float] = ...) -> None: ...
    class Periodic(_message.Message):
        __slots__ = ("interval_ms",)
        INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
        interval_ms: float
        def __init__(self, interval_ms: _Optional[float] = ...) -> None: ...
    class Barrier(_message.Message):
        __slots__ = ("pause_ms",)
        PAUSE_MS_FIELD_NUMBER: _ClassVar[int]
        pause_ms: float
        def __init__(self, pause_ms: _Optional[float] = ...) -> None: ...
    EXPONENTIAL_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARETO_BYTES_FIELD_NUMBER: _ClassVar[int]
    EMPIRICAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ALWAYS_FIELD_NUMBER: _ClassVar[int]
    INTERVALS_FIELD_NUMBER: _ClassVar[int]
    MEAN_OFF_MS_FIELD_NUMBER: _ClassVar[int]
    POISSON_FIELD_NUMBER: _ClassVar[int]
    PERIODIC_FIELD_NUMBER: _ClassVar[int]
    BARRIER_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFF_FACTOR_FIELD_NUMBER: _ClassVar[int]
    exponential_time: Traffic.ExponentialTime
    exponential_bytes: Traffic.ExponentialBytes
    pareto_bytes: Traffic.ParetoBytes
    empirical_bytes: Traffic.EmpiricalBytes
    constant_bytes: Traffic.ConstantBytes
    always: Traffic.Always
    intervals: Traffic.Intervals
    mean_off_ms: float
    poisson: Traffic.Poisson
    periodic: Traffic.Periodic
    barrier: Traffic.Barrier
    first_off_factor: float
    def __init__(self, exponential_time: _Optional[_Union[Traffic.ExponentialTime, _Mapping]] = ..., exponential_bytes: _Optional[_Union[Traffic.ExponentialBytes, _Mapping]] = ..., pareto_bytes: _Optional[_Union[Traffic.ParetoBytes, _Mapping]] = ..., empirical_bytes: _Optional[_Union[Traffic.EmpiricalBytes, _Mapping]] = ..., constant_bytes: _Optional[_Union[Traffic.ConstantBytes, _Mapping]] = ..., always: _Optional[_Union[Traffic.Always, _Mapping]] = ..., intervals: _Optional[_Union[Traffic.Intervals, _Mapping]] = ..., mean_off_ms: _Optional[float] = ..., poisson: _Optional[_Union[Traffic.Poisson, _Mapping]] = ..., periodic: _Optional[_Union[Traffic.Periodic, _Mapping]] = ..., barrier: _Optional[_Union[Traffic.Barrier, _Mapping]] = ..., first_off_factor: _Optional[float] = ...) -> None: ...

class Choice(_message.Message):
    __slots__ = ("name", "variant", "parameters")
    class Parameter(_message.Message):
        __slots__ = ("name", "value")
        NAME_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        name: str
        value: float
        def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    variant: str
    parameters: _containers.RepeatedCompositeFieldContainer[Choice.Parameter]
    def __init__(self, name: _Optional[str] = ..., variant: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[Choice.Parameter, _Mapping]]] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("sha256", "opportunities_us")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    OPPORTUNITIES_US_FIELD_NUMBER: _ClassVar[int]
    sha256: bytes
    opportunities_us: bytes
    def __init__(self, sha256: _Optional[bytes] = ..., opportunities_us: _Optional[bytes] = ...) -> None: ...

class TraceGenerator(_message.Message):
    __slots__ = ("maximum_packets_per_s", "volatility_packets_per_s", "outage_escape_per_s", "tick_ms", "seed")
    MAXIMUM_PACKETS_PER_S_FIELD_NUMBER: _ClassVar[int]
    VOLATILITY_PACKETS_PER_S_FIELD_NUMBER: _ClassVar[int]
    OUTAGE_ESCAPE_PER_S_FIELD_NUMBER: _ClassVar[int]
    TICK_MS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    maximum_packets_per_s: float
    volatility_packets_per_s: float
    outage_escape_per_s: float
    tick_ms: float
    seed: int
    def __init__(self, maximum_packets_per_s: _Optional[float] = ..., volatility_packets_per_s: _Optional[float] = ..., outage_escape_per_s: _Optional[float] = ..., tick_ms: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class LinkStep(_message.Message):
    __slots__ = ("at_ms", "rate_packets_per_ms", "delay_ms", "loss_probability")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    RATE_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    at_ms: float
    rate_packets_per_ms: float
    delay_ms: float
    loss_probability: float
    def __init__(self, at_ms: _Optional[float] = ..., rate_packets_per_ms: _Optional[float] = ..., delay_ms: _Optional[float] = ..., loss_probability: _Optional[float] = ...) -> None: ...

class LinkRange(_message.Message):
    __slots__ = ("least", "most")
    LEAST_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    least: float
    most: float
    def __init__(self, least: _Optional[float] = ..., most: _Optional[float] = ...) -> None: ...

class LinkSchedule(_message.Message):
    __slots__ = ("steps", "repeat_after_ms")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    REPEAT_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[LinkStep]
    repeat_after_ms: float
    def __init__(self, steps: _Optional[_Iterable[_Union[LinkStep, _Mapping]]] = ..., repeat_after_ms: _Optional[float] = ...) -> None: ...

class LinkWalk(_message.Message):
    __slots__ = ("every_ms", "rate_packets_per_ms", "delay_ms", "loss_probability", "step")
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    RATE_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    every_ms: float
    rate_packets_per_ms: LinkRange
    delay_ms: LinkRange
    loss_probability: LinkRange
    step: float
    def __init__(self, every_ms: _Optional[float] = ..., rate_packets_per_ms: _Optional[_Union[LinkRange, _Mapping]] = ..., delay_ms: _Optional[_Union[LinkRange, _Mapping]] = ..., loss_probability: _Optional[_Union[LinkRange, _Mapping]] = ..., step: _Optional[float] = ...) -> None: ...

class GilbertElliottLoss(_message.Message):
    __slots__ = ("good_to_bad", "bad_to_good", "loss_in_good", "loss_in_bad")
    GOOD_TO_BAD_FIELD_NUMBER: _ClassVar[int]
    BAD_TO_GOOD_FIELD_NUMBER: _ClassVar[int]
    LOSS_IN_GOOD_FIELD_NUMBER: _ClassVar[int]
    LOSS_IN_BAD_FIELD_NUMBER: _ClassVar[int]
    good_to_bad: float
    bad_to_good: float
    loss_in_good: float
    loss_in_bad: float
    def __init__(self, good_to_bad: _Optional[float] = ..., bad_to_good: _Optional[float] = ..., loss_in_good: _Optional[float] = ..., loss_in_bad: _Optional[float] = ...) -> None: ...

class Policer(_message.Message):
    __slots__ = ("rate_packets_per_ms", "burst_packets")
    RATE_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    BURST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    rate_packets_per_ms: float
    burst_packets: float
    def __init__(self, rate_packets_per_ms: _Optional[float] = ..., burst_packets: _Optional[float] = ...) -> None: ...

class JitterBox(_message.Message):
    __slots__ = ("periodic", "batches", "random")
    class Periodic(_message.Message):
        __slots__ = ("period_ms",)
        PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
        period_ms: float
        def __init__(self, period_ms: _Optional[float] = ...) -> None: ...
    class Batches(_message.Message):
        __slots__ = ("packets", "longest_wait_ms")
        PACKETS_FIELD_NUMBER: _ClassVar[int]
        LONGEST_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
        packets: int
        longest_wait_ms: float
        def __init__(self, packets: _Optional[int] = ..., longest_wait_ms: _Optional[float] = ...) -> None: ...
    class Random(_message.Message):
        __slots__ = ("longest_hold_ms", "probability", "reorders")
        LONGEST_HOLD_MS_FIELD_NUMBER: _ClassVar[int]
        PROBABILITY_FIELD_NUMBER: _ClassVar[int]
        REORDERS_FIELD_NUMBER: _ClassVar[int]
        longest_hold_ms: float
        probability: float
        reorders: bool
        def __init__(self, longest_hold_ms: _Optional[float] = ..., probability: _Optional[float] = ..., reorders: _Optional[bool] = ...) -> None: ...
    PERIODIC_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    RANDOM_FIELD_NUMBER: _ClassVar[int]
    periodic: JitterBox.Periodic
    batches: JitterBox.Batches
    random: JitterBox.Random
    def __init__(self, periodic: _Optional[_Union[JitterBox.Periodic, _Mapping]] = ..., batches: _Optional[_Union[JitterBox.Batches, _Mapping]] = ..., random: _Optional[_Union[JitterBox.Random, _Mapping]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("rate_packets_per_ms", "delay_ms", "buffer_packets", "queue", "loss_probability", "trace", "generated", "gilbert_elliott", "schedule", "walk", "policer", "jitter_box")
    class TraceDriven(_message.Message):
        __slots__ = ("sha256", "semantics", "ends")
        SHA256_FIELD_NUMBER: _ClassVar[int]
        SEMANTICS_FIELD_NUMBER: _ClassVar[int]
        ENDS_FIELD_NUMBER: _ClassVar[int]
        sha256: bytes
        semantics: _spec_pb2.TraceSemantics
        ends: bool
        def __init__(self, sha256: _Optional[bytes] = ..., semantics: _Optional[_Union[_spec_pb2.TraceSemantics, str]] = ..., ends: _Optional[bool] = ...) -> None: ...
    class Generated(_message.Message):
        __slots__ = ("generator", "semantics")
        GENERATOR_FIELD_NUMBER: _ClassVar[int]
        SEMANTICS_FIELD_NUMBER: _ClassVar[int]
        generator: TraceGenerator
        semantics: _spec_pb2.TraceSemantics
        def __init__(self, generator: _Optional[_Union[TraceGenerator, _Mapping]] = ..., semantics: _Optional[_Union[_spec_pb2.TraceSemantics, str]] = ...) -> None: ...
    RATE_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    BUFFER_PACKETS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    GENERATED_FIELD_NUMBER: _ClassVar[int]
    GILBERT_ELLIOTT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    WALK_FIELD_NUMBER: _ClassVar[int]
    POLICER_FIELD_NUMBER: _ClassVar[int]
    JITTER_BOX_FIELD_NUMBER: _ClassVar[int]
    rate_packets_per_ms: float
    delay_ms: float
    buffer_packets: int
    queue: Choice
    loss_probability: float
    trace: Link.TraceDriven
    generated: Link.Generated
    gilbert_elliott: GilbertElliottLoss
    schedule: LinkSchedule
    walk: LinkWalk
    policer: Policer
    jitter_box: JitterBox
    def __init__(self, rate_packets_per_ms: _Optional[float] = ..., delay_ms: _Optional[float] = ..., buffer_packets: _Optional[int] = ..., queue: _Optional[_Union[Choice, _Mapping]] = ..., loss_probability: _Optional[float] = ..., trace: _Optional[_Union[Link.TraceDriven, _Mapping]] = ..., generated: _Optional[_Union[Link.Generated, _Mapping]] = ..., gilbert_elliott: _Optional[_Union[GilbertElliottLoss, _Mapping]] = ..., schedule: _Optional[_Union[LinkSchedule, _Mapping]] = ..., walk: _Optional[_Union[LinkWalk, _Mapping]] = ..., policer: _Optional[_Union[Policer, _Mapping]] = ..., jitter_box: _Optional[_Union[JitterBox, _Mapping]] = ...) -> None: ...

class Route(_message.Message):
    __slots__ = ("links", "return_links", "delay_ms", "return_delay_ms")
    LINKS_FIELD_NUMBER: _ClassVar[int]
    RETURN_LINKS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    RETURN_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedScalarFieldContainer[int]
    return_links: _containers.RepeatedScalarFieldContainer[int]
    delay_ms: float
    return_delay_ms: float
    def __init__(self, links: _Optional[_Iterable[int]] = ..., return_links: _Optional[_Iterable[int]] = ..., delay_ms: _Optional[float] = ..., return_delay_ms: _Optional[float] = ...) -> None: ...

class SenderGroup(_message.Message):
    __slots__ = ("count", "table", "traffic", "protocol", "transport", "first_on_ms", "route", "weight", "objective", "rtt_offset_ms")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    FIRST_ON_MS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    RTT_OFFSET_MS_FIELD_NUMBER: _ClassVar[int]
    count: int
    table: int
    traffic: Traffic
    protocol: Choice
    transport: Choice
    first_on_ms: float
    route: Route
    weight: float
    objective: _spec_pb2.Objective
    rtt_offset_ms: float
    def __init__(self, count: _Optional[int] = ..., table: _Optional[int] = ..., traffic: _Optional[_Union[Traffic, _Mapping]] = ..., protocol: _Optional[_Union[Choice, _Mapping]] = ..., transport: _Optional[_Union[Choice, _Mapping]] = ..., first_on_ms: _Optional[float] = ..., route: _Optional[_Union[Route, _Mapping]] = ..., weight: _Optional[float] = ..., objective: _Optional[_Union[_spec_pb2.Objective, _Mapping]] = ..., rtt_offset_ms: _Optional[float] = ...) -> None: ...

class Bottleneck(_message.Message):
    __slots__ = ("queue", "packet_bytes", "ack_bytes")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PACKET_BYTES_FIELD_NUMBER: _ClassVar[int]
    ACK_BYTES_FIELD_NUMBER: _ClassVar[int]
    queue: Choice
    packet_bytes: float
    ack_bytes: float
    def __init__(self, queue: _Optional[_Union[Choice, _Mapping]] = ..., packet_bytes: _Optional[float] = ..., ack_bytes: _Optional[float] = ...) -> None: ...

class Measurement(_message.Message):
    __slots__ = ("exponential_jitter_mean_ms", "uniform_jitter_maximum_ms", "log_normal_jitter", "timestamp_resolution_ms", "bunch_packets", "delayed_ack_ms", "rtt_offset_maximum_ms", "reordering_probability", "reordering_delay_ms")
    class LogNormalJitter(_message.Message):
        __slots__ = ("median_ms", "percentile_99_ms")
        MEDIAN_MS_FIELD_NUMBER: _ClassVar[int]
        PERCENTILE_99_MS_FIELD_NUMBER: _ClassVar[int]
        median_ms: float
        percentile_99_ms: float
        def __init__(self, median_ms: _Optional[float] = ..., percentile_99_ms: _Optional[float] = ...) -> None: ...
    EXPONENTIAL_JITTER_MEAN_MS_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_JITTER_MAXIMUM_MS_FIELD_NUMBER: _ClassVar[int]
    LOG_NORMAL_JITTER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_RESOLUTION_MS_FIELD_NUMBER: _ClassVar[int]
    BUNCH_PACKETS_FIELD_NUMBER: _ClassVar[int]
    DELAYED_ACK_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_OFFSET_MAXIMUM_MS_FIELD_NUMBER: _ClassVar[int]
    REORDERING_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    REORDERING_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    exponential_jitter_mean_ms: float
    uniform_jitter_maximum_ms: float
    log_normal_jitter: Measurement.LogNormalJitter
    timestamp_resolution_ms: float
    bunch_packets: int
    delayed_ack_ms: float
    rtt_offset_maximum_ms: float
    reordering_probability: float
    reordering_delay_ms: float
    def __init__(self, exponential_jitter_mean_ms: _Optional[float] = ..., uniform_jitter_maximum_ms: _Optional[float] = ..., log_normal_jitter: _Optional[_Union[Measurement.LogNormalJitter, _Mapping]] = ..., timestamp_resolution_ms: _Optional[float] = ..., bunch_packets: _Optional[int] = ..., delayed_ack_ms: _Optional[float] = ..., rtt_offset_maximum_ms: _Optional[float] = ..., reordering_probability: _Optional[float] = ..., reordering_delay_ms: _Optional[float] = ...) -> None: ...

class Specimen(_message.Message):
    __slots__ = ("key", "link_rate_packets_per_ms", "rtt_ms", "buffer_packets", "loss_probability", "senders", "measurement", "bottleneck", "links")
    KEY_FIELD_NUMBER: _ClassVar[int]
    LINK_RATE_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_MS_FIELD_NUMBER: _ClassVar[int]
    BUFFER_PACKETS_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    SENDERS_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    key: int
    link_rate_packets_per_ms: float
    rtt_ms: float
    buffer_packets: int
    loss_probability: float
    senders: _containers.RepeatedCompositeFieldContainer[SenderGroup]
    measurement: Measurement
    bottleneck: Bottleneck
    links: _containers.RepeatedCompositeFieldContainer[Link]
    def __init__(self, key: _Optional[int] = ..., link_rate_packets_per_ms: _Optional[float] = ..., rtt_ms: _Optional[float] = ..., buffer_packets: _Optional[int] = ..., loss_probability: _Optional[float] = ..., senders: _Optional[_Iterable[_Union[SenderGroup, _Mapping]]] = ..., measurement: _Optional[_Union[Measurement, _Mapping]] = ..., bottleneck: _Optional[_Union[Bottleneck, _Mapping]] = ..., links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ...) -> None: ...

class SpecimenKind(_message.Message):
    __slots__ = ("senders", "measurement", "bottleneck", "links")
    SENDERS_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    senders: _containers.RepeatedCompositeFieldContainer[SenderGroup]
    measurement: Measurement
    bottleneck: Bottleneck
    links: _containers.RepeatedCompositeFieldContainer[Link]
    def __init__(self, senders: _Optional[_Iterable[_Union[SenderGroup, _Mapping]]] = ..., measurement: _Optional[_Union[Measurement, _Mapping]] = ..., bottleneck: _Optional[_Union[Bottleneck, _Mapping]] = ..., links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ...) -> None: ...

class SpecimenColumns(_message.Message):
    __slots__ = ("kinds", "keys", "link_rates_packets_per_ms", "rtts_ms", "buffers", "loss_probabilities", "kind", "sender_counts")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LINK_RATES_PACKETS_PER_MS_FIELD_NUMBER: _ClassVar[int]
    RTTS_MS_FIELD_NUMBER: _ClassVar[int]
    BUFFERS_FIELD_NUMBER: _ClassVar[int]
    LOSS_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SENDER_COUNTS_FIELD_NUMBER: _ClassVar[int]
    kinds: _containers.RepeatedCompositeFieldContainer[SpecimenKind]
    keys: bytes
    link_rates_packets_per_ms: bytes
    rtts_ms: bytes
    buffers: _containers.RepeatedScalarFieldContainer[int]
    loss_probabilities: bytes
    kind: _containers.RepeatedScalarFieldContainer[int]
    sender_counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kinds: _Optional[_Iterable[_Union[SpecimenKind, _Mapping]]] = ..., keys: _Optional[bytes] = ..., link_rates_packets_per_ms: _Optional[bytes] = ..., rtts_ms: _Optional[bytes] = ..., buffers: _Optional[_Iterable[int]] = ..., loss_probabilities: _Optional[bytes] = ..., kind: _Optional[_Iterable[int]] = ..., sender_counts: _Optional[_Iterable[int]] = ...) -> None: ...

class ActionChange(_message.Message):
    __slots__ = ("rule", "action")
    RULE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    rule: int
    action: _rule_table_pb2.Action
    def __init__(self, rule: _Optional[int] = ..., action: _Optional[_Union[_rule_table_pb2.Action, _Mapping]] = ...) -> None: ...

class ActionChanges(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[ActionChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[ActionChange, _Mapping]]] = ...) -> None: ...

class Perturbation(_message.Message):
    __slots__ = ("seed", "scale", "bounds")
    SEED_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    seed: int
    scale: float
    bounds: ActionBounds
    def __init__(self, seed: _Optional[int] = ..., scale: _Optional[float] = ..., bounds: _Optional[_Union[ActionBounds, _Mapping]] = ...) -> None: ...

class ActionBounds(_message.Message):
    __slots__ = ("window_multiple_minimum", "window_multiple_maximum", "window_increment_minimum", "window_increment_maximum", "intersend_minimum_ms", "intersend_maximum_ms")
    WINDOW_MULTIPLE_MINIMUM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MULTIPLE_MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_MINIMUM_FIELD_NUMBER: _ClassVar[int]
    WINDOW_INCREMENT_MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_MINIMUM_MS_FIELD_NUMBER: _ClassVar[int]
    INTERSEND_MAXIMUM_MS_FIELD_NUMBER: _ClassVar[int]
    window_multiple_minimum: float
    window_multiple_maximum: float
    window_increment_minimum: float
    window_increment_maximum: float
    intersend_minimum_ms: float
    intersend_maximum_ms: float
    def __init__(self, window_multiple_minimum: _Optional[float] = ..., window_multiple_maximum: _Optional[float] = ..., window_increment_minimum: _Optional[float] = ..., window_increment_maximum: _Optional[float] = ..., intersend_minimum_ms: _Optional[float] = ..., intersend_maximum_ms: _Optional[float] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("actions", "perturbation")
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    PERTURBATION_FIELD_NUMBER: _ClassVar[int]
    actions: ActionChanges
    perturbation: Perturbation
    def __init__(self, actions: _Optional[_Union[ActionChanges, _Mapping]] = ..., perturbation: _Optional[_Union[Perturbation, _Mapping]] = ...) -> None: ...

class EvaluationRequest(_message.Message):
    __slots__ = ("tables", "candidates", "specimens", "duration_ms", "seed", "recording", "objective", "specimen_columns", "bounds", "traces", "distributions")
    TABLES_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    RECORDING_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    SPECIMEN_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[_rule_table_pb2.RuleTable]
    candidates: _containers.RepeatedCompositeFieldContainer[Candidate]
    specimens: _containers.RepeatedCompositeFieldContainer[Specimen]
    duration_ms: float
    seed: int
    recording: Recording
    objective: _spec_pb2.Objective
    specimen_columns: SpecimenColumns
    bounds: ActionBounds
    traces: _containers.RepeatedCompositeFieldContainer[Trace]
    distributions: bool
    def __init__(self, tables: _Optional[_Iterable[_Union[_rule_table_pb2.RuleTable, _Mapping]]] = ..., candidates: _Optional[_Iterable[_Union[Candidate, _Mapping]]] = ..., specimens: _Optional[_Iterable[_Union[Specimen, _Mapping]]] = ..., duration_ms: _Optional[float] = ..., seed: _Optional[int] = ..., recording: _Optional[_Union[Recording, str]] = ..., objective: _Optional[_Union[_spec_pb2.Objective, _Mapping]] = ..., specimen_columns: _Optional[_Union[SpecimenColumns, _Mapping]] = ..., bounds: _Optional[_Union[ActionBounds, _Mapping]] = ..., traces: _Optional[_Iterable[_Union[Trace, _Mapping]]] = ..., distributions: _Optional[bool] = ...) -> None: ...

class TransportColumns(_message.Message):
    __slots__ = ("packets_in_order", "packets_retransmitted", "packets_marked", "timeouts", "throughput_packets", "delay_samples", "flows", "flow_packets", "completion_ms", "sampled_rtt_ms", "sampled_rtt_over_time_ms", "rtt_histogram_sizes", "rtt_histogram_buckets", "rtt_histogram_counts")
    PACKETS_IN_ORDER_FIELD_NUMBER: _ClassVar[int]
    PACKETS_RETRANSMITTED_FIELD_NUMBER: _ClassVar[int]
    PACKETS_MARKED_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    THROUGHPUT_PACKETS_FIELD_NUMBER: _ClassVar[int]
    DELAY_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    FLOW_PACKETS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_MS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_RTT_MS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_RTT_OVER_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_HISTOGRAM_SIZES_FIELD_NUMBER: _ClassVar[int]
    RTT_HISTOGRAM_BUCKETS_FIELD_NUMBER: _ClassVar[int]
    RTT_HISTOGRAM_COUNTS_FIELD_NUMBER: _ClassVar[int]
    packets_in_order: _containers.RepeatedScalarFieldContainer[int]
    packets_retransmitted: _containers.RepeatedScalarFieldContainer[int]
    packets_marked: _containers.RepeatedScalarFieldContainer[int]
    timeouts: _containers.RepeatedScalarFieldContainer[int]
    throughput_packets: _containers.RepeatedScalarFieldContainer[int]
    delay_samples: _containers.RepeatedScalarFieldContainer[int]
    flows: _containers.RepeatedScalarFieldContainer[int]
    flow_packets: _containers.RepeatedScalarFieldContainer[int]
    completion_ms: bytes
    sampled_rtt_ms: bytes
    sampled_rtt_over_time_ms: bytes
    rtt_histogram_sizes: _containers.RepeatedScalarFieldContainer[int]
    rtt_histogram_buckets: _containers.RepeatedScalarFieldContainer[int]
    rtt_histogram_counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, packets_in_order: _Optional[_Iterable[int]] = ..., packets_retransmitted: _Optional[_Iterable[int]] = ..., packets_marked: _Optional[_Iterable[int]] = ..., timeouts: _Optional[_Iterable[int]] = ..., throughput_packets: _Optional[_Iterable[int]] = ..., delay_samples: _Optional[_Iterable[int]] = ..., flows: _Optional[_Iterable[int]] = ..., flow_packets: _Optional[_Iterable[int]] = ..., completion_ms: _Optional[bytes] = ..., sampled_rtt_ms: _Optional[bytes] = ..., sampled_rtt_over_time_ms: _Optional[bytes] = ..., rtt_histogram_sizes: _Optional[_Iterable[int]] = ..., rtt_histogram_buckets: _Optional[_Iterable[int]] = ..., rtt_histogram_counts: _Optional[_Iterable[int]] = ...) -> None: ...

class SpecimenOutcome(_message.Message):
    __slots__ = ("packets_received", "packets_sent", "packets_lost", "on_ms", "share_ms", "delay_sum_ms", "first_on_ms", "transport")
    PACKETS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    PACKETS_SENT_FIELD_NUMBER: _ClassVar[int]
    PACKETS_LOST_FIELD_NUMBER: _ClassVar[int]
    ON_MS_FIELD_NUMBER: _ClassVar[int]
    SHARE_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_SUM_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ON_MS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    packets_received: _containers.RepeatedScalarFieldContainer[int]
    packets_sent: _containers.RepeatedScalarFieldContainer[int]
    packets_lost: _containers.RepeatedScalarFieldContainer[int]
    on_ms: _containers.RepeatedScalarFieldContainer[float]
    share_ms: _containers.RepeatedScalarFieldContainer[float]
    delay_sum_ms: _containers.RepeatedScalarFieldContainer[float]
    first_on_ms: _containers.RepeatedScalarFieldContainer[float]
    transport: TransportColumns
    def __init__(self, packets_received: _Optional[_Iterable[int]] = ..., packets_sent: _Optional[_Iterable[int]] = ..., packets_lost: _Optional[_Iterable[int]] = ..., on_ms: _Optional[_Iterable[float]] = ..., share_ms: _Optional[_Iterable[float]] = ..., delay_sum_ms: _Optional[_Iterable[float]] = ..., first_on_ms: _Optional[_Iterable[float]] = ..., transport: _Optional[_Union[TransportColumns, _Mapping]] = ...) -> None: ...

class SenderColumns(_message.Message):
    __slots__ = ("packets_received", "packets_sent", "packets_lost", "on_ms", "share_ms", "delay_sum_ms", "first_on_ms", "transport")
    PACKETS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    PACKETS_SENT_FIELD_NUMBER: _ClassVar[int]
    PACKETS_LOST_FIELD_NUMBER: _ClassVar[int]
    ON_MS_FIELD_NUMBER: _ClassVar[int]
    SHARE_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_SUM_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ON_MS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    packets_received: _containers.RepeatedScalarFieldContainer[int]
    packets_sent: _containers.RepeatedScalarFieldContainer[int]
    packets_lost: _containers.RepeatedScalarFieldContainer[int]
    on_ms: bytes
    share_ms: bytes
    delay_sum_ms: bytes
    first_on_ms: bytes
    transport: TransportColumns
    def __init__(self, packets_received: _Optional[_Iterable[int]] = ..., packets_sent: _Optional[_Iterable[int]] = ..., packets_lost: _Optional[_Iterable[int]] = ..., on_ms: _Optional[bytes] = ..., share_ms: _Optional[bytes] = ..., delay_sum_ms: _Optional[bytes] = ..., first_on_ms: _Optional[bytes] = ..., transport: _Optional[_Union[TransportColumns, _Mapping]] = ...) -> None: ...

class MemoryColumns(_message.Message):
    __slots__ = ("places", "counts")
    PLACES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    places: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, places: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class EvaluationOutcome(_message.Message):
    __slots__ = ("packets_sent", "scores", "senders", "rule_uses", "used_rules", "memory")
    PACKETS_SENT_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    SENDERS_FIELD_NUMBER: _ClassVar[int]
    RULE_USES_FIELD_NUMBER: _ClassVar[int]
    USED_RULES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    packets_sent: _containers.RepeatedScalarFieldContainer[int]
    scores: bytes
    senders: SenderColumns
    rule_uses: _containers.RepeatedScalarFieldContainer[int]
    used_rules: bytes
    memory: MemoryColumns
    def __init__(self, packets_sent: _Optional[_Iterable[int]] = ..., scores: _Optional[bytes] = ..., senders: _Optional[_Union[SenderColumns, _Mapping]] = ..., rule_uses: _Optional[_Iterable[int]] = ..., used_rules: _Optional[bytes] = ..., memory: _Optional[_Union[MemoryColumns, _Mapping]] = ...) -> None: ...
