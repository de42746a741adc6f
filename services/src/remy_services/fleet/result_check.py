"""Whether a result can be what a task came to: intact, of the right shape, and possible."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from remy_farm.v1 import evaluation_pb2, rule_table_pb2
from remy_services.evaluation.partition import Task as Slice

# Sums of times may exceed their bound by rounding errors.
_TOLERANCE = 1 + 1e-9
# The longest that a packet can be under way: not a bound of the simulator, but of sanity.
_LARGEST_DELAY_MS = 1e15


class DamagedResult(Exception):
    """The result is not what its sender computed. In a word or two, for counting."""


class ImpossibleResult(Exception):
    """The result is intact and cannot be right. One sentence."""


def check_result(
    whole: evaluation_pb2.EvaluationRequest, task: Slice, outcome: bytes, sha256: bytes
) -> evaluation_pb2.EvaluationOutcome:
    """The outcome of a slice of a request, as a message.

    Raises DamagedResult and ImpossibleResult.
    """
    if hashlib.sha256(outcome).digest() != sha256:
        raise DamagedResult("digest")
    try:
        message = evaluation_pb2.EvaluationOutcome.FromString(outcome)
    except DecodeError:
        raise DamagedResult("encoding") from None
    check_outcome(whole, task, message)
    return message


def check_outcome(
    whole: evaluation_pb2.EvaluationRequest,
    task: Slice,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> None:
    """Raises ImpossibleResult for what no simulation of the slice can come to."""
    results = outcome.outcomes
    if len(results) != task.simulations:
        raise ImpossibleResult(
            f"the result holds {len(results)} outcomes; the task has {task.simulations}"
        )
    specimens = [
        (whole.specimens[number], sum(group.count for group in whole.specimens[number].senders))
        for number in task.specimens
    ]
    rules = _rules(whole.tables[0]) if whole.recording and whole.tables else 0
    longest_ms = whole.duration_ms * _TOLERANCE
    for number, result in enumerate(results):
        specimen, senders = specimens[number % len(specimens)]
        problem = _problem(result, senders, longest_ms)
        if problem is None and len(result.rule_uses) != rules:
            problem = f"counts uses of {len(result.rule_uses)} rules, not {rules}"
        if problem is not None:
            raise ImpossibleResult(f"the outcome on specimen {specimen.key} {problem}")


def _problem(result: evaluation_pb2.SpecimenOutcome, senders: int, longest_ms: float) -> str | None:
    """What is wrong with one outcome; None if nothing is.

    There is one call for every simulation of the whole fleet, hence no loops but the built-in ones,
    on lists, which they are faster on.
    """
    received, sent, lost = (
        result.packets_received[:],
        result.packets_sent[:],
        result.packets_lost[:],
    )
    on, share, first_on = result.on_ms[:], result.share_ms[:], result.first_on_ms[:]
    delays = result.delay_sum_ms[:]
    counts, times = (received, sent, lost), (on, share, first_on, delays)
    lengths = {len(each) for each in counts} | {len(each) for each in times}
    if lengths != {senders}:
        return f"does not hold one entry for each of {senders} senders"
    if any(map(operator.gt, received, sent)):
        return "has more packets received than sent"
    if any(map(operator.gt, lost, sent)):
        return "has more packets lost than sent"
    if not (_within(on + share + first_on, longest_ms) and _within(delays, _LARGEST_DELAY_MS)):
        return "has a time that is not between 0 and what is possible"
    if any(map(operator.gt, share, on)) and any(
        part > whole * _TOLERANCE for part, whole in zip(share, on, strict=True)
    ):
        return "has a sender with a larger share of the time than it was on"
    return None


def _within(values: Sequence[float], longest: float) -> bool:
    # A sum that is not a number has a term that is none, or has infinite terms.
    return not values or (
        min(values) >= 0.0 and max(values) <= longest and not math.isnan(sum(values))
    )


def _rules(table: rule_table_pb2.RuleTable) -> int:
    return sum(node.HasField("action") for node in table.nodes)
