from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from remy_proto.v1 import rule_table_pb2 as _rule_table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StepPurpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_PURPOSE_UNSPECIFIED: _ClassVar[StepPurpose]
    STEP_PURPOSE_COUNT_USES: _ClassVar[StepPurpose]
    STEP_PURPOSE_IMPROVE: _ClassVar[StepPurpose]
    STEP_PURPOSE_VALIDATE: _ClassVar[StepPurpose]
    STEP_PURPOSE_SPLIT: _ClassVar[StepPurpose]
    STEP_PURPOSE_CLOSE: _ClassVar[StepPurpose]
    STEP_PURPOSE_CLIMB: _ClassVar[StepPurpose]
    STEP_PURPOSE_TRY_SPLITS: _ClassVar[StepPurpose]
    STEP_PURPOSE_MERGE: _ClassVar[StepPurpose]

class StopReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STOP_REASON_UNSPECIFIED: _ClassVar[StopReason]
    STOP_REASON_EPOCHS: _ClassVar[StopReason]
    STOP_REASON_RULES: _ClassVar[StopReason]
    STOP_REASON_STEPS: _ClassVar[StopReason]
    STOP_REASON_CPU_SECONDS: _ClassVar[StopReason]
    STOP_REASON_WALL_SECONDS: _ClassVar[StopReason]
    STOP_REASON_EPOCHS_WITHOUT_GAIN: _ClassVar[StopReason]
    STOP_REASON_CANCELLED: _ClassVar[StopReason]
    STOP_REASON_SCHEDULE_COMPLETE: _ClassVar[StopReason]
    STOP_REASON_EVALUATED: _ClassVar[StopReason]
STEP_PURPOSE_UNSPECIFIED: StepPurpose
STEP_PURPOSE_COUNT_USES: StepPurpose
STEP_PURPOSE_IMPROVE: StepPurpose
STEP_PURPOSE_VALIDATE: StepPurpose
STEP_PURPOSE_SPLIT: StepPurpose
STEP_PURPOSE_CLOSE: StepPurpose
STEP_PURPOSE_CLIMB: StepPurpose
STEP_PURPOSE_TRY_SPLITS: StepPurpose
STEP_PURPOSE_MERGE: StepPurpose
STOP_REASON_UNSPECIFIED: StopReason
STOP_REASON_EPOCHS: StopReason
STOP_REASON_RULES: StopReason
STOP_REASON_STEPS: StopReason
STOP_REASON_CPU_SECONDS: StopReason
STOP_REASON_WALL_SECONDS: StopReason
STOP_REASON_EPOCHS_WITHOUT_GAIN: StopReason
STOP_REASON_CANCELLED: StopReason
STOP_REASON_SCHEDULE_COMPLETE: StopReason
STOP_REASON_EVALUATED: StopReason

class Estimate(_message.Message):
    __slots__ = ("mean", "standard_error", "specimens")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    mean: float
    standard_error: float
    specimens: int
    def __init__(self, mean: _Optional[float] = ..., standard_error: _Optional[float] = ..., specimens: _Optional[int] = ...) -> None: ...

class Comparison(_message.Message):
    __slots__ = ("before", "after", "gain", "accepted")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    before: Estimate
    after: Estimate
    gain: Estimate
    accepted: bool
    def __init__(self, before: _Optional[_Union[Estimate, _Mapping]] = ..., after: _Optional[_Union[Estimate, _Mapping]] = ..., gain: _Optional[_Union[Estimate, _Mapping]] = ..., accepted: _Optional[bool] = ...) -> None: ...

class StepFinished(_message.Message):
    __slots__ = ("purpose", "rules", "candidates", "specimens", "simulated_packets", "score", "gain")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    purpose: StepPurpose
    rules: int
    candidates: int
    specimens: int
    simulated_packets: int
    score: Estimate
    gain: Estimate
    def __init__(self, purpose: _Optional[_Union[StepPurpose, str]] = ..., rules: _Optional[int] = ..., candidates: _Optional[int] = ..., specimens: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., score: _Optional[_Union[Estimate, _Mapping]] = ..., gain: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class RuleChosen(_message.Message):
    __slots__ = ("rule", "uses", "uses_of_all_rules")
    RULE_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    USES_OF_ALL_RULES_FIELD_NUMBER: _ClassVar[int]
    rule: int
    uses: int
    uses_of_all_rules: int
    def __init__(self, rule: _Optional[int] = ..., uses: _Optional[int] = ..., uses_of_all_rules: _Optional[int] = ...) -> None: ...

class RuleImproved(_message.Message):
    __slots__ = ("rule", "before", "after", "gain")
    RULE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    rule: int
    before: _rule_table_pb2.Action
    after: _rule_table_pb2.Action
    gain: Estimate
    def __init__(self, rule: _Optional[int] = ..., before: _Optional[_Union[_rule_table_pb2.Action, _Mapping]] = ..., after: _Optional[_Union[_rule_table_pb2.Action, _Mapping]] = ..., gain: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class RuleSplit(_message.Message):
    __slots__ = ("rule", "thresholds", "rules")
    RULE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    rule: int
    thresholds: _containers.RepeatedCompositeFieldContainer[_rule_table_pb2.Threshold]
    rules: int
    def __init__(self, rule: _Optional[int] = ..., thresholds: _Optional[_Iterable[_Union[_rule_table_pb2.Threshold, _Mapping]]] = ..., rules: _Optional[int] = ...) -> None: ...

class RulesMerged(_message.Message):
    __slots__ = ("pairs", "rules")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    pairs: int
    rules: int
    def __init__(self, pairs: _Optional[int] = ..., rules: _Optional[int] = ...) -> None: ...

class ClimbRested(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: int
    def __init__(self, steps: _Optional[int] = ...) -> None: ...

class EpochRecord(_message.Message):
    __slots__ = ("epoch", "step", "rules", "rules_changed", "comparison", "evaluations", "simulated_packets", "start")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    RULES_CHANGED_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    step: int
    rules: int
    rules_changed: int
    comparison: Comparison
    evaluations: int
    simulated_packets: int
    start: int
    def __init__(self, epoch: _Optional[int] = ..., step: _Optional[int] = ..., rules: _Optional[int] = ..., rules_changed: _Optional[int] = ..., comparison: _Optional[_Union[Comparison, _Mapping]] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., start: _Optional[int] = ...) -> None: ...

class EpochFinished(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: EpochRecord
    def __init__(self, record: _Optional[_Union[EpochRecord, _Mapping]] = ...) -> None: ...

class DesignFinished(_message.Message):
    __slots__ = ("reason", "epochs", "rules", "evaluations", "simulated_packets", "closing")
    REASON_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    reason: StopReason
    epochs: int
    rules: int
    evaluations: int
    simulated_packets: int
    closing: Comparison
    def __init__(self, reason: _Optional[_Union[StopReason, str]] = ..., epochs: _Optional[int] = ..., rules: _Optional[int] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., closing: _Optional[_Union[Comparison, _Mapping]] = ...) -> None: ...

class ProgressEvent(_message.Message):
    __slots__ = ("sequence", "step", "epoch", "wall_seconds", "cpu_seconds", "step_finished", "rule_chosen", "rule_improved", "rule_split", "epoch_finished", "design_finished", "climb_rested", "rules_merged")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WALL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEP_FINISHED_FIELD_NUMBER: _ClassVar[int]
    RULE_CHOSEN_FIELD_NUMBER: _ClassVar[int]
    RULE_IMPROVED_FIELD_NUMBER: _ClassVar[int]
    RULE_SPLIT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FINISHED_FIELD_NUMBER: _ClassVar[int]
    DESIGN_FINISHED_FIELD_NUMBER: _ClassVar[int]
    CLIMB_RESTED_FIELD_NUMBER: _ClassVar[int]
    RULES_MERGED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    step: int
    epoch: int
    wall_seconds: float
    cpu_seconds: float
    step_finished: StepFinished
    rule_chosen: RuleChosen
    rule_improved: RuleImproved
    rule_split: RuleSplit
    epoch_finished: EpochFinished
    design_finished: DesignFinished
    climb_rested: ClimbRested
    rules_merged: RulesMerged
    def __init__(self, sequence: _Optional[int] = ..., step: _Optional[int] = ..., epoch: _Optional[int] = ..., wall_seconds: _Optional[float] = ..., cpu_seconds: _Optional[float] = ..., step_finished: _Optional[_Union[StepFinished, _Mapping]] = ..., rule_chosen: _Optional[_Union[RuleChosen, _Mapping]] = ..., rule_improved: _Optional[_Union[RuleImproved, _Mapping]] = ..., rule_split: _Optional[_Union[RuleSplit, _Mapping]] = ..., epoch_finished: _Optional[_Union[EpochFinished, _Mapping]] = ..., design_finished: _Optional[_Union[DesignFinished, _Mapping]] = ..., climb_rested: _Optional[_Union[ClimbRested, _Mapping]] = ..., rules_merged: _Optional[_Union[RulesMerged, _Mapping]] = ...) -> None: ...

class JobProgress(_message.Message):
    __slots__ = ("epoch", "rules", "step", "candidates", "candidates_done", "score", "epoch_gain", "evaluations", "simulated_packets", "evaluations_per_second", "packets_per_second", "cpu_seconds", "wall_seconds", "estimated_cost", "eta_seconds", "recoveries", "workers", "share_done", "epochs_without_gain", "validated_score", "resting_steps")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_DONE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_GAIN_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    PACKETS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WALL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_COST_FIELD_NUMBER: _ClassVar[int]
    ETA_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RECOVERIES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SHARE_DONE_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_WITHOUT_GAIN_FIELD_NUMBER: _ClassVar[int]
    VALIDATED_SCORE_FIELD_NUMBER: _ClassVar[int]
    RESTING_STEPS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    rules: int
    step: int
    candidates: int
    candidates_done: int
    score: Estimate
    epoch_gain: Estimate
    evaluations: int
    simulated_packets: int
    evaluations_per_second: float
    packets_per_second: float
    cpu_seconds: float
    wall_seconds: float
    estimated_cost: float
    eta_seconds: float
    recoveries: int
    workers: int
    share_done: float
    epochs_without_gain: int
    validated_score: Estimate
    resting_steps: int
    def __init__(self, epoch: _Optional[int] = ..., rules: _Optional[int] = ..., step: _Optional[int] = ..., candidates: _Optional[int] = ..., candidates_done: _Optional[int] = ..., score: _Optional[_Union[Estimate, _Mapping]] = ..., epoch_gain: _Optional[_Union[Estimate, _Mapping]] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., evaluations_per_second: _Optional[float] = ..., packets_per_second: _Optional[float] = ..., cpu_seconds: _Optional[float] = ..., wall_seconds: _Optional[float] = ..., estimated_cost: _Optional[float] = ..., eta_seconds: _Optional[float] = ..., recoveries: _Optional[int] = ..., workers: _Optional[int] = ..., share_done: _Optional[float] = ..., epochs_without_gain: _Optional[int] = ..., validated_score: _Optional[_Union[Estimate, _Mapping]] = ..., resting_steps: _Optional[int] = ...) -> None: ...

class ThroughputDelay(_message.Message):
    __slots__ = ("throughput_over_link_rate_median", "throughput_over_link_rate_mean", "delay_over_rtt_median", "delay_over_rtt_mean", "loss_mean")
    THROUGHPUT_OVER_LINK_RATE_MEDIAN_FIELD_NUMBER: _ClassVar[int]
    THROUGHPUT_OVER_LINK_RATE_MEAN_FIELD_NUMBER: _ClassVar[int]
    DELAY_OVER_RTT_MEDIAN_FIELD_NUMBER: _ClassVar[int]
    DELAY_OVER_RTT_MEAN_FIELD_NUMBER: _ClassVar[int]
    LOSS_MEAN_FIELD_NUMBER: _ClassVar[int]
    throughput_over_link_rate_median: float
    throughput_over_link_rate_mean: float
    delay_over_rtt_median: float
    delay_over_rtt_mean: float
    loss_mean: float
    def __init__(self, throughput_over_link_rate_median: _Optional[float] = ..., throughput_over_link_rate_mean: _Optional[float] = ..., delay_over_rtt_median: _Optional[float] = ..., delay_over_rtt_mean: _Optional[float] = ..., loss_mean: _Optional[float] = ...) -> None: ...
