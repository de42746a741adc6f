"""Times a designer's own work between the simulations of its steps: a program of its own.

    PYTHON benchmarks/steps_of_a_design.py SPEC.yaml PAIRS STEPS [REMYCC.dna]

It uses nothing but what all versions have, so that two of them can be timed by the same code.
Prints, as JSON, the milliseconds of CPU that each step took: to ask, and to hear the answer.
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
    # The table stays as it is, and no epoch ends.
    for name in ("first_split", "steps", "steps_per_epoch"):
        setattr(spec.search.joint, name, _NEVER)
    table = None if remycc is None else read_remycc(Path(remycc)).table
    designer = Designer(spec, first_table=table)
    # The first request is for the validation of the table that the search begins with.
    designer.receive(evaluate(designer.next_request()))
    spent = []
    for _ in range(int(steps)):
        began = time.thread_time()
        request = designer.next_request()
        asked = time.thread_time()
        outcome = evaluate(request)
        answered = time.thread_time()
        designer.receive(outcome)
        ended = time.thread_time()
        spent.append((1000 * (asked - began), 1000 * (ended - answered)))
    print(json.dumps(spent))


if __name__ == "__main__":
    main(*sys.argv[1:])
