"""How often rules were looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remy_farm.v1 import evaluation_pb2


def total_uses(outcomes: Iterable[evaluation_pb2.SpecimenOutcome], rules: int) -> list[int]:
    """Look-ups of each of the table's `rules` on all specimens."""
    totals = [0] * rules
    for outcome in outcomes:
        for rule, uses in enumerate(outcome.rule_uses):
            totals[rule] += uses
    return totals


def by_use(uses: Sequence[int]) -> list[int]:
    """The rules that were used at all, most used first; of equals the lower number first."""
    used = [rule for rule, count in enumerate(uses) if count > 0]
    return sorted(used, key=lambda rule: (-uses[rule], rule))
