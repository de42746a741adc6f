"""Run workers as actors of a Ray cluster.

Each actor is an ordinary worker, which connects to the coordinator itself. The driver, a process
that the coordinator starts (`python -m remy_workers.ray`), only keeps a pool of actors that fills
the cluster. Ray stores no state that matters: if an actor, a node, the head or the driver is lost,
it is restarted, and other workers take over its tasks in the meantime.

Only the driver and the actors import Ray. It kills connected processes when the head stays away, it
keeps connections that no longer work, and it unpickles what it receives.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ray
import ray.exceptions
import structlog

from remy_rpc.logs import set_up_logs
from remy_rpc.settings import Address, TlsFiles, parse_address
from remy_rpc.tracing import traces
from remy_workers.interruption import Shutdown
from remy_workers.settings import ExitCode, WorkerSettings
from remy_workers.telemetry import WorkerMetrics
from remy_workers.worker import Worker

# Some of Ray's functions have missing or wrong types.
_RAY: Any = ray
_NAMESPACE = "remy-farm"
# Amount that each actor takes of the resource that selects nodes; small, so that it lasts.
_RESOURCE_AMOUNT = 0.001
_POLL_SECONDS = 1.0
_RESPONSE_SECONDS = 10.0
# Consecutive polls without any known actor; a single poll may miss actors that are starting.
_POLLS_BEFORE_LOST = 3

_T = TypeVar("_T")

_log = structlog.get_logger()


class ClusterLost(Exception):
    """The connection to the cluster is lost; only a new process can reconnect."""


class EvaluationActor:
    """A worker process on a node of the cluster."""

    def ready(self) -> bool:
        """Returns true once the process has started."""
        return True

    def work(self, launch: str) -> int:
        """Runs the worker and returns its exit code.

        `launch` holds its settings as JSON: coordinator, name, threads, TLS and log level.
        """
        try:
            options = json.loads(launch)
            certificate = options["certificate"].encode()
            set_up_logs(options["log_level"], worker_id=options["name"])
            settings = WorkerSettings(
                coordinator=parse_address(options["coordinator"]),
                worker_id=options["name"],
                threads=options["threads_per_actor"],
                tls=TlsFiles(
                    certificate, certificate, options["key"].encode(), options["server_name"]
                ),
            )
            with traces("remy-farm-worker", instance_id=settings.worker_id):
                return int(Worker(settings, Shutdown(), WorkerMetrics(settings.threads)).run())
        except Exception:
            # Exit, since Ray would pickle the exception and reuse a process in an unknown state.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(ExitCode.INTERNAL)


@dataclass(frozen=True)
class Sizing:
    """The size of each actor and of the pool."""

    #: CPUs and simulation threads of each actor.
    threads: int = 1
    #: Use only nodes with this resource; empty: all nodes.
    resource: str = ""
    #: Number of actors, even if the cluster must grow; None: as many as fit the present nodes.
    actors: int | None = None

    def capacity(self, nodes: Sequence[dict[str, float]]) -> int:
        """The number of actors that fit on nodes with these resources."""
        usable = [node for node in nodes if not self.resource or node.get(self.resource, 0.0) > 0]
        return sum(int(node.get("CPU", 0.0) // self.threads) for node in usable)

    def missing(
        self, nodes: Sequence[dict[str, float]], *, started: int, pending: int, free_cpus: float
    ) -> int:
        """The number of actors to start; if negative, of pending actors to cancel.

        `pending` of the `started` actors are not scheduled yet. A pool without a fixed number uses
        only free CPUs: a pending actor would make the cluster's autoscaler add a node, which the
        pool would fill in turn.
        """
        if self.actors is not None:
            return self.actors - started
        wanted = self.capacity(nodes) - started
        if wanted <= 0:
            return max(wanted, -pending)
        return max(0, min(wanted, int(free_cpus // self.threads) - pending))


class ClusterWatch:
    """Detects that the cluster is no longer the one this process connected to.

    If the head restarts without its state, or the local raylet is gone, the connection never
    recovers. Times are in seconds on one monotonic clock.
    """

    def __init__(self, patience_seconds: float, now: float) -> None:
        """The cluster counts as lost after `patience_seconds` without a response."""
        self._patience_seconds = patience_seconds
        self._answered_at = now
        self._forgotten = 0

    def record_timeout(self, now: float) -> None:
        """Records a query without a response. Raises ClusterLost after too long a time."""
        seconds = now - self._answered_at
        if seconds >= self._patience_seconds:
            raise ClusterLost(f"the cluster has not responded for {seconds:.0f} s")

    def record_poll(
        self, *, own_node_is_alive: bool, known: frozenset[str], running: frozenset[str], now: float
    ) -> None:
        """Records a response: the actors that the cluster knows, and those that should be running.

        Raises ClusterLost.
        """
        self._answered_at = now
        if not own_node_is_alive:
            raise ClusterLost("the node of this driver has left the cluster")
        self._forgotten = self._forgotten + 1 if running and not running & known else 0
        if self._forgotten >= _POLLS_BEFORE_LOST:
            raise ClusterLost("the head restarted and lost all actors")


@dataclass(eq=False)
class ActorPool:
    """Keeps a pool of actors running for the lifetime of this process."""

    sizing: Sizing
    watch: ClusterWatch
    #: Settings of actors, except their names.
    launch: dict[str, Any]
    _handles: dict[str, Any] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _actor_tasks: dict[asyncio.Task[ExitCode], str] = field(default_factory=dict)
    _refused: int = 0

    async def run(self) -> ExitCode:
        """Runs until the coordinator has rejected all actors, and returns the reason.

        Raises ClusterLost.
        """
        resources = {self.sizing.resource: _RESOURCE_AMOUNT} if self.sizing.resource else {}
        make = _RAY.remote(num_cpus=self.sizing.threads, resources=resources)
        actor_class = make(EvaluationActor)
        prefix = f"ray-{secrets.token_hex(4)}"
        names = (f"{prefix}-{number}" for number in itertools.count(1))
        while True:
            for name in itertools.islice(names, await self._missing()):
                with contextlib.suppress(Exception):
                    self._handles[name] = await _in_time(actor_class.options(name=name).remote)
                    self._actor_tasks[asyncio.create_task(self._run_actor(name))] = name
            if self._actor_tasks:
                await asyncio.wait(self._actor_tasks, timeout=_POLL_SECONDS)
            else:
                await asyncio.sleep(_POLL_SECONDS)
            code = self._collect()
            if code is not ExitCode.DONE and not self._running:
                return code

    async def _run_actor(self, name: str) -> ExitCode:
        """Waits until an actor is scheduled and until it ends; returns its exit code."""
        handle = self._handles[name]
        try:
            await handle.ready.remote()
            self._running.add(name)
            code: int = await handle.work.remote(json.dumps({**self.launch, "name": name}))
            return ExitCode(code)
        except (ray.exceptions.RayError, ConnectionError) as error:
            _log.warning("an actor is lost", worker_id=name, why=_first_line(error))
            return ExitCode.DONE
        finally:
            self._running.discard(name)

    async def _missing(self) -> int:
        """Queries the cluster and returns the number of actors to start. Raises ClusterLost."""
        try:
            nodes = {node["NodeID"]: node for node in await _in_time(_RAY.nodes) if node["Alive"]}
            known = await _in_time(ray.util.list_named_actors)
            free = await _in_time(_RAY.available_resources)
        except Exception:
            # Ray raises many kinds of exceptions here.
            self.watch.record_timeout(time.monotonic())
            return 0
        self.watch.record_poll(
            own_node_is_alive=ray.get_runtime_context().get_node_id() in nodes,
            known=frozenset(known),
            running=frozenset(self._running),
            now=time.monotonic(),
        )
        pending = [name for name in self._actor_tasks.values() if name not in self._running]
        missing = self.sizing.missing(
            [node["Resources"] for node in nodes.values()],
            # Count rejected actors as started, since their replacements would be rejected as well.
            started=len(self._actor_tasks) + self._refused,
            pending=len(pending),
            free_cpus=free.get("CPU", 0.0),
        )
        for task, name in self._actor_tasks.items():
            if name in pending[: max(-missing, 0)]:
                task.cancel()
        return max(missing, 0)

    def _collect(self) -> ExitCode:
        """Removes ended actors; returns DONE unless the coordinator rejected one."""
        refusal = ExitCode.DONE
        for task in [task for task in self._actor_tasks if task.done()]:
            name = self._actor_tasks.pop(task)
            with contextlib.suppress(Exception):
                ray.kill(self._handles.pop(name))
            code = ExitCode.DONE if task.cancelled() else task.result()
            if code is not ExitCode.DONE:
                _log.error("an actor has given up", worker_id=name, code=code.name)
                self._refused += 1
                refusal = code
        return refusal


async def _in_time(query: Callable[[], _T]) -> _T:
    """Calls Ray in a thread, which is abandoned if it takes too long."""
    return await asyncio.wait_for(asyncio.to_thread(query), _RESPONSE_SECONDS)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:500]


def connect(address: str) -> str:
    """Connects to a cluster at HOST:PORT of its head, ray://HOST:PORT, or auto.

    Returns this machine's address on the network of the cluster. Raises ClusterLost.
    """
    try:
        _RAY.init(
            address=address,
            namespace=_NAMESPACE,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
        head = address if "://" in address else ray.get_runtime_context().gcs_address
        host, _, port = head.rpartition("://")[2].rpartition(":")
        family, kind, _, _, target = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as route:
            # Connecting a datagram socket selects a route and sends nothing.
            route.connect(target)
            own_address: str = route.getsockname()[0]
        return own_address
    except Exception as error:
        raise ClusterLost(f"{address}: {_first_line(error)}") from error


def run_driver(settings: dict[str, Any]) -> ExitCode:
    """Runs a pool of actors with the settings of the coordinator; returns why it ended."""
    try:
        own_address = connect(settings["address"])
        _log.info("connected to a Ray cluster", address=settings["address"])
        launch = {**settings, "coordinator": str(Address(own_address, settings["port"]))}
        sizing = Sizing(settings["threads_per_actor"], settings["resource"], settings["actors"])
        watch = ClusterWatch(settings["patience_seconds"], time.monotonic())
        return asyncio.run(ActorPool(sizing, watch, launch).run())
    except ClusterLost as problem:
        _log.error("no Ray cluster", why=str(problem))
        return ExitCode.UNREACHABLE
    except Exception:
        _log.exception("the driver failed")
        return ExitCode.INTERNAL


def main() -> None:
    """Reads settings as one line of JSON, and runs a pool until standard input ends.

    Exit codes: 0 standard input ended; 1 internal error; 3 cluster unreachable or lost; 4 not
    allowed; 6 rejected by the coordinator; 7 unsuitable for it.
    """
    settings = json.loads(sys.stdin.buffer.readline())
    set_up_logs(settings["log_level"], worker_id="ray-driver")

    def end_with_input() -> None:
        # The parent process holds the other end, so end of file means that it has ended. Ray then
        # ends the actors, too.
        sys.stdin.buffer.read()
        os._exit(ExitCode.DONE)

    threading.Thread(target=end_with_input, daemon=True).start()
    # Do not wait for Ray's threads or for threads that wait for its responses.
    os._exit(run_driver(settings))


if __name__ == "__main__":
    # Import by name, so that actors find EvaluationActor in the installed package, not in __main__.
    from remy_workers.ray import main as run

    run()
