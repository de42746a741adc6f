"""Compares our tables with published ones on the networks that the published ones are made for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.programs import ROOT
from remy_farm.analysis.explain import NetworkSample
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.measures import Estimate
from remy_farm.remycc import read_remycc
from remy_farm.shipped import DATA
from remy_farm.specification import load_tree, spec_from_tree, vary
from remy_farm.specification.reading import Tree

_SPECIMENS: Final = 256
_SEED: Final = 20130812
_FLAGSHIP: Final = "generalist-remembering"
_OUR_PACKET_BYTES: Final = 1500
# Published tables were trained with packets of 10,000 bits.
_THEIR_PACKET_BYTES: Final = 1250
# The study's exact rates in Mbit/s, by the rounded rate of our examples. The rounding matters: a
# table trained for one exact rate builds up a queue if the link is slower by a thousandth.
_EXACT_RATES: Final[dict[float, float]] = {31.6: 1000**0.5}

#: The published table for the networks of an example of ours, by the example's name.
_PUBLISHED: Final = {
    "general-purpose-delta1": "RemyCC-2013-delta1",
    "general-purpose-delta0.1": "RemyCC-2013-delta0.1",
    "general-purpose-delta10": "RemyCC-2013-delta10",
    "learnability-10x": "learnability-fig2-linkrate-10x",
    "learnability-100x": "RemyCC-2014-100x",
    "learnability-1000x": "learnability-fig2-linkrate-1000x",
    "learnability-rtt-10-280": "learnability-fig4-rtt-10to280",
    "learnability-rtt-50-250": "learnability-fig4-rtt-50to250",
    "learnability-rtt-140-160": "learnability-fig4-rtt-140to160",
    "learnability-rtt-145-155": "learnability-fig4-rtt-145to155",
    "learnability-senders-1-2": "learnability-fig3-senders-1to2",
    "learnability-senders-1-10": "learnability-fig3-senders-1to10",
    "learnability-senders-1-50": "learnability-fig3-senders-1to50",
    "learnability-senders-1-100": "learnability-fig3-senders-1to100",
}


def measure() -> list[Row]:
    """Returns one row per published table."""
    folder = Path(os.environ.get("REMY_REFERENCE_DIR") or os.devnull) / "remyccs"
    if not folder.is_dir():
        raise Unavailable("REMY_REFERENCE_DIR names no directory with a subdirectory remyccs.")
    evaluator = LocalEvaluator(len(os.sched_getaffinity(0)))
    try:
        return [
            _row(name, folder / f"{theirs}.dna", evaluator) for name, theirs in _PUBLISHED.items()
        ]
    finally:
        evaluator.close()


def _rules(name: str) -> Path:
    """Returns the file of a shipped table without its path model, as published tables have none."""
    return DATA / "remyccs" / name / "rules.json"


def _row(name: str, published: Path, evaluator: LocalEvaluator) -> Row:
    tree = load_tree(ROOT / "examples" / f"{name}.yaml")
    tree = vary(tree, "network.rate_mbps", _rates_for_our_packets(tree))
    spec = spec_from_tree(tree, name)
    sample = NetworkSample(spec, _SEED, _SPECIMENS, evaluator.evaluate)
    theirs, ours, flagship = (
        sample.trial(read_remycc(path).table)
        for path in (published, _rules(name), _rules(_FLAGSHIP))
    )
    return {
        "networks": name,
        "published": _format(theirs.summary().score),
        "ours": _format(ours.summary().score),
        "ours - published": _format(sample.scores(theirs, ours).difference),
        "flagship - published": _format(sample.scores(theirs, flagship).difference),
    }


def _rates_for_our_packets(tree: Tree) -> Tree:
    """Scales a specification's rates so that links carry as many packets per ms as in the study."""
    assert isinstance(tree, dict)
    network = tree["network"]
    assert isinstance(network, dict)
    return _scaled(network["rate_mbps"])


def _scaled(rates: Tree) -> Tree:
    match rates:
        case dict():
            return {kind: _scaled(values) for kind, values in rates.items()}
        case list():
            return [_scaled(value) for value in rates]
        case int() | float():
            rate = float(_EXACT_RATES.get(rates, rates))
            return rate * _OUR_PACKET_BYTES / _THEIR_PACKET_BYTES
    raise TypeError(f"a link rate is {rates!r}")


def _format(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.mean:.3f} \N{PLUS-MINUS SIGN} {estimate.standard_error or 0:.3f}"


BENCHMARK = Benchmark(
    name="published",
    title="Our tables and published ones",
    method=(
        f"Published tables were trained with packets of {_THEIR_PACKET_BYTES} bytes; ours are "
        f"trained with {_OUR_PACKET_BYTES}. The link rates of our examples are therefore "
        f"multiplied by {_OUR_PACKET_BYTES / _THEIR_PACKET_BYTES:g}, so that a link carries as "
        "many packets per ms as in the published table's training. Scores are of the example's "
        f"objective (natural logarithms) on {_SPECIMENS} networks of seed {_SEED}; differences are "
        "paired by network and have their standard error. Our table is that of data/remyccs with "
        f"the example's name; the flagship is {_FLAGSHIP}."
    ),
    measure=measure,
)
