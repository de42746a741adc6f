"""The edge to Ray: everything that calls it. Nothing else imports it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import ray
import ray.actor
import ray.exceptions

from remy_farm.v1 import worker_service_pb2
from remy_workers.ray.actor import EvaluationActor
from remy_workers.ray.sizing import Node, Sizing
from remy_workers.ray.tables import StoredTables

# Parts of it have no types, or wrong ones.
_RAY: Any = ray

_NAMESPACE = "remy-farm"
# Of the resource that nodes are chosen by, which is there to be had and not to be used up.
_LITTLE = 0.001


class ClusterUnavailable(Exception):
    """The cluster cannot be reached or used. One sentence."""


class ActorLost(Exception):
    """The actor does not answer; Ray may start it again. One sentence."""


class ActorGone(Exception):
    """Ray will not start the actor again. One sentence."""


@dataclass(frozen=True)
class Census:
    """What there is in the cluster."""

    #: The node that this process is attached to; what it has put into the object store is there.
    own_node_is_alive: bool
    nodes: tuple[Node, ...]
    #: Names of the actors that the head knows.
    actors: frozenset[str]
    free_cpus: float


class RayActor:
    """An actor that was asked for; it may wait for room, run, or be started again."""

    def __init__(self, name: str, handle: Any) -> None:
        """`handle` is Ray's."""
        self.name = name
        self._handle = handle

    async def introduce(self) -> worker_service_pb2.Hello:
        """Waits until the actor runs. Raises ActorLost and ActorGone."""
        return worker_service_pb2.Hello.FromString(await _answer(self._handle.introduce))

    async def node_id(self) -> str:
        """The node that it runs on. Raises ActorLost and ActorGone."""
        return (await _answer(self._handle.node_id)).decode()

    async def check(self) -> None:
        """Returns once the actor has answered. Raises ActorLost and ActorGone."""
        await _answer(self._handle.is_alive)

    async def evaluate(
        self, tables: StoredTables, task: worker_service_pb2.Task
    ) -> worker_service_pb2.WorkRequest:
        """The actor's answer to a task. Raises ActorLost and ActorGone."""
        content = await _answer(self._handle.evaluate, tables.reference, task.SerializeToString())
        return worker_service_pb2.WorkRequest.FromString(content)

    def kill(self) -> None:
        """Ends it for good, whatever it does. Raises ClusterUnavailable. Blocks."""
        try:
            ray.kill(self._handle)
        except Exception as error:
            raise ClusterUnavailable(_first_line(error)) from error


class RayCluster:
    """A connection to a cluster, for as long as this process lives. Its methods block."""

    def __init__(self, address: str, sizing: Sizing) -> None:
        """Connects. `address` is HOST:PORT, ray://HOST:PORT, or auto. Raises ClusterUnavailable."""
        self._sizing = sizing
        try:
            ray.init(
                address=address,
                namespace=_NAMESPACE,
                log_to_driver=False,
                logging_level=logging.WARNING,
            )
            self._own_node_id = ray.get_runtime_context().get_node_id()
        except Exception as error:
            # Ray raises nearly anything here.
            raise ClusterUnavailable(f"{address}: {_first_line(error)}") from error
        # One call more than threads, so that an actor at work answers.
        make = _RAY.remote(
            num_cpus=sizing.threads,
            max_concurrency=sizing.threads + 1,
            max_restarts=-1,
            # What was lost goes to whoever is free, which the coordinator decides.
            max_task_retries=0,
            resources={sizing.resource: _LITTLE} if sizing.resource else {},
        )
        self._class: Any = make(EvaluationActor)

    def census(self) -> Census:
        """What there is now. Raises ClusterUnavailable."""
        try:
            alive = {node["NodeID"]: node for node in _RAY.nodes() if node["Alive"]}
            return Census(
                own_node_is_alive=self._own_node_id in alive,
                nodes=tuple(
                    Node(
                        node_id,
                        dict(node["Resources"]),
                        node["NodeManagerAddress"],
                        node["NodeManagerPort"],
                    )
                    for node_id, node in alive.items()
                ),
                actors=frozenset(ray.util.list_named_actors()),
                free_cpus=_RAY.available_resources().get("CPU", 0.0),
            )
        except Exception as error:
            raise ClusterUnavailable(_first_line(error)) from error

    def start(self, name: str) -> RayActor:
        """Asks for an actor. Raises ClusterUnavailable."""
        try:
            return RayActor(name, self._class.options(name=name).remote())
        except Exception as error:
            raise ClusterUnavailable(_first_line(error)) from error

    def put(self, content: bytes) -> Any:
        """A reference to `content` in the object store, which Ray keeps as it is."""
        return ray.put(content)


async def _answer(method: Any, *arguments: Any) -> bytes:
    try:
        content: bytes = await method.remote(*arguments)
        return content
    except ray.exceptions.ActorDiedError as error:
        raise ActorGone(_first_line(error)) from error
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise ActorLost(_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:500]
