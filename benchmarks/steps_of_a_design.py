"""Times a designer's own work between the simulations of its steps.

    PYTHON benchmarks/steps_of_a_design.py SPEC.yaml PAIRS STEPS [REMYCC.dna]

It uses only functions that all versions have, so that the same program times any two versions.
It prints, as JSON, each step's CPU milliseconds for making the request and for processing the
outcome.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import remy_simulator
from remy_farm.designer import Designer
from remy_farm.remycc import read_remycc

_NEVER = 10_000_000


def main(spec_file: str, pairs: str, steps: str, remycc: str | None = None) -> None:
    simulator: Any = remy_simulator
    evaluate = getattr(simulator, "evaluate_columns", None) or simulator.evaluate
    try:
        specification = import_module("remy_farm.specification")
    except ImportError:
        specification = import_module("remy_services.spec")
    spec = specification.load_spec(Path(spec_file))
    spec.search.specimens = int(pairs)
    # The table is never divided, and no epoch ends.
    for name in ("first_split", "steps", "steps_per_epoch"):
        setattr(spec.search.joint, name, _NEVER)
    table = None if remycc is None else read_remycc(Path(remycc)).table
    designer = Designer(spec, first_table=table)
    # The first request validates the initial table; it is not timed.
    designer.receive(evaluate(designer.next_request()))
    spent = []
    for _ in range(int(steps)):
        started = time.thread_time()
        request = designer.next_request()
        requested = time.thread_time()
        outcome = evaluate(request)
        evaluated = time.thread_time()
        designer.receive(outcome)
        received = time.thread_time()
        spent.append((1000 * (requested - started), 1000 * (received - evaluated)))
    print(json.dumps(spent))


if __name__ == "__main__":
    main(*sys.argv[1:])
