"""An evaluator that many designs share, on a Ray cluster."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import grpc

from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation import Evaluation, OnProgress, Share
from remy_services.fleet.board import BoardSnapshot
from remy_services.fleet.information import describe_evaluators
from remy_services.fleet.ray.driver_process import DriverProcess
from remy_services.fleet.ray.settings import RaySettings, check_installed
from remy_services.fleet.workers import WorkerFleet, WorkerFleetSettings
from remy_services.fleet.workers.stream import Traffic

_MOST_MESSAGE_BYTES = 64 << 20
# For streams that are being written when the fleet closes.
_GRACE_SECONDS = 1.0


class RayFleet:
    """A SharedEvaluator. Requests wait while there is no cluster."""

    def __init__(
        self,
        settings: RaySettings | None = None,
        *,
        workers: WorkerFleetSettings | None = None,
        work_left: Callable[[str], bool] = lambda job_id: False,
        reproductions: Path | None = None,
    ) -> None:
        """For the arguments see WorkerFleet. Raises RayUnavailable."""
        check_installed()
        self._settings = settings or RaySettings()
        self._workers = WorkerFleet(workers, work_left=work_left, reproductions=reproductions)
        self._folder: str | None = None
        self._server: grpc.aio.Server | None = None
        self._driver: DriverProcess | None = None
        self._opening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Starts the driver, in the running event loop. To be called once."""
        # Nobody else may enter; the path of a socket must be short.
        self._folder = tempfile.mkdtemp(prefix="remy-ray-")
        socket = str(Path(self._folder, "s"))
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MOST_MESSAGE_BYTES),
            ]
        )
        self._workers.add_to(self._server)
        self._server.add_insecure_port(f"unix:{socket}")
        self._driver = DriverProcess(
            self._settings.command(socket), lambda: self.snapshot().workers
        )
        self._opening = asyncio.create_task(self._open(self._server, self._driver))

    @property
    def driver_pid(self) -> int | None:
        """The process that is connected to the cluster, while there is one."""
        return None if self._driver is None else self._driver.pid

    @property
    def traffic(self) -> Traffic:
        """Bytes between this process and the driver."""
        return self._workers.traffic

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        return await self._workers.evaluate(share, request, on_progress)

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return describe_evaluators("ray", self.snapshot())

    def snapshot(self) -> BoardSnapshot:
        """What the board behind the actors holds, and what it has counted."""
        return self._workers.snapshot()

    async def close(self) -> None:
        if self._opening is not None:
            await self._opening
        if self._driver is not None:
            await self._driver.close()
        await self._workers.close()
        if self._server is not None:
            await self._server.stop(_GRACE_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _open(self, server: grpc.aio.Server, driver: DriverProcess) -> None:
        await server.start()
        driver.begin()
