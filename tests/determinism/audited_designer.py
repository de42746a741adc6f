"""Records what a running designer accesses.

    python -m tests.determinism.audited_designer SEARCH

It prints, as JSON, the interpreter's audit events (files, processes, sockets, threads) and the
modules of all built-in functions that the designer calls. A second line is the control: it also has
a call of the clock and the opening of a file.
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


class Auditor:
    """Calls functions and records their audit events and the modules of their built-in calls."""

    def __init__(self) -> None:
        self.accessed: set[str] = set()
        self._is_recording = False
        sys.addaudithook(self._on_audit_event)

    def call(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        sys.setprofile(self._on_profile_event)
        self._is_recording = True
        try:
            return function(*arguments)
        finally:
            self._is_recording = False
            sys.setprofile(None)

    def _on_audit_event(self, event: str, _arguments: Any) -> None:
        if self._is_recording:
            self.accessed.add(event)

    def _on_profile_event(self, _frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__module__ is not None:
            self.accessed.add(function.__module__)


def main() -> None:
    designer = Designer(parse_spec(_SPEC.replace("SEARCH", sys.argv[1])))
    # Modules that are imported at their first use are imported before the recording.
    designer.checkpoint()
    auditor = Auditor()
    while (request := auditor.call(designer.next_request)) is not None:
        outcome = remy_simulator.evaluate_columns(request)
        auditor.call(designer.receive, outcome)
        auditor.call(designer.checkpoint)
        auditor.call(lambda: designer.table)
    print(json.dumps({"steps": designer.steps, "accessed": sorted(auditor.accessed)}))
    auditor.call(time.time)
    auditor.call(lambda: Path(__file__).open().close())
    print(json.dumps({"steps": designer.steps, "accessed": sorted(auditor.accessed)}))


if __name__ == "__main__":
    main()
