"""The server: everything that a coordinator is made of, started and ended in order."""

from __future__ import annotations

import asyncio
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

import grpc

from remy_farm.v1 import design_service_pb2_grpc
from remy_services.client.keepalive import SERVER_OPTIONS
from remy_services.coordinator.access.doorkeeper import Doorkeeper
from remy_services.coordinator.answering.interceptor import Interceptor
from remy_services.coordinator.calls import DesignService
from remy_services.coordinator.calls.information import ServerInformation
from remy_services.coordinator.clock import now
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.keeping import Environment
from remy_services.coordinator.observer import SilentObserver
from remy_services.coordinator.settings import FarmSettings
from remy_services.coordinator.store_watch import StoreWatch
from remy_services.coordinator.threads import Threads
from remy_services.files import write_file
from remy_services.fleet import LocalFleet
from remy_services.stores import open_store


@dataclass(frozen=True)
class Settings:
    listen: str
    store: str
    threads: int
    ready_file: Path | None


async def serve(settings: Settings) -> None:
    threads = Threads()
    store = open_store(settings.store)
    evaluator = LocalFleet(settings.threads)
    environment = Environment(store, threads, now, SilentObserver(), socket.gethostname())
    farm = Farm(environment, evaluator, FarmSettings())
    watch = StoreWatch(store, threads, 5.0, _nothing)
    watch.begin()
    information = ServerInformation(farm, watch, store.durability(), "")
    server = grpc.aio.server(
        interceptors=[Interceptor(Doorkeeper(None))], options=list(SERVER_OPTIONS)
    )
    design_service_pb2_grpc.add_DesignServiceServicer_to_server(
        DesignService(farm, information), server
    )
    host = settings.listen.rpartition(":")[0]
    port = server.add_insecure_port(settings.listen)
    await server.start()
    await farm.load()
    address = f"{host}:{port}"
    print(f"serving on {address}", flush=True)
    if settings.ready_file is not None:
        write_file(settings.ready_file, address + "\n")
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    await farm.close("the coordinator shuts down", 10.0)
    await watch.close()
    await server.stop(1.0)
    await evaluator.close()
    store.close()
    threads.close()


async def _nothing(_: str) -> None:
    pass
