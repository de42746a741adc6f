"""What is put around the parts of a coordinator: to watch it at work, or to disturb it in tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import grpc

from remy_services.coordinator.farm import Farm
from remy_services.coordinator.observer import Observer, SilentObserver
from remy_services.evaluation import SharedEvaluator
from remy_services.stores import CheckpointStore


def _store_itself(store: CheckpointStore) -> CheckpointStore:
    return store


def _evaluator_itself(evaluator: SharedEvaluator) -> SharedEvaluator:
    return evaluator


def _nothing(farm: Farm) -> None:
    pass


@dataclass(frozen=True)
class Surroundings:
    """By default nothing is. What wraps a part has the same interface, and answers as it does."""

    observer: Observer = field(default_factory=SilentObserver)
    store: Callable[[CheckpointStore], CheckpointStore] = _store_itself
    evaluator: Callable[[SharedEvaluator], SharedEvaluator] = _evaluator_itself
    #: Of all calls, before our own.
    interceptors: tuple[grpc.aio.ServerInterceptor, ...] = ()
    #: Is told of the farm, in the event loop, before any of its jobs is read.
    on_farm: Callable[[Farm], None] = _nothing
