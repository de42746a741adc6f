"""Health, as the standard protocol has it: alive, and ready for work, apart."""

from __future__ import annotations

from grpc_health.v1 import health, health_pb2

#: The event loop turns. A coordinator that waits for its store is alive.
LIVENESS = "liveness"
#: Jobs are served, and the store takes commits. Also what the server as a whole says.
READINESS = "readiness"

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """Says what the coordinator knows of itself."""

    def __init__(self) -> None:
        self.servicer = health.aio.HealthServicer()

    async def begin(self) -> None:
        """Alive, not ready."""
        await self.servicer.set(LIVENESS, _SERVING)
        await self.set_ready(False)

    async def set_ready(self, is_ready: bool) -> None:
        """Whether calls can be answered and jobs go on."""
        for service in (READINESS, ""):
            await self.servicer.set(service, _SERVING if is_ready else _NOT_SERVING)
