"""Curves of searches: as a table, and when they pass a score."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from remy_services.report.trial import Estimate
from remy_services.yardstick.published import PublishedScore, best_groups
from remy_services.yardstick.score import GROUPS, YardstickScore, group_name
from remy_services.yardstick.search_run import CurvePoint


@dataclass(frozen=True)
class Passing:
    """When a search was above a score for the first time; None if it never was."""

    threshold: float
    cpu_seconds: float | None
    wall_seconds: float | None


@dataclass(frozen=True)
class SeedCurve:
    """One search: what it took in all, and its points by increasing time."""

    seed: int
    steps: int
    cpu_seconds: float
    wall_seconds: float
    points: tuple[CurvePoint, ...]

    @property
    def final(self) -> CurvePoint:
        """The table that the search ended with."""
        return self.points[-1]

    def first_passed(self, threshold: float) -> Passing:
        """When both the mean and the pooled mean of the published table were above `threshold`."""
        for point in self.points:
            mean, pooled = point.score.mean, point.score.pooled
            if mean and pooled and min(mean.mean, pooled.mean) > threshold:
                return Passing(threshold, point.cpu_seconds, point.wall_seconds)
        return Passing(threshold, None, None)


def groups_below(score: YardstickScore, published: tuple[PublishedScore, ...]) -> list[str]:
    """The numbers of senders for which a published table is better."""
    return [
        group_name(group)
        for group, ours, best in zip(GROUPS, score.groups, best_groups(published), strict=False)
        if ours is None or ours.mean < best
    ]


def score_tree(score: YardstickScore) -> dict[str, Any]:
    """A score as JSON."""
    return {
        **_estimate("mean", score.mean),
        **_estimate("pooled", score.pooled),
        "groups": [
            {
                "senders": group_name(group),
                "specimens": each.count if each else 0,
                **_estimate("mean", each),
            }
            for group, each in zip(GROUPS, score.groups, strict=True)
        ],
    }


def summary_tree(
    curve: SeedCurve, thresholds: Sequence[float], published: tuple[PublishedScore, ...]
) -> dict[str, Any]:
    """One search as JSON."""
    passings = [curve.first_passed(threshold) for threshold in thresholds]
    return {
        "seed": curve.seed,
        "cpu_seconds": curve.cpu_seconds,
        "wall_seconds": curve.wall_seconds,
        "steps": curve.steps,
        "rules": curve.final.rules,
        **score_tree(curve.final.score),
        "groups_below_the_best_published": groups_below(curve.final.score, published),
        "first_passed": [
            {
                "score": passing.threshold,
                "cpu_seconds": passing.cpu_seconds,
                "wall_seconds": passing.wall_seconds,
            }
            for passing in passings
        ],
    }


def to_csv(points: Iterable[CurvePoint]) -> str:
    """A line with the names of the columns, then one a point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ["mean", "pooled", *(f"senders_{group_name(group)}" for group in GROUPS)]
    writer.writerow(
        ["seed", "steps", "rules", "cpu_seconds", "wall_seconds"]
        + [column for name in names for column in (name, f"{name}_stderr")]
    )
    for point in points:
        score = point.score
        estimates = [score.mean, score.pooled, *score.groups]
        writer.writerow(
            [point.seed, point.steps, point.rules, point.cpu_seconds, point.wall_seconds]
            + [cell for each in estimates for cell in _cells(each)]
        )
    return text.getvalue()


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    return {
        name: estimate.mean if estimate else None,
        f"{name}_stderr": estimate.standard_error if estimate else None,
    }


def _cells(estimate: Estimate | None) -> tuple[float | None, float | None]:
    return (estimate.mean, estimate.standard_error) if estimate else (None, None)
