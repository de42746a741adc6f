"""GetServerInfo: what serves here, and how it is set up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.coordinator.access.caller import current_caller
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.store_watch import StoreWatch
from remy_services.jobs.states import PENDING
from remy_services.stores import Durability


@dataclass(frozen=True)
class ServerInformation:
    """Where the answers come from."""

    farm: Farm
    store_watch: StoreWatch
    durability: Durability
    simulator_digest: str

    def response(self) -> messages.GetServerInfoResponse:
        """As it is now, for whoever calls."""
        farm, caller = self.farm, current_caller()
        return messages.GetServerInfoResponse(
            version=version("remy-farm"),
            simulator_version=version("remy-simulator"),
            simulator_digest=self.simulator_digest,
            coordinator=farm.environment.name,
            unix_seconds=time.time(),
            store=self._store(),
            evaluators=farm.evaluator.info(),
            caller=caller.name,
            role=caller.role,
            running_jobs=farm.scheduler.running,
            waiting_jobs=sum(keeper.job.state == PENDING for keeper in farm.catalogue),
        )

    def _store(self) -> messages.StoreInfo:
        trouble = self.store_watch.trouble
        return messages.StoreInfo(
            kind=self.durability.kind,
            version=self.durability.version,
            durability=self.durability.description,
            durable=self.durability.durable,
            available=not trouble,
            trouble=trouble,
        )
