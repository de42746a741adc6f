"""Tables that were designed with noise do not depend on exact clocks; others do."""

from __future__ import annotations

import pytest

from benchmarks.programs import REMY_FARM, REMY_SIMULATE, ROOT, network_flags, run_json
from benchmarks.tables import ABSOLUTE

_EXACT: tuple[str, ...] = ()
_JITTER = ("--jitter-ms", "0.5")
_MILLISECONDS = ("--timestamp-resolution-ms", "1")


def _score(name: str, senders: int, noise: tuple[str, ...]) -> float:
    flags = network_flags(remycc=ABSOLUTE / name / "remycc.dna", senders=senders, seconds=500)
    score: float = run_json(REMY_SIMULATE, *flags, *noise)["normalized_score_per_sender"]
    return score


@pytest.mark.parametrize("senders", [2, 8])
@pytest.mark.parametrize(
    ("noise", "loss_of_score"), [(_JITTER, 0.05), (_MILLISECONDS, 0.2)], ids=["jitter", "1 ms"]
)
def test_table_designed_with_noise_does_not_depend_on_exact_clocks(
    senders: int, noise: tuple[str, ...], loss_of_score: float
) -> None:
    exact = _score("general-purpose-noise", senders, _EXACT)
    assert _score("general-purpose-noise", senders, noise) > exact - loss_of_score


def test_table_designed_with_exact_clocks_depends_on_them() -> None:
    """This is the control of the test above."""
    exact = _score("general-purpose-delta1", 2, _EXACT)
    assert _score("general-purpose-delta1", 2, _JITTER) < exact - 0.5


@pytest.mark.parametrize(
    ("senders", "maximum_delay"), [(1, 1.03), (2, 1.03), (4, 1.03), (8, 1.04), (16, 1.06)]
)
def test_realistic_table_uses_the_link_with_senders_that_stay_on(
    senders: int, maximum_delay: float
) -> None:
    """Senders start within a millisecond, so that their minimum RTTs include each other's queue."""
    table = ROOT / "data" / "remyccs" / "general-purpose-realistic" / "rules.json"
    flags = network_flags(
        remycc=table,
        senders=senders,
        seconds=60,
        on_ms=1e7,
        off_ms=1,
        buffer_packets=1000,
    )
    measured = run_json(
        REMY_FARM, "simulate", *flags, "--set=measurement.jitter.exponential_mean_ms=0.12"
    )
    assert measured["throughput_over_link_rate"] >= 0.97
    assert measured["delay_over_rtt"] <= maximum_delay
