"""Workers that are actors of a Ray cluster.

Each actor is an ordinary worker, which calls the coordinator itself. The driver, a process that the
coordinator starts (`python -m remy_workers.ray`), only keeps a pool of them as large as the cluster
has room for. Nothing is kept in Ray that cannot be made again: whatever ends (an actor, a node, the
head, the driver) is started anew, and the coordinator gives the tasks to others meanwhile.

No other process loads Ray: it ends processes that are connected to it when its head stays away,
keeps connections that are of no use any more, and unpickles what it receives.
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

# Parts of it have no types, or wrong ones.
_RAY: Any = ray
_NAMESPACE = "remy-farm"
# Of the resource that nodes are chosen by, which is there to be had and not to be used up.
_LITTLE = 0.001
_SECONDS_BETWEEN_LOOKS = 1.0
_ANSWER_SECONDS = 10.0
# A look at the cluster may miss what is just being started.
_LOOKS_IN_A_ROW = 3

_T = TypeVar("_T")

_log = structlog.get_logger()


class ClusterLost(Exception):
    """Only a new process gets a connection to the cluster (again). One sentence."""


class EvaluationActor:
    """A worker, in a process on a node of the cluster."""

    def ready(self) -> bool:
        """Answers once the process is there."""
        return True

    def work(self, launch: str) -> int:
        """The worker's exit code, in the end. `launch` is JSON, and says for whom to work."""
        try:
            told = json.loads(launch)
            certificate = told["certificate"].encode()
            set_up_logs(told["log_level"], worker_id=told["name"])
            settings = WorkerSettings(
                coordinator=parse_address(told["coordinator"]),
                worker_id=told["name"],
                threads=told["threads_per_actor"],
                tls=TlsFiles(certificate, certificate, told["key"].encode(), told["server_name"]),
            )
            with traces("remy-farm-worker", instance_id=settings.worker_id):
                return int(Worker(settings, Shutdown(), WorkerMetrics(settings.threads)).run())
        except Exception:
            # An exception would be pickled, and the process is in doubt.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(ExitCode.INTERNAL)


@dataclass(frozen=True)
class Sizing:
    """What actors take, and how many are wanted."""

    #: CPUs of each actor, and threads that it simulates in.
    threads: int = 1
    #: A resource that nodes must have to be used; empty: any node.
    resource: str = ""
    #: So many, wherever Ray finds room or makes some; None: as many as the nodes have CPUs for.
    actors: int | None = None

    def capacity(self, nodes: Sequence[dict[str, float]]) -> int:
        """How many actors nodes with these resources have CPUs for."""
        usable = [node for node in nodes if not self.resource or node.get(self.resource, 0.0) > 0]
        return sum(int(node.get("CPU", 0.0) // self.threads) for node in usable)

    def missing(
        self, nodes: Sequence[dict[str, float]], *, started: int, pending: int, free_cpus: float
    ) -> int:
        """How many more actors to start; negative: how many of those that wait are too many.

        `pending` of the `started` actors wait for room still. Without a number of its own a pool
        takes what is free: an actor that waits would have the cluster's autoscaler add a node,
        whose CPUs would be filled in turn.
        """
        if self.actors is not None:
            return self.actors - started
        wanted = self.capacity(nodes) - started
        if wanted <= 0:
            return max(wanted, -pending)
        return max(0, min(wanted, int(free_cpus // self.threads) - pending))


class ClusterWatch:
    """Whether the cluster is still the one that was connected to.

    A head that is started anew without its memory, or a raylet that is gone, leaves a connection
    that never recovers. Times are seconds on one monotonic clock.
    """

    def __init__(self, patience_seconds: float, now: float) -> None:
        """A cluster that has not answered for `patience_seconds` is lost."""
        self._patience_seconds = patience_seconds
        self._answered_at = now
        self._forgotten = 0

    def silent(self, now: float) -> None:
        """A question was not answered. Raises ClusterLost if that goes on for too long."""
        seconds = now - self._answered_at
        if seconds >= self._patience_seconds:
            raise ClusterLost(f"the cluster has not answered for {seconds:.0f} s")

    def answered(
        self, *, own_node_is_alive: bool, known: frozenset[str], running: frozenset[str], now: float
    ) -> None:
        """There are these actors in the cluster, and those that should run. Raises ClusterLost."""
        self._answered_at = now
        if not own_node_is_alive:
            raise ClusterLost("the node of this driver is gone")
        self._forgotten = self._forgotten + 1 if running and not running & known else 0
        if self._forgotten >= _LOOKS_IN_A_ROW:
            raise ClusterLost("the head has forgotten all actors")


@dataclass(eq=False)
class ActorPool:
    """Keeps actors at work for as long as this process lives."""

    sizing: Sizing
    watch: ClusterWatch
    #: What actors are told, but for their names.
    launch: dict[str, Any]
    _handles: dict[str, Any] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _lives: dict[asyncio.Task[ExitCode], str] = field(default_factory=dict)
    _refused: int = 0

    async def run(self) -> ExitCode:
        """Why the coordinator has refused all actors. Raises ClusterLost."""
        resources = {self.sizing.resource: _LITTLE} if self.sizing.resource else {}
        make = _RAY.remote(num_cpus=self.sizing.threads, resources=resources)
        actor_class = make(EvaluationActor)
        prefix = f"ray-{secrets.token_hex(4)}"
        names = (f"{prefix}-{number}" for number in itertools.count(1))
        while True:
            for name in itertools.islice(names, await self._missing()):
                with contextlib.suppress(Exception):
                    self._handles[name] = await _in_time(actor_class.options(name=name).remote)
                    self._lives[asyncio.create_task(self._live(name))] = name
            if self._lives:
                await asyncio.wait(self._lives, timeout=_SECONDS_BETWEEN_LOOKS)
            else:
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            code = self._collect()
            if code is not ExitCode.DONE and not self._running:
                return code

    async def _live(self, name: str) -> ExitCode:
        """An actor's life, from its wait for room to its end."""
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
        """How many actors to start, as far as the cluster says. Raises ClusterLost."""
        try:
            nodes = {node["NodeID"]: node for node in await _in_time(_RAY.nodes) if node["Alive"]}
            known = await _in_time(ray.util.list_named_actors)
            free = await _in_time(_RAY.available_resources)
        except Exception:
            # Ray raises nearly anything here.
            self.watch.silent(time.monotonic())
            return 0
        self.watch.answered(
            own_node_is_alive=ray.get_runtime_context().get_node_id() in nodes,
            known=frozenset(known),
            running=frozenset(self._running),
            now=time.monotonic(),
        )
        pending = [name for name in self._lives.values() if name not in self._running]
        missing = self.sizing.missing(
            [node["Resources"] for node in nodes.values()],
            # Whoever takes the place of one that is refused would be refused as well.
            started=len(self._lives) + self._refused,
            pending=len(pending),
            free_cpus=free.get("CPU", 0.0),
        )
        for life, name in self._lives.items():
            if name in pending[: max(-missing, 0)]:
                life.cancel()
        return max(missing, 0)

    def _collect(self) -> ExitCode:
        """Lets go of actors that have ended; DONE unless the coordinator refused one."""
        refusal = ExitCode.DONE
        for life in [life for life in self._lives if life.done()]:
            name = self._lives.pop(life)
            with contextlib.suppress(Exception):
                ray.kill(self._handles.pop(name))
            code = ExitCode.DONE if life.cancelled() else life.result()
            if code is not ExitCode.DONE:
                _log.error("an actor has given up", worker_id=name, code=code.name)
                self._refused += 1
                refusal = code
        return refusal


async def _in_time(question: Callable[[], _T]) -> _T:
    """What Ray answers, asked in a thread that is given up if it takes too long."""
    return await asyncio.wait_for(asyncio.to_thread(question), _ANSWER_SECONDS)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:500]


def connect(address: str) -> str:
    """Joins a cluster: HOST:PORT of its head, ray://HOST:PORT, or auto. Returns this machine's
    address as the cluster's nodes see it. Raises ClusterLost."""
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
            # Sends nothing.
            route.connect(target)
            own: str = route.getsockname()[0]
        return own
    except Exception as error:
        raise ClusterLost(f"{address}: {_first_line(error)}") from error


def drive(told: dict[str, Any]) -> ExitCode:
    """Drives a pool of actors as the coordinator's settings say."""
    try:
        own = connect(told["address"])
        _log.info("connected to a Ray cluster", address=told["address"])
        launch = {**told, "coordinator": str(Address(own, told["port"]))}
        sizing = Sizing(told["threads_per_actor"], told["resource"], told["actors"])
        watch = ClusterWatch(told["patience_seconds"], time.monotonic())
        return asyncio.run(ActorPool(sizing, watch, launch).run())
    except ClusterLost as problem:
        _log.error("no Ray cluster", why=str(problem))
        return ExitCode.UNREACHABLE
    except Exception:
        _log.exception("the driver failed")
        return ExitCode.INTERNAL


def main() -> None:
    """Reads one line of JSON from standard input, and drives until that ends.

    Exit codes: 0 told to end; 1 internal error; 3 the cluster cannot be reached, or is lost; 4 not
    allowed; 6 refused by the coordinator; 7 of no use to it.
    """
    told = json.loads(sys.stdin.buffer.readline())
    set_up_logs(told["log_level"], worker_id="ray-driver")

    def end_with_input() -> None:
        # Whoever started this process holds the other end, and is gone when that is closed. Ray
        # ends the actors with it.
        sys.stdin.buffer.read()
        os._exit(ExitCode.DONE)

    threading.Thread(target=end_with_input, daemon=True).start()
    # Ray's threads, and those that wait for its answers, are not waited for.
    os._exit(drive(told))


if __name__ == "__main__":
    # By its own name, so that actors find their class in what is installed.
    from remy_workers.ray import main as run

    run()
