"""Whether a result can be what a task came to: intact, of the right shape, and possible."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from remy_farm.v1 import evaluation_pb2, rule_table_pb2
from remy_services.evaluation.tasks import Task as Slice

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
    """Raises ImpossibleResult for what no simulation of the slice can come to.

    There is one result for every simulation of the whole fleet, hence no loop over senders but the
    built-in ones, and those over the senders of all results together.
    """
    if len(outcome.outcomes) != task.simulations:
        raise ImpossibleResult(
            f"the result holds {len(outcome.outcomes)} outcomes; the task has {task.simulations}"
        )
    together = _Columns()
    rules = _rules(whole.tables[0]) if whole.recording and whole.tables else 0
    specimens = [whole.specimens[number] for number in task.specimens]
    senders = [sum(group.count for group in specimen.senders) for specimen in specimens]
    for number, result in enumerate(outcome.outcomes):
        place = number % len(senders)
        if not together.add(result, senders[place]):
            raise ImpossibleResult(
                f"the outcome on specimen {specimens[place].key} does not hold one entry for each "
                f"of {senders[place]} senders"
            )
        if len(result.rule_uses) != rules:
            raise ImpossibleResult(
                f"the outcome on specimen {specimens[place].key} counts uses of "
                f"{len(result.rule_uses)} rules, not {rules}"
            )
    problem = together.problem(whole.duration_ms * _TOLERANCE)
    if problem is not None:
        raise ImpossibleResult(f"an outcome {problem}")


class _Columns:
    """What happened to all senders of all results of a task."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._sent: list[int] = []
        self._lost: list[int] = []
        self._on: list[float] = []
        self._share: list[float] = []
        self._first_on: list[float] = []
        self._delays: list[float] = []

    def add(self, result: evaluation_pb2.SpecimenOutcome, senders: int) -> bool:
        """Takes a result in; whether it has one entry for each of its senders."""
        received, sent, lost = (
            result.packets_received[:],
            result.packets_sent[:],
            result.packets_lost[:],
        )
        on, share, first_on = result.on_ms[:], result.share_ms[:], result.first_on_ms[:]
        delays = result.delay_sum_ms[:]
        self._received += received
        self._sent += sent
        self._lost += lost
        self._on += on
        self._share += share
        self._first_on += first_on
        self._delays += delays
        return (
            len(received) == senders
            and len(sent) == senders
            and len(lost) == senders
            and len(on) == senders
            and len(share) == senders
            and len(first_on) == senders
            and len(delays) == senders
        )

    def problem(self, longest_ms: float) -> str | None:
        """What is wrong with a sender; None if nothing is."""
        if any(map(operator.gt, self._received, self._sent)):
            return "has more packets received than sent"
        if any(map(operator.gt, self._lost, self._sent)):
            return "has more packets lost than sent"
        times = ((self._on, longest_ms), (self._share, longest_ms), (self._first_on, longest_ms))
        for values, longest in (*times, (self._delays, _LARGEST_DELAY_MS)):
            if not _within(values, longest):
                return "has a time that is not between 0 and what is possible"
        if any(map(operator.gt, self._share, self._on)) and any(
            part > whole * _TOLERANCE for part, whole in zip(self._share, self._on, strict=True)
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
