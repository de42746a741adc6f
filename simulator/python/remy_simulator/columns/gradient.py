"""Computes the moments of gradient samples from the columns of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from remy_simulator import _native
from remy_simulator.columns.layout import NUMBER_BYTES
from remy_simulator.cpus import allowed_cpus

# Fewer specimens are processed faster than a second thread starts.
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
    """Returns first and second moments of a step's gradient samples, by rule and by range of rules.

    `seed` is that of the perturbation; `keys` and `used` are columns of the specimens and of the
    outcome. `sizes` is a column by specimen: half the difference of the antithetic pair's scores,
    divided by the scale of the perturbation (the search may clip it); NaN without a sample. The
    sample of a rule on a specimen is its noise times the size if either of the pair used the rule,
    else 0. The sample of a range (first, end) is the sum over its rules.

    `by_rule` and `by_range` have two columns with three numbers per row: `mean`, and `squares`, the
    sum of squares divided by the square of the number of samples. Results have the same bits with
    any number of threads. `threads` defaults to the CPUs that the process may use, or 1 for few
    specimens.
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
