"""Notes what a designer touches while it works.

    python -m tests.determinism.watched_designer SEARCH

Prints, as JSON, what the interpreter audits (files, processes, sockets, threads) and the modules of
the built-in functions that are called while the designer is at work, and only then. A second line
has the same after some I/O that must be seen.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import remy_simulator
from remy_farm.designer import Designer
from remy_farm.specification import parse_spec

_Result = TypeVar("_Result")

_SPEC = """
name: watched
network: {rate_mbps: 12, rtt_ms: 50, senders: 2,
  traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}}
search: SEARCH
stop: {steps: 30}
"""


class Watch:
    """Calls functions, and remembers what they touched."""

    def __init__(self) -> None:
        self.touched: set[str] = set()
        self._at_work = False
        sys.addaudithook(self._note_event)

    def call(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        sys.setprofile(self._note_call)
        self._at_work = True
        try:
            return function(*arguments)
        finally:
            self._at_work = False
            sys.setprofile(None)

    def _note_event(self, event: str, _arguments: Any) -> None:
        if self._at_work:
            self.touched.add(event)

    def _note_call(self, _frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__module__ is not None:
            self.touched.add(function.__module__)


def main() -> None:
    designer = Designer(parse_spec(_SPEC.replace("SEARCH", sys.argv[1])))
    # What is imported at first use is imported now.
    designer.checkpoint()
    watch = Watch()
    while (request := watch.call(designer.next_request)) is not None:
        outcome = remy_simulator.evaluate_columns(request)
        watch.call(designer.receive, outcome)
        watch.call(designer.checkpoint)
        watch.call(lambda: designer.table)
    print(json.dumps({"steps": designer.steps, "touched": sorted(watch.touched)}))
    watch.call(time.time)
    watch.call(lambda: Path(__file__).open().close())
    print(json.dumps({"steps": designer.steps, "touched": sorted(watch.touched)}))


if __name__ == "__main__":
    main()
