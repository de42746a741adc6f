"""Races between candidates (successive halving), and the compass steps that compete in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from remy_farm.designer import scoring
from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.search import CheckpointValue, scalar_fields
from remy_proto.v1 import checkpoint_pb2, progress_pb2, spec_pb2
from remy_simulator.messages import Action

# Compass steps: the neighbours of an action (Hooke and Jeeves 1961; Kolda et al. 2003)
#
# Steps are taken in the coordinates of docs/explanation/simulator.md. The first coordinate falls as
# the window multiple rises. Components that a step does not move keep every bit.

#: Sign of the step of each coordinate.
Direction = tuple[int, int, int]

WINDOW_MULTIPLE: Direction = (1, 0, 0)
WINDOW_INCREMENT: Direction = (0, 1, 0)
INTERSEND: Direction = (0, 0, 1)
#: Changes how fast a constant action reaches its window b / (1 - m), but not the window itself.
AGILITY: Direction = (1, 1, 0)
#: More packets per ACK with less time between them, or the reverse.
AGGRESSIVENESS: Direction = (0, 1, -1)

_DIRECTIONS = (WINDOW_MULTIPLE, WINDOW_INCREMENT, INTERSEND, AGILITY, AGGRESSIVENESS)


def neighbours(space: ActionSpace, action: Action, step: float) -> list[Action]:
    """Returns the actions at distance `step` from an action, both ways in each direction.

    Leaves out duplicates, and actions that the bounds keep at `action`.
    """
    actions: list[Action] = []
    for direction in _DIRECTIONS:
        for distance in (step, -step):
            neighbour = moved(space, action, direction, distance)
            if neighbour != action and neighbour not in actions:
                actions.append(neighbour)
    return actions


def moved(space: ActionSpace, action: Action, direction: Direction, distance: float) -> Action:
    """Returns the action at `distance` in a direction.

    An absolute increment is rounded to whole packets. If the direction moves it, it moves by at
    least one packet.
    """
    point = space.point(action)
    target = [value + sign * distance for value, sign in zip(point, direction, strict=True)]
    result = space.rounded_action(target)
    _, increment_sign, _ = direction
    if increment_sign and result.window_increment == action.window_increment:
        packet = 1.0 if increment_sign * distance > 0 else -1.0
        increment = space.whole_increment(action.window_increment + packet)
        result = result._replace(window_increment=increment)
    components = zip(direction, action, result, strict=True)
    return Action(*(new if sign else old for sign, old, new in components))


# Races: candidates against the unchanged table, in rounds of fresh specimens
#
# Differences are paired: a candidate and the unchanged table are simulated with common random
# numbers, so that most of the noise cancels. Rounds double in specimens while the number of
# candidates at least halves, so that most of the cost goes to the best ones (Hoeffding races, Maron
# and Moore 1994).

# Specimens of the first round; each later round has as many as all rounds before it.
_FIRST_ROUND = 4
# Standard errors by which a candidate may be behind the leader without being dropped.
_DROP_MARGIN = 1.0
# Standard errors that the winner's gain must exceed. The best of many candidates is partly the
# luckiest, so a gain above zero is not enough.
_MARGIN = 1.5
# Standard errors and specimens with which the leader wins before the last round.
_CLEAR_MARGIN = 3.0
_CLEAR_SPECIMENS = 16


@dataclass(frozen=True)
class RaceCandidate(CheckpointValue):
    """A candidate that is still in the race."""

    message = checkpoint_pb2.RaceCandidate

    #: Number of the candidate in the race.
    number: int
    #: Score minus the unchanged table's, on each specimen on which all candidates have a score.
    differences: tuple[float, ...] = ()

    @property
    def gain(self) -> progress_pb2.Estimate | None:
        """Mean difference to the unchanged table; None without any."""
        return scoring.estimate(self.differences)

    def has_gained(self, standard_errors: float) -> bool:
        """Tells whether the gain is more than this many standard errors above zero."""
        gain = self.gain
        return (
            gain is not None
            and gain.HasField("standard_error")
            and gain.mean > standard_errors * gain.standard_error
        )


@dataclass(frozen=True)
class Race(CheckpointValue):
    """The state of a race between two rounds."""

    message = checkpoint_pb2.Race

    #: Specimens so far.
    specimens: int = 0
    #: The remaining candidates.
    candidates: tuple[RaceCandidate, ...] = ()

    @classmethod
    def of(cls, candidates: int) -> Race:
        """Returns a race between `candidates` candidates, before its first round."""
        return cls(candidates=tuple(RaceCandidate(number) for number in range(candidates)))

    def next_specimens(self, search: spec_pb2.PatternSearch) -> int:
        """Returns the number of specimens of the next round."""
        specimens = self.specimens or _FIRST_ROUND
        return min(specimens, search.race_specimens - self.specimens)

    def after_round(self, scores: Sequence[Sequence[float | None]]) -> Race:
        """Returns the race after a round.

        `scores` holds scores by specimen: one row for the unchanged table, then one per candidate.
        """
        unchanged, *rows = scoring.paired(scores)
        candidates = tuple(
            replace(
                candidate,
                differences=(
                    *candidate.differences,
                    *(new - old for old, new in zip(unchanged, row, strict=True)),
                ),
            )
            for candidate, row in zip(self.candidates, rows, strict=True)
        )
        return Race(self.specimens + len(scores[0]), _remaining(candidates))

    def leader(self) -> RaceCandidate | None:
        """Returns the first candidate with the largest gain; None if no candidate has a gain."""
        with_gain = [(candidate.gain, candidate) for candidate in self.candidates]
        gains = [(gain.mean, candidate) for gain, candidate in with_gain if gain is not None]
        return max(gains, key=lambda pair: pair[0])[1] if gains else None

    def is_over(self, search: spec_pb2.PatternSearch) -> bool:
        """Tells whether the race needs no further round."""
        leader = self.leader()
        is_clear = (
            leader is not None
            and self.specimens >= _CLEAR_SPECIMENS
            and leader.has_gained(_CLEAR_MARGIN)
        )
        return not self.candidates or is_clear or self.specimens >= search.race_specimens

    def winner(self) -> RaceCandidate | None:
        """Returns the leader of a finished race if its gain is significant; None otherwise."""
        leader = self.leader()
        return leader if leader is not None and leader.has_gained(_MARGIN) else None

    @classmethod
    def from_message(cls, message: checkpoint_pb2.Race) -> Race:
        """Reads what `to_message` wrote."""
        candidates = tuple(
            RaceCandidate(**scalar_fields(candidate)) for candidate in message.candidates
        )
        return cls(message.specimens, candidates)


def _remaining(candidates: Sequence[RaceCandidate]) -> tuple[RaceCandidate, ...]:
    """Returns the candidates that stay in the race: at most the better half, ordered by gain.

    A candidate stays if its gain, plus `_DROP_MARGIN` standard errors, reaches the leader's gain
    and zero.
    """
    gains = [candidate.gain for candidate in candidates]
    if any(gain is None or not gain.HasField("standard_error") for gain in gains):
        return tuple(candidates)
    measured = [
        (gain, candidate) for gain, candidate in zip(gains, candidates, strict=True) if gain
    ]
    target = max([0.0, *(gain.mean for gain, _ in measured)])
    staying = [
        (gain.mean, candidate)
        for gain, candidate in measured
        if gain.mean + _DROP_MARGIN * gain.standard_error >= target
    ]
    staying.sort(key=lambda pair: -pair[0])
    half = (len(candidates) + 1) // 2
    return tuple(candidate for _, candidate in staying[:half])
