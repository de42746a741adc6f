"""The coordinator's server."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path

import grpc

from remy_farm.v1 import design_service_pb2_grpc
from remy_services.coordinator.design_service import DesignService
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.interim_store import InterimStore
from remy_services.files import write_file
from remy_services.fleet import LocalFleet


@dataclass(frozen=True)
class Settings:
    listen: str
    threads: int
    ready_file: Path | None


async def serve(settings: Settings) -> None:
    evaluator = LocalFleet(settings.threads)
    farm = Farm(InterimStore(), evaluator, "coordinator")
    server = grpc.aio.server()
    design_service_pb2_grpc.add_DesignServiceServicer_to_server(DesignService(farm), server)
    host = settings.listen.rpartition(":")[0]
    port = server.add_insecure_port(settings.listen)
    await server.start()
    address = f"{host}:{port}"
    print(f"serving on {address}", flush=True)
    if settings.ready_file is not None:
        write_file(settings.ready_file, address + "\n")
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    await server.stop(1.0)
    await evaluator.close()
