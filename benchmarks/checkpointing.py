"""Measures the share of a design's time that checkpoints take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer import Designer
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator.checkpointing import RunSettings
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.stores.contract import CheckpointStore
from services.tests.coordinator.running_server import RunningServer, settings_for

_RULES = 200
#: The methods of a store that write a checkpoint.
_CHECKPOINT_METHODS = ("commit", "snapshots", "prune_snapshots")


class _Stopwatch:
    """Sums the wall time of the calls that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function with its duration added to `seconds` at each call."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - began

        return wrapper


class _TimedStore:
    """A checkpoint store that times the calls which write checkpoints."""

    def __init__(self, inner: CheckpointStore, stopwatch: _Stopwatch) -> None:
        self._inner = inner
        self._stopwatch = stopwatch

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)
        return self._stopwatch.wrap(call) if name in _CHECKPOINT_METHODS else call


@dataclass(frozen=True)
class CheckpointShares:
    """The fractions of wall time that checkpoints take."""

    #: The designer serializes its state, and the search waits.
    designer: float
    #: The store writes the checkpoint, in parallel with the next step.
    store: float


def measure_checkpoint_shares(folder: Path, *, seconds: float) -> CheckpointShares:
    """Runs a design with 200 rules and measures it over `seconds` of wall time."""
    spec = small_joint_spec(
        steps=1_000_000,
        first_split=1,
        steps_per_split=1,
        maximum_rules=_RULES,
        steps_per_epoch=50,
        simulated_seconds=30,
    )
    designer, store = _Stopwatch(), _Stopwatch()
    around = Instrumentation(store=lambda inner: _TimedStore(inner, store))
    settings = settings_for(folder)
    farm = replace(settings.farm, runs=RunSettings())
    original = Designer.checkpoint
    Designer.checkpoint = designer.wrap(original)  # type: ignore[method-assign]
    try:
        with RunningServer(replace(settings, farm=farm), around) as server:
            client = server.client()
            job = client.submit(spec).id
            client.until(job, lambda shown: shown.progress.rules >= _RULES)
            designer.seconds = store.seconds = 0.0
            began = time.perf_counter()
            time.sleep(seconds)
            took = time.perf_counter() - began
            shares = CheckpointShares(designer.seconds / took, store.seconds / took)
            client.call("CancelJob", messages.CancelJobRequest(job=job))
            client.until_final(job)
            return shares
    finally:
        Designer.checkpoint = original  # type: ignore[method-assign]
