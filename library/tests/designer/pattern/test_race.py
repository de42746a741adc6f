"""Tests races: rounds double, at most half of the candidates stay, noise alone seldom wins."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.pattern.race import Race
from remy_proto.v1 import spec_pb2

_SEARCH = spec_pb2.PatternSearch(race_specimens=64)


def _run(gains: list[float], spread: float, seed: int) -> tuple[Race, list[tuple[int, int]]]:
    """Runs a race between candidates with these true gains.

    Returns the race, and (candidates, specimens) of each round.
    """
    draws = random.Random(seed)
    race = Race.of(len(gains))
    rounds = []
    while not race.is_over(_SEARCH):
        count = race.next_specimens(_SEARCH)
        rounds.append((len(race.candidates), count))
        base = [draws.gauss(0, 1) for _ in range(count)]
        rows = [base] + [
            [score + draws.gauss(gains[candidate.number], spread) for score in base]
            for candidate in race.candidates
        ]
        race = race.after_round(rows)
    return race, rounds


@given(st.integers(0, 10**6))
def test_rounds_double_and_at_most_half_of_the_runners_stay(seed: int) -> None:
    race, rounds = _run([0.0] * 10, 1.0, seed)
    specimens = [count for _, count in rounds]
    assert specimens == [4, 4, 8, 16, 32][: len(rounds)]
    assert race.specimens == sum(specimens)
    for (candidates, _), (remaining, _) in itertools.pairwise(rounds):
        assert remaining <= (candidates + 1) // 2


def test_the_last_round_is_cut_to_the_specimen_limit() -> None:
    search = spec_pb2.PatternSearch(race_specimens=11)
    race = Race.of(2)
    counts = []
    while not race.is_over(search):
        counts.append(race.next_specimens(search))
        noise = [1.0, -1.0] * counts[-1]
        scores = noise[: counts[-1]]
        race = race.after_round([[0.0] * counts[-1]] + [scores] * len(race.candidates))
    assert counts == [4, 4, 3]
    assert race.winner() is None


def test_the_best_candidate_wins_by_its_paired_gain() -> None:
    """The spread between specimens is a hundred times the spread between candidates."""
    race, _ = _run([-0.01, 0.03, 0.01, -0.02], 0.01, seed=1)
    winner = race.winner()
    assert winner is not None
    assert winner.number == 1
    assert winner.gain is not None
    assert abs(winner.gain.mean - 0.03) < 0.01


def test_a_clear_winner_needs_no_more_rounds() -> None:
    race, rounds = _run([1.0, -1.0], 0.01, seed=1)
    assert race.winner() is not None
    assert sum(count for _, count in rounds) == 16


def test_losers_are_dropped_after_the_first_round() -> None:
    race, rounds = _run([-1.0] * 10, 0.1, seed=1)
    assert rounds == [(10, 4)]
    assert race.candidates == ()
    assert race.leader() is race.winner() is None


def test_noise_alone_seldom_wins() -> None:
    """In 200 races of ten candidates without gain, the leader's mean is usually positive."""
    races = [_run([0.0] * 10, 1.0, seed)[0] for seed in range(200)]
    wins = sum(race.winner() is not None for race in races)
    leads = sum(race.leader() is not None for race in races)
    assert wins < 0.45 * 200
    assert wins < 0.8 * leads


def test_a_specimen_without_a_score_for_one_candidate_is_ignored_for_all() -> None:
    race = Race.of(2).after_round(
        [[0.0, 0.0, 0.0, 0.0], [1.0, None, 1.0, 2.0], [1.0, 9.0, 1.5, 1.0]]
    )
    by_number = {candidate.number: candidate.differences for candidate in race.candidates}
    assert by_number == {0: (1.0, 1.0, 2.0)}
    assert race.specimens == 4


def test_without_scores_no_candidate_is_dropped_and_none_wins() -> None:
    race = Race.of(3)
    while not race.is_over(_SEARCH):
        race = race.after_round([[None] * race.next_specimens(_SEARCH)] * 4)
    assert len(race.candidates) == 3
    assert race.specimens == 64
    assert race.winner() is None


@given(st.integers(0, 10**6))
def test_race_message_round_trip(seed: int) -> None:
    race, _ = _run([0.0] * 5, 1.0, seed)
    assert Race.from_message(race.to_message()) == race
