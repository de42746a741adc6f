"""A second, simple implementation of the paper's search, to check the designer against.

It follows section 4.3 from top to bottom, in plain loops that call an evaluator. It shares only the
names of the random streams with the designer, and the simulator's table and score.
"""

from __future__ import annotations

from decimal import Decimal
from math import inf, isnan, nan
from statistics import fmean

import remy_simulator
from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from remy_farm.specification import Networks
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of, from_native

Action = tuple[float, float, float]

_BUCKETS = 1538


class SecondSearch:
    """The paper's search as a program that calls its evaluator."""

    def __init__(self, spec: spec_pb2.DesignSpec, evaluator: AnalyticEvaluator) -> None:
        self.spec = spec
        self.evaluator = evaluator

    def run(self, epochs: int) -> tuple[RuleTable, list[tuple[float, float, bool]]]:
        """Returns the table after `epochs` epochs, and (score before, after, accepted) of each."""
        paper = self.spec.search.paper
        axes = [axis_of(signal) for signal in self.spec.signals]
        first = (
            paper.window_multiple.initial,
            paper.window_increment.initial,
            paper.intersend_ms.initial,
        )
        table = RuleTable(axes, [([], first)])
        history = []
        for epoch in range(epochs):
            before, table = table, self.improve_all(table, epoch)
            old, new = self.scores(
                [before, table], progress_pb2.STEP_PURPOSE_VALIDATE, self.path, validation=True
            )
            accepted = fmean([b - a for a, b in zip(old, new, strict=True)]) > 0
            history.append((fmean(old), fmean(new), accepted))
            if not accepted:
                table = before
            if (epoch + 1) % paper.epochs_per_split == 0 and epoch + 1 < epochs:
                table = self.split(table, epoch + 1)
        return table, history

    def improve_all(self, table: RuleTable, epoch: int) -> RuleTable:
        done: list[int] = []
        while True:
            self.path = (epoch, len(done))
            uses = self.uses(table, progress_pb2.STEP_PURPOSE_COUNT_USES, self.path)
            rule, most = -1, 0
            for number, count in enumerate(uses):
                if number not in done and count > most:
                    rule, most = number, count
            if rule < 0:
                return table
            done.append(rule)
            table = self.improve(table, rule, (epoch, len(done)))

    def improve(self, table: RuleTable, rule: int, path: tuple[int, ...]) -> RuleTable:
        while True:
            tables = [table]
            for action in every_action(self.spec.search.paper, table.action(rule)):
                tables.append(table.with_action(rule, action))
            rows = self.scores(tables, progress_pb2.STEP_PURPOSE_IMPROVE, path)
            best, best_score = 0, -inf
            for number, row in enumerate(rows):
                if fmean(row) > best_score:
                    best, best_score = number, fmean(row)
            if best == 0:
                return table
            table = tables[best]

    def split(self, table: RuleTable, epoch: int) -> RuleTable:
        outcome = self.evaluate(
            table, progress_pb2.STEP_PURPOSE_SPLIT, (epoch,), evaluation_pb2.RECORDING_MEMORY
        )
        rule = list(outcome.rule_uses).index(max(outcome.rule_uses))
        lower, upper = table.region(rule)
        point = []
        for axis in table.signals:
            median = self.median(outcome, rule, axis)
            if not lower[axis] < median < upper[axis]:
                median = (lower[axis] + upper[axis]) / 2
            point.append((axis, median))
        return table.split(rule, point)

    def median(self, outcome: evaluation_pb2.EvaluationOutcome, rule: int, axis: int) -> float:
        values: list[int] = []
        index = 0
        for delta, count in zip(outcome.memory.places, outcome.memory.counts, strict=True):
            index += delta
            if index // _BUCKETS == 4 * rule + axis:
                values.extend([index % _BUCKETS] * count)
        buckets = sorted(set(values))
        counts = [values.count(bucket) for bucket in buckets]
        return remy_simulator.summary_median(axis, buckets, counts) if values else nan

    def uses(
        self, table: RuleTable, purpose: progress_pb2.StepPurpose, path: tuple[int, ...]
    ) -> list[int]:
        outcome = self.evaluate(table, purpose, path, evaluation_pb2.RECORDING_USES)
        return list(outcome.rule_uses)

    def scores(
        self,
        tables: list[RuleTable],
        purpose: progress_pb2.StepPurpose,
        path: tuple[int, ...],
        validation: bool = False,
    ) -> list[list[float]]:
        """Returns the scores of each table on the specimens on which all tables have one."""
        count = self.spec.search.specimens
        if validation:
            count = self.spec.search.paper.validation_specimens
        rows = []
        for table in tables:
            outcome = self.evaluate(table, purpose, path, count=count)
            rows.append(memoryview(outcome.scores).cast("d").tolist())
        kept = [number for number in range(count) if not any(isnan(row[number]) for row in rows)]
        return [[row[number] for number in kept] for row in rows]

    def evaluate(
        self,
        table: RuleTable,
        purpose: progress_pb2.StepPurpose,
        path: tuple[int, ...],
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
        count: int | None = None,
    ) -> evaluation_pb2.EvaluationOutcome:
        """Evaluates a whole table, not a change of one."""
        search, seed, mix = self.spec.search, self.spec.search.seed, remy_simulator.mix
        request = evaluation_pb2.EvaluationRequest(
            tables=[from_native(table)],
            candidates=[evaluation_pb2.Candidate()],
            specimen_columns=Networks(self.spec).draw(
                seed=mix(seed, purpose, *path, 1), count=count or search.specimens
            ),
            duration_ms=search.simulated_seconds * 1000,
            seed=mix(seed, purpose, *path, 0),
            recording=recording,
            objective=self.spec.objective,
        )
        return self.evaluator.evaluate(request)


def every_action(paper: spec_pb2.PaperSearch, current: Action) -> list[Action]:
    """Returns all actions around `current`, in order, computed in decimal arithmetic."""
    actions = []
    for multiple in _values(paper.window_multiple, current[0], whole=False):
        for increment in _values(paper.window_increment, current[1], whole=True):
            for intersend_ms in _values(paper.intersend_ms, current[2], whole=False):
                action = (multiple, increment, intersend_ms)
                if action != current and action not in actions:
                    actions.append(action)
    return actions


def _values(grid: spec_pb2.ActionGrid, current: float, *, whole: bool) -> list[float]:
    centre = Decimal(str(current))
    values = [centre]
    for power in range(grid.steps):
        step = Decimal(str(grid.first_step)) * Decimal(str(grid.factor)) ** power
        for value in (centre - step, centre + step):
            rounded = round(value, 0) if whole else round(value, 12)
            if Decimal(str(grid.minimum)) <= rounded <= Decimal(str(grid.maximum)):
                values.append(rounded)
    unique: list[float] = []
    for value in sorted(values):
        if float(value) not in unique:
            unique.append(float(value))
    return unique
