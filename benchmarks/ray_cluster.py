"""Runs a Ray cluster on this machine whose nodes can be killed and restarted one by one."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# Long enough for a busy machine.
_TIMEOUT_SECONDS = 180.0
_MAX_STARTS = 4
_ROOT = Path(__file__).resolve().parent.parent


class NodeNotStarted(Exception):
    """Ray gave up starting a node."""


class RayNode:
    """One node of a Ray cluster, and its processes."""

    def __init__(self, environment: Mapping[str, str], settings: dict[str, Any]) -> None:
        """Starts the node and waits until it is ready. Raises NodeNotStarted."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ray_node", json.dumps(settings)],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        self._pids: dict[str, list[int]] = {}
        line = self._process.stdout.readline()
        if not line:
            self.kill()
            raise NodeNotStarted
        ready = json.loads(line)
        self.address: str = ready["address"]
        self._pids = ready["processes"]

    @property
    def raylet(self) -> int:
        """The raylet's PID; its end ends all processes of the node except the head's GCS."""
        return self._pids["raylet"][0]

    @property
    def actors(self) -> list[int]:
        """The PIDs of the node's evaluation actors."""
        return [pid for pid, name in _children(self.raylet) if name.startswith("ray::Evaluation")]

    @property
    def processes(self) -> list[int]:
        """The PIDs of all processes of the node."""
        started = [pid for group in self._pids.values() for pid in group]
        return started + [pid for parent in started for pid, _ in _children(parent)]

    def kill(self) -> None:
        """Kills all processes at once, as if the machine were switched off."""
        for pid in self.processes:
            _kill(pid)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self) -> None:
        """Shuts the node down, then kills the processes that remain."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=15)
        self.kill()


class RayCluster:
    """A head node and other nodes, all on the loopback address.

    Nodes other than the head have the resource "evaluation".
    """

    def __init__(self, nodes: int = 1, *, cpus: int = 1, **settings: str) -> None:
        """Starts all nodes, each with `cpus` CPUs.

        `settings` are passed to Ray as environment variables RAY_<name>.
        """
        self._cpus = cpus
        # Linux limits the length of a Unix socket's path.
        self._folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
        token = self._folder / "token"
        token.write_text(secrets.token_hex(32), encoding="ascii")
        token.chmod(0o600)
        self.environment = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            # Without this Ray replaces the loopback address by the machine's own.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            **{f"RAY_{name}": value for name, value in settings.items()},
        }
        self.head = self._start()
        self.address = self.head.address
        self.others = [self._start(self.address) for _ in range(nodes - 1)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in (*self.others, self.head):
            node.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def nodes(self) -> list[RayNode]:
        """All nodes, the head first."""
        return [self.head, *self.others]

    @property
    def actors(self) -> list[int]:
        """The PIDs of the evaluation actors of all nodes."""
        return [pid for node in self.nodes for pid in node.actors]

    @property
    def processes(self) -> list[int]:
        """The PIDs of all processes of the cluster, actors included."""
        return [pid for node in self.nodes for pid in node.processes]

    @contextlib.contextmanager
    def as_environment(self) -> Iterator[None]:
        """Sets environment variables with which child processes find the cluster."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def replace_node(self) -> None:
        """Kills a node without notice and starts another one."""
        self.others.pop(0).kill()
        self.others.append(self._start(self.address))

    def replace_all(self) -> None:
        """Kills all nodes and starts new ones; the new head has the same port and no state."""
        for node in self.nodes:
            node.kill()
        port = int(self.address.rpartition(":")[2])
        self.head = self._start(port=port)
        self.others = [self._start(self.address) for _ in self.others]

    def _start(self, gcs_address: str | None = None, port: int = 0) -> RayNode:
        settings = {
            "gcs_address": gcs_address,
            "port": port,
            "cpus": self._cpus,
            # Actors ask for this resource, so that they do not run on the head.
            "resources": {} if gcs_address is None else {"evaluation": 1},
            "folder": str(self._folder),
        }
        # Ray waits 30 s for a raylet, which is too short on a machine whose CPUs are all busy.
        for _ in range(_MAX_STARTS - 1):
            with contextlib.suppress(NodeNotStarted):
                return RayNode(self.environment, settings)
        return RayNode(self.environment, settings)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Returns once the condition is true. Raises TimeoutError, which names `what` is awaited."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {_TIMEOUT_SECONDS} s there are still not {what}")
        time.sleep(0.05)


def _children(parent: int) -> list[tuple[int, str]]:
    """Returns the PIDs and titles of a process's children."""
    children = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for pid in (task / "children").read_text().split():
                with contextlib.suppress(OSError):
                    title = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                    children.append((int(pid), title))
    return children


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
