"""Races between candidates over rounds of fresh specimens, and compass steps to race."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from remy_farm.designer import scoring
from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.search import Saved, numbers
from remy_proto.v1 import checkpoint_pb2, progress_pb2, spec_pb2
from remy_simulator.messages import Action

# Steps from an action in the directions of a compass (Hooke and Jeeves 1961; Kolda et al. 2003)
#
# Steps are taken in the coordinates of docs/explanation/simulator.md, where the first falls as the
# window multiple rises. Components that a step does not move keep every bit.

Direction = tuple[int, int, int]

WINDOW_MULTIPLE: Direction = (1, 0, 0)
WINDOW_INCREMENT: Direction = (0, 1, 0)
INTERSEND: Direction = (0, 0, 1)
#: The window that a constant action settles at, b / (1 - m), stays, and is reached sooner or later.
AGILITY: Direction = (1, 1, 0)
#: More packets an ACK and less time between them, or the reverse.
EAGERNESS: Direction = (0, 1, -1)

_DIRECTIONS = (WINDOW_MULTIPLE, WINDOW_INCREMENT, INTERSEND, AGILITY, EAGERNESS)


def neighbours(space: ActionSpace, action: Action, step: float) -> list[Action]:
    """The actions at distance `step` from an action, both ways in each direction.

    Those that the bounds leave where they were are missing, and each is there once.
    """
    found: list[Action] = []
    for direction in _DIRECTIONS:
        for distance in (step, -step):
            neighbour = moved(space, action, direction, distance)
            if neighbour != action and neighbour not in found:
                found.append(neighbour)
    return found


def moved(space: ActionSpace, action: Action, direction: Direction, distance: float) -> Action:
    """The action `distance` away in a direction, its increment whole.

    An increment that moves at all moves by a packet at least.
    """
    point = space.point(action)
    goal = [place + way * distance for place, way in zip(point, direction, strict=True)]
    there = space.rounded_action(goal)
    _, way_of_increment, _ = direction
    if way_of_increment and there.window_increment == action.window_increment:
        packet = 1.0 if way_of_increment * distance > 0 else -1.0
        increment = space.whole_increment(action.window_increment + packet)
        there = there._replace(window_increment=increment)
    components = zip(direction, action, there, strict=True)
    return Action(*(new if way else old for way, old, new in components))


# Races: candidates against the unchanged table, over rounds of fresh specimens
#
# Differences are paired: a candidate and the unchanged table meet the same flows at the same times,
# so that most of the noise cancels. A round costs little while there are many candidates, and much
# only for the few that are left (Maron and Moore 1994).

# Specimens of the first round; each later one has as many as all before it.
_FIRST_ROUND = 4
# Standard errors that a candidate may lie behind and still run on.
_BENEFIT_OF_DOUBT = 1.0
# Standard errors that the winner must have gained: the best of many is partly the luckiest.
_MARGIN = 1.5
# With this many it has won before the last round, from this many specimens on.
_CLEAR_MARGIN = 3.0
_CLEAR_SPECIMENS = 16


@dataclass(frozen=True)
class Runner(Saved):
    """A candidate that is still in the race."""

    message = checkpoint_pb2.Runner

    #: Its number among the race's candidates.
    candidate: int
    #: Its score less the unchanged table's, on each specimen that all had a score on.
    differences: tuple[float, ...] = ()

    @property
    def gain(self) -> progress_pb2.Estimate | None:
        """Its mean difference; None while there is no difference."""
        return scoring.estimate(self.differences)

    def has_gained(self, standard_errors: float) -> bool:
        """Whether its gain is more than this many standard errors above zero."""
        gain = self.gain
        return (
            gain is not None
            and gain.HasField("standard_error")
            and gain.mean > standard_errors * gain.standard_error
        )


@dataclass(frozen=True)
class Race(Saved):
    """The state between two rounds."""

    message = checkpoint_pb2.Race

    #: Specimens so far.
    specimens: int = 0
    #: The candidates left, by number.
    runners: tuple[Runner, ...] = ()

    @classmethod
    def between(cls, candidates: int) -> Race:
        """A race between so many candidates, before its first round."""
        return cls(runners=tuple(Runner(number) for number in range(candidates)))

    def next_specimens(self, search: spec_pb2.PatternSearch) -> int:
        """Specimens of the next round."""
        wanted = self.specimens or _FIRST_ROUND
        return min(wanted, search.race_specimens - self.specimens)

    def after_round(self, scores: Sequence[Sequence[float | None]]) -> Race:
        """The race after a round.

        `scores` holds a row for the unchanged table and one for each runner, by specimen.
        """
        unchanged, *rows = scoring.paired(scores)
        runners = tuple(
            replace(
                runner,
                differences=(
                    *runner.differences,
                    *(new - old for old, new in zip(unchanged, row, strict=True)),
                ),
            )
            for runner, row in zip(self.runners, rows, strict=True)
        )
        return Race(self.specimens + len(scores[0]), _those_in_sight(runners))

    def leader(self) -> Runner | None:
        """The runner with the largest gain, of equals the first; None if there is none."""
        with_gain = [(runner.gain, runner) for runner in self.runners]
        gains = [(gain.mean, runner) for gain, runner in with_gain if gain is not None]
        return max(gains, key=lambda pair: pair[0])[1] if gains else None

    def is_over(self, search: spec_pb2.PatternSearch) -> bool:
        """Whether there is nothing to run for any more."""
        leader = self.leader()
        is_clear = (
            leader is not None
            and self.specimens >= _CLEAR_SPECIMENS
            and leader.has_gained(_CLEAR_MARGIN)
        )
        return not self.runners or is_clear or self.specimens >= search.race_specimens

    def winner(self) -> Runner | None:
        """Of a race that is over: who beats the unchanged table, and not by luck."""
        leader = self.leader()
        return leader if leader is not None and leader.has_gained(_MARGIN) else None

    @classmethod
    def from_message(cls, message: checkpoint_pb2.Race) -> Race:
        """The inverse."""
        runners = tuple(Runner(**numbers(runner)) for runner in message.runners)
        return cls(message.specimens, runners)


def _those_in_sight(runners: Sequence[Runner]) -> tuple[Runner, ...]:
    """Runners that may yet turn out the best, and better than the unchanged table: the better half
    at most, of equals the first."""
    gains = [runner.gain for runner in runners]
    if any(gain is None or not gain.HasField("standard_error") for gain in gains):
        return tuple(runners)
    measured = [(gain, runner) for gain, runner in zip(gains, runners, strict=True) if gain]
    target = max([0.0, *(gain.mean for gain, _ in measured)])
    hopeful = [
        (gain.mean, runner)
        for gain, runner in measured
        if gain.mean + _BENEFIT_OF_DOUBT * gain.standard_error >= target
    ]
    hopeful.sort(key=lambda pair: -pair[0])
    half = (len(runners) + 1) // 2
    return tuple(runner for _, runner in hopeful[:half])
