"""A farm with everything that it works on, opened as the settings say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from remy_services.coordinator.clock import now
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.keeping import Environment
from remy_services.coordinator.keeping.patience import patiently
from remy_services.coordinator.mirroring import Mirroring
from remy_services.coordinator.serving.evaluators import Evaluators, make_evaluators
from remy_services.coordinator.serving.settings import ServerSettings
from remy_services.coordinator.serving.surroundings import Surroundings
from remy_services.coordinator.store_watch import StoreWatch
from remy_services.coordinator.threads import Threads
from remy_services.stores import CheckpointStore, Mirror, open_store

# Of the grace period.
_SHARE_FOR_MIRROR = 0.2

_log = structlog.get_logger()


@dataclass(frozen=True)
class Opened:
    """What there is to serve."""

    farm: Farm
    store_watch: StoreWatch
    evaluators: Evaluators


async def open_farm(
    settings: ServerSettings,
    around: Surroundings,
    ending: AsyncExitStack,
    *,
    has_work: Callable[[str], bool],
    on_store_changed: Callable[[str], Awaitable[None]],
) -> Opened:
    """Waits for a store that is not available; everything is closed by `ending`.

    `has_work(job_id)` says whether a job, or any if empty, may still have something to evaluate;
    `on_store_changed` is told the store's trouble, or "" when it is over. Raises SettingsError or
    StoreError.
    """
    threads = Threads()
    ending.push_async_callback(threads.close)
    opened = await patiently(
        lambda: threads.store(
            open_store, settings.store_url, accept_data_loss=settings.accept_data_loss
        ),
        on_trouble=lambda why: _log.warning("waiting for the store", why=why),
    )
    ending.push_async_callback(asyncio.to_thread, opened.close)
    evaluators = make_evaluators(settings, has_work)
    store = around.store(opened)
    mirroring = _mirroring(settings, store, ending)
    environment = Environment(store, threads, now, around.observer, settings.name, mirroring)
    watch = StoreWatch(store, threads, settings.farm.store_check_seconds, on_store_changed)
    farm = Farm(environment, around.evaluator(evaluators.evaluator), settings.farm)
    around.on_farm(farm)
    return Opened(farm, watch, evaluators)


def _mirroring(
    settings: ServerSettings, store: CheckpointStore, ending: AsyncExitStack
) -> Mirroring | None:
    if settings.mirror_url is None:
        return None
    mirroring = Mirroring(Mirror(settings.mirror_url), store)
    ending.push_async_callback(mirroring.close, settings.grace_seconds * _SHARE_FOR_MIRROR)
    return mirroring
