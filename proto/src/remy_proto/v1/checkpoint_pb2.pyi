from remy_proto.v1 import constraints_pb2 as _constraints_pb2
from remy_proto.v1 import evaluation_pb2 as _evaluation_pb2
from remy_proto.v1 import progress_pb2 as _progress_pb2
from remy_proto.v1 import rule_table_pb2 as _rule_table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SealedCheckpoint(_message.Message):
    __slots__ = ("format_version", "checkpoint", "sha256")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    checkpoint: bytes
    sha256: bytes
    def __init__(self, format_version: _Optional[int] = ..., checkpoint: _Optional[bytes] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("spec_digest", "simulator_version", "step", "event_sequence", "evaluations", "simulated_packets", "epochs", "closing", "simulator_digest", "worker_schedule", "replays_schedule", "paper", "joint", "pattern", "team")
    SPEC_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    EVENT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    SIMULATOR_DIGEST_FIELD_NUMBER: _ClassVar[int]
    WORKER_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    PAPER_FIELD_NUMBER: _ClassVar[int]
    JOINT_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    TEAM_FIELD_NUMBER: _ClassVar[int]
    spec_digest: str
    simulator_version: str
    step: int
    event_sequence: int
    evaluations: int
    simulated_packets: int
    epochs: _containers.RepeatedCompositeFieldContainer[_progress_pb2.EpochRecord]
    closing: Closing
    simulator_digest: str
    worker_schedule: _containers.RepeatedScalarFieldContainer[int]
    replays_schedule: bool
    paper: PaperSearchState
    joint: JointSearchState
    pattern: PatternSearchState
    team: TeamSearchState
    def __init__(self, spec_digest: _Optional[str] = ..., simulator_version: _Optional[str] = ..., step: _Optional[int] = ..., event_sequence: _Optional[int] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., epochs: _Optional[_Iterable[_Union[_progress_pb2.EpochRecord, _Mapping]]] = ..., closing: _Optional[_Union[Closing, _Mapping]] = ..., simulator_digest: _Optional[str] = ..., worker_schedule: _Optional[_Iterable[int]] = ..., replays_schedule: _Optional[bool] = ..., paper: _Optional[_Union[PaperSearchState, _Mapping]] = ..., joint: _Optional[_Union[JointSearchState, _Mapping]] = ..., pattern: _Optional[_Union[PatternSearchState, _Mapping]] = ..., team: _Optional[_Union[TeamSearchState, _Mapping]] = ...) -> None: ...

class Closing(_message.Message):
    __slots__ = ("reason", "finished", "comparison", "table", "companions")
    REASON_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COMPANIONS_FIELD_NUMBER: _ClassVar[int]
    reason: _progress_pb2.StopReason
    finished: bool
    comparison: _progress_pb2.Comparison
    table: _rule_table_pb2.RuleTable
    companions: _containers.RepeatedCompositeFieldContainer[_rule_table_pb2.RuleTable]
    def __init__(self, reason: _Optional[_Union[_progress_pb2.StopReason, str]] = ..., finished: _Optional[bool] = ..., comparison: _Optional[_Union[_progress_pb2.Comparison, _Mapping]] = ..., table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ..., companions: _Optional[_Iterable[_Union[_rule_table_pb2.RuleTable, _Mapping]]] = ...) -> None: ...

class TeamSearchState(_message.Message):
    __slots__ = ("members", "turn", "epoch", "scores")
    class Member(_message.Message):
        __slots__ = ("joint", "pattern")
        JOINT_FIELD_NUMBER: _ClassVar[int]
        PATTERN_FIELD_NUMBER: _ClassVar[int]
        joint: JointSearchState
        pattern: PatternSearchState
        def __init__(self, joint: _Optional[_Union[JointSearchState, _Mapping]] = ..., pattern: _Optional[_Union[PatternSearchState, _Mapping]] = ...) -> None: ...
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[TeamSearchState.Member]
    turn: int
    epoch: int
    scores: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, members: _Optional[_Iterable[_Union[TeamSearchState.Member, _Mapping]]] = ..., turn: _Optional[int] = ..., epoch: _Optional[int] = ..., scores: _Optional[_Iterable[float]] = ...) -> None: ...

class PaperSearchState(_message.Message):
    __slots__ = ("purpose", "epoch", "epoch_table", "changes", "rule_epochs", "rule", "visits", "evaluations", "simulated_packets")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_TABLE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RULE_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    VISITS_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    purpose: _progress_pb2.StepPurpose
    epoch: int
    epoch_table: _rule_table_pb2.RuleTable
    changes: _evaluation_pb2.ActionChanges
    rule_epochs: _containers.RepeatedScalarFieldContainer[int]
    rule: int
    visits: int
    evaluations: int
    simulated_packets: int
    def __init__(self, purpose: _Optional[_Union[_progress_pb2.StepPurpose, str]] = ..., epoch: _Optional[int] = ..., epoch_table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ..., changes: _Optional[_Union[_evaluation_pb2.ActionChanges, _Mapping]] = ..., rule_epochs: _Optional[_Iterable[int]] = ..., rule: _Optional[int] = ..., visits: _Optional[int] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ...) -> None: ...

class Climb(_message.Message):
    __slots__ = ("table", "coordinates", "average", "rule_slopes", "rule_squares", "region_slopes", "region_squares", "steps", "last_split", "rule_samples", "region_samples", "stalled_steps", "completed_steps", "tables_in_flight")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COORDINATES_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    RULE_SLOPES_FIELD_NUMBER: _ClassVar[int]
    RULE_SQUARES_FIELD_NUMBER: _ClassVar[int]
    REGION_SLOPES_FIELD_NUMBER: _ClassVar[int]
    REGION_SQUARES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LAST_SPLIT_FIELD_NUMBER: _ClassVar[int]
    RULE_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    REGION_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    STALLED_STEPS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_STEPS_FIELD_NUMBER: _ClassVar[int]
    TABLES_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    table: _rule_table_pb2.RuleTable
    coordinates: _containers.RepeatedScalarFieldContainer[float]
    average: _containers.RepeatedScalarFieldContainer[float]
    rule_slopes: _containers.RepeatedScalarFieldContainer[float]
    rule_squares: _containers.RepeatedScalarFieldContainer[float]
    region_slopes: _containers.RepeatedScalarFieldContainer[float]
    region_squares: _containers.RepeatedScalarFieldContainer[float]
    steps: int
    last_split: int
    rule_samples: _containers.RepeatedScalarFieldContainer[int]
    region_samples: _containers.RepeatedScalarFieldContainer[int]
    stalled_steps: int
    completed_steps: int
    tables_in_flight: _containers.RepeatedCompositeFieldContainer[_rule_table_pb2.RuleTable]
    def __init__(self, table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ..., coordinates: _Optional[_Iterable[float]] = ..., average: _Optional[_Iterable[float]] = ..., rule_slopes: _Optional[_Iterable[float]] = ..., rule_squares: _Optional[_Iterable[float]] = ..., region_slopes: _Optional[_Iterable[float]] = ..., region_squares: _Optional[_Iterable[float]] = ..., steps: _Optional[int] = ..., last_split: _Optional[int] = ..., rule_samples: _Optional[_Iterable[int]] = ..., region_samples: _Optional[_Iterable[int]] = ..., stalled_steps: _Optional[int] = ..., completed_steps: _Optional[int] = ..., tables_in_flight: _Optional[_Iterable[_Union[_rule_table_pb2.RuleTable, _Mapping]]] = ...) -> None: ...

class ValidatedTable(_message.Message):
    __slots__ = ("table", "scores")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    table: _rule_table_pb2.RuleTable
    scores: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ..., scores: _Optional[_Iterable[float]] = ...) -> None: ...

class JointSearchState(_message.Message):
    __slots__ = ("purpose", "epoch", "best", "start", "climb", "best_start", "best_start_score", "evaluations", "simulated_packets", "trials")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CLIMB_FIELD_NUMBER: _ClassVar[int]
    BEST_START_FIELD_NUMBER: _ClassVar[int]
    BEST_START_SCORE_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    purpose: _progress_pb2.StepPurpose
    epoch: int
    best: ValidatedTable
    start: int
    climb: Climb
    best_start: Climb
    best_start_score: float
    evaluations: int
    simulated_packets: int
    trials: _containers.RepeatedCompositeFieldContainer[SplitOnTrial]
    def __init__(self, purpose: _Optional[_Union[_progress_pb2.StepPurpose, str]] = ..., epoch: _Optional[int] = ..., best: _Optional[_Union[ValidatedTable, _Mapping]] = ..., start: _Optional[int] = ..., climb: _Optional[_Union[Climb, _Mapping]] = ..., best_start: _Optional[_Union[Climb, _Mapping]] = ..., best_start_score: _Optional[float] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ..., trials: _Optional[_Iterable[_Union[SplitOnTrial, _Mapping]]] = ...) -> None: ...

class SplitOnTrial(_message.Message):
    __slots__ = ("rule", "thresholds")
    RULE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    rule: int
    thresholds: _containers.RepeatedCompositeFieldContainer[_rule_table_pb2.Threshold]
    def __init__(self, rule: _Optional[int] = ..., thresholds: _Optional[_Iterable[_Union[_rule_table_pb2.Threshold, _Mapping]]] = ...) -> None: ...

class PatternTable(_message.Message):
    __slots__ = ("table", "steps")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    table: _rule_table_pb2.RuleTable
    steps: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, table: _Optional[_Union[_rule_table_pb2.RuleTable, _Mapping]] = ..., steps: _Optional[_Iterable[float]] = ...) -> None: ...

class RaceCandidate(_message.Message):
    __slots__ = ("number", "differences")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    number: int
    differences: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, number: _Optional[int] = ..., differences: _Optional[_Iterable[float]] = ...) -> None: ...

class Race(_message.Message):
    __slots__ = ("specimens", "candidates")
    SPECIMENS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    specimens: int
    candidates: _containers.RepeatedCompositeFieldContainer[RaceCandidate]
    def __init__(self, specimens: _Optional[int] = ..., candidates: _Optional[_Iterable[_Union[RaceCandidate, _Mapping]]] = ...) -> None: ...

class TrialSplit(_message.Message):
    __slots__ = ("rule", "threshold", "below", "above")
    RULE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    ABOVE_FIELD_NUMBER: _ClassVar[int]
    rule: int
    threshold: _rule_table_pb2.Threshold
    below: _rule_table_pb2.Action
    above: _rule_table_pb2.Action
    def __init__(self, rule: _Optional[int] = ..., threshold: _Optional[_Union[_rule_table_pb2.Threshold, _Mapping]] = ..., below: _Optional[_Union[_rule_table_pb2.Action, _Mapping]] = ..., above: _Optional[_Union[_rule_table_pb2.Action, _Mapping]] = ...) -> None: ...

class PatternSearchState(_message.Message):
    __slots__ = ("purpose", "epoch", "step", "current", "best", "best_steps", "queue", "visit_races", "races", "race", "splits", "epochs_since_split", "changed_rules", "evaluations", "simulated_packets")
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    BEST_STEPS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    VISIT_RACES_FIELD_NUMBER: _ClassVar[int]
    RACES_FIELD_NUMBER: _ClassVar[int]
    RACE_FIELD_NUMBER: _ClassVar[int]
    SPLITS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_SINCE_SPLIT_FIELD_NUMBER: _ClassVar[int]
    CHANGED_RULES_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_PACKETS_FIELD_NUMBER: _ClassVar[int]
    purpose: _progress_pb2.StepPurpose
    epoch: int
    step: int
    current: PatternTable
    best: ValidatedTable
    best_steps: _containers.RepeatedScalarFieldContainer[float]
    queue: _containers.RepeatedScalarFieldContainer[int]
    visit_races: int
    races: int
    race: Race
    splits: _containers.RepeatedCompositeFieldContainer[TrialSplit]
    epochs_since_split: int
    changed_rules: _containers.RepeatedScalarFieldContainer[int]
    evaluations: int
    simulated_packets: int
    def __init__(self, purpose: _Optional[_Union[_progress_pb2.StepPurpose, str]] = ..., epoch: _Optional[int] = ..., step: _Optional[int] = ..., current: _Optional[_Union[PatternTable, _Mapping]] = ..., best: _Optional[_Union[ValidatedTable, _Mapping]] = ..., best_steps: _Optional[_Iterable[float]] = ..., queue: _Optional[_Iterable[int]] = ..., visit_races: _Optional[int] = ..., races: _Optional[int] = ..., race: _Optional[_Union[Race, _Mapping]] = ..., splits: _Optional[_Iterable[_Union[TrialSplit, _Mapping]]] = ..., epochs_since_split: _Optional[int] = ..., changed_rules: _Optional[_Iterable[int]] = ..., evaluations: _Optional[int] = ..., simulated_packets: _Optional[int] = ...) -> None: ...
