"""Moments of a step's gradient, from columns of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from remy_simulator import _native
from remy_simulator.columns.layout import NUMBER_BYTES
from remy_simulator.cpus import allowed_cpus

# Fewer are added up before a second thread has begun.
_SPECIMENS_FOR_THREADS = 2048


def gradient_moments(
    seed: int,
    keys: bytes,
    sizes: bytes,
    used: bytes,
    rules: int,
    ranges: Sequence[tuple[int, int]],
    threads: int | None = None,
) -> _native.GradientMoments:
    """First and second moments of a step's gradient samples, by rule and by range of rules.

    `seed` is the perturbation's, `keys` and `used` the columns of the specimens and of
    the outcome. `sizes` is a column: by specimen, half the difference of the pair's scores over the
    scale of the perturbation (limited as the search likes), NaN where there is none. A rule's
    sample on a specimen is its noise times the size if either of the pair used it, else 0; a
    range's (first, first behind) is the sum over its rules.

    `by_rule` and `by_range` have two columns of three numbers a row: `mean`, and `squares`, their
    sum over the square of the number of samples. They are the same bits with any number of threads.
    By default these are as many as the process may keep busy, and one for few specimens.
    """
    if threads is None:
        many = len(sizes) >= _SPECIMENS_FOR_THREADS * NUMBER_BYTES
        threads = allowed_cpus() if many else 1
    return _native.gradient_moments(
        seed=seed,
        keys=keys,
        sizes=sizes,
        used=used,
        rules=rules,
        ranges=list(ranges),
        threads=threads,
    )
