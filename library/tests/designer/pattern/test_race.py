"""Races: fresh specimens in doubling rounds, the better half at most, and no winner by luck."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.pattern.race import Race
from remy_proto.v1 import spec_pb2

_SEARCH = spec_pb2.PatternSearch(race_specimens=64)


def _run(gains: list[float], spread: float, seed: int) -> tuple[Race, list[tuple[int, int]]]:
    """A race between candidates of these true gains, and (runners, specimens) of its rounds."""
    draws = random.Random(seed)
    race = Race.between(len(gains))
    rounds = []
    while not race.is_over(_SEARCH):
        count = race.next_specimens(_SEARCH)
        rounds.append((len(race.runners), count))
        base = [draws.gauss(0, 1) for _ in range(count)]
        rows = [base] + [
            [score + draws.gauss(gains[runner.candidate], spread) for score in base]
            for runner in race.runners
        ]
        race = race.after_round(rows)
    return race, rounds


@given(st.integers(0, 10**6))
def test_rounds_double_and_at_most_half_of_the_runners_stay(seed: int) -> None:
    race, rounds = _run([0.0] * 10, 1.0, seed)
    specimens = [count for _, count in rounds]
    assert specimens == [4, 4, 8, 16, 32][: len(rounds)]
    assert race.specimens == sum(specimens)
    for (runners, _), (left, _) in itertools.pairwise(rounds):
        assert left <= (runners + 1) // 2


def test_a_limit_between_two_rounds_is_kept() -> None:
    search = spec_pb2.PatternSearch(race_specimens=11)
    race = Race.between(2)
    counts = []
    while not race.is_over(search):
        counts.append(race.next_specimens(search))
        noise = [1.0, -1.0] * counts[-1]
        scores = noise[: counts[-1]]
        race = race.after_round([[0.0] * counts[-1]] + [scores] * len(race.runners))
    assert counts == [4, 4, 3]
    assert race.winner() is None


def test_the_best_candidate_wins_by_its_paired_gain() -> None:
    """The specimens' own scores vary a hundred times as much as the candidates differ."""
    race, _ = _run([-0.01, 0.03, 0.01, -0.02], 0.01, seed=1)
    winner = race.winner()
    assert winner is not None
    assert winner.candidate == 1
    assert winner.gain is not None
    assert abs(winner.gain.mean - 0.03) < 0.01


def test_a_clear_winner_needs_no_more_rounds() -> None:
    race, rounds = _run([1.0, -1.0], 0.01, seed=1)
    assert race.winner() is not None
    assert sum(count for _, count in rounds) == 16


def test_losers_are_dropped_after_the_first_round() -> None:
    race, rounds = _run([-1.0] * 10, 0.1, seed=1)
    assert rounds == [(10, 4)]
    assert race.runners == ()
    assert race.leader() is race.winner() is None


def test_luck_seldom_wins() -> None:
    """Ten candidates without any gain, 200 times: the best of them is usually above zero."""
    ends = [_run([0.0] * 10, 1.0, seed)[0] for seed in range(200)]
    wins = sum(race.winner() is not None for race in ends)
    leads = sum(race.leader() is not None for race in ends)
    assert wins < 0.45 * 200
    assert wins < 0.8 * leads


def test_a_specimen_without_a_score_under_one_counts_for_none() -> None:
    race = Race.between(2).after_round(
        [[0.0, 0.0, 0.0, 0.0], [1.0, None, 1.0, 2.0], [1.0, 9.0, 1.5, 1.0]]
    )
    by_number = {runner.candidate: runner.differences for runner in race.runners}
    assert by_number == {0: (1.0, 1.0, 2.0)}
    assert race.specimens == 4


def test_without_scores_nobody_leaves_and_nobody_wins() -> None:
    race = Race.between(3)
    while not race.is_over(_SEARCH):
        race = race.after_round([[None] * race.next_specimens(_SEARCH)] * 4)
    assert len(race.runners) == 3
    assert race.specimens == 64
    assert race.winner() is None


@given(st.integers(0, 10**6))
def test_a_race_survives_its_message(seed: int) -> None:
    race, _ = _run([0.0] * 5, 1.0, seed)
    assert Race.from_message(race.to_message()) == race
