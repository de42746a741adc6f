"""A small design with made-up events, for tests of reports."""

from __future__ import annotations

from collections.abc import Iterator

import remy_simulator
from remy_farm.analysis.history import collect_history
from remy_farm.analysis.report import Gain, ReportContent, measure_gain
from remy_farm.specification import parse_spec, to_yaml
from remy_proto.v1 import progress_pb2, spec_pb2
from remy_simulator import RuleTable

FIRST = RuleTable([0, 2], [([], (1.0, 1.0, 3.0))])
FINAL = FIRST.split(0, [(0, 2.0), (2, 1.5)]).with_action(0, (0.8, 12.0, 0.9))


def small_spec(name: str = "small") -> spec_pb2.DesignSpec:
    return parse_spec(
        f"""
name: {name}
network:
  rate_mbps: 12
  rtt_ms: 100
  senders: {{integer_uniform: [1, 2]}}
  traffic: {{exponential_time: {{mean_ms: 1000}}, mean_off_ms: 500}}
signals: [send_ewma, rtt_ratio]
search: {{mode: paper, simulated_seconds: 3, paper: {{validation_specimens: 10}}}}
stop: {{epochs: 2}}
"""
    )


def small_gain() -> Gain:
    return measure_gain(small_spec(), [FIRST], [FINAL], evaluate=remy_simulator.evaluate_columns)


_PURPOSES = (
    progress_pb2.STEP_PURPOSE_COUNT_USES,
    progress_pb2.STEP_PURPOSE_IMPROVE,
    progress_pb2.STEP_PURPOSE_VALIDATE,
)


def small_events() -> list[progress_pb2.ProgressEvent]:
    """Returns the events of two epochs of three steps; the first is accepted and then split."""
    events = [event for epoch in (0, 1) for event in _epoch(epoch)]
    split = _at(step=3, epoch=0)
    split.rule_split.rules = 4
    events.insert(4, split)
    finished = _at(step=6, epoch=2)
    finished.design_finished.reason = progress_pb2.STOP_REASON_EPOCHS
    return [*events, finished]


def _epoch(epoch: int) -> Iterator[progress_pb2.ProgressEvent]:
    for step, purpose in enumerate(_PURPOSES, start=3 * epoch + 1):
        event = _at(step, epoch)
        done = event.step_finished
        done.purpose, done.rules, done.candidates, done.specimens = purpose, 1, 27, 16
        done.simulated_packets = 1000
        done.score.CopyFrom(_score(step))
        yield event
    event = _at(step, epoch)
    record = event.epoch_finished.record
    record.epoch, record.step, record.rules, record.rules_changed = epoch, step, 1, 1
    record.comparison.before.CopyFrom(_score(step - 3))
    record.comparison.after.CopyFrom(_score(step))
    record.comparison.gain.CopyFrom(_score(step))
    record.comparison.accepted = epoch == 0
    yield event


def _score(step: int) -> progress_pb2.Estimate:
    return progress_pb2.Estimate(mean=-5 + step / 4, standard_error=0.1, specimens=16)


def _at(step: int, epoch: int) -> progress_pb2.ProgressEvent:
    return progress_pb2.ProgressEvent(
        step=step, epoch=epoch, wall_seconds=step / 2, cpu_seconds=float(step)
    )


def small_content(name: str = "small") -> ReportContent:
    return ReportContent(
        name=name,
        spec_yaml=to_yaml(small_spec()),
        seed=1,
        versions={"remy-farm": "1.2.3"},
        history=collect_history(small_events()),
        table=FINAL,
        gain=small_gain(),
        files=("remycc.json", "remycc.dna"),
    )
