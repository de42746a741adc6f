"""A Ray cluster on this machine, whose parts can be ended and started again one by one."""

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

# Machines that run tests are slow and busy.
_PATIENCE_SECONDS = 180.0
_MOST_STARTS = 4
_ROOT = Path(__file__).resolve().parent.parent


class NodeNotStarted(Exception):
    """Ray gave the start of a node up."""


class RayNode:
    """A node's processes."""

    def __init__(self, environment: Mapping[str, str], settings: dict[str, Any]) -> None:
        """Returns when the node is there. Raises NodeNotStarted."""
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
        there = json.loads(line)
        self.address: str = there["address"]
        self._pids = there["processes"]

    @property
    def raylet(self) -> int:
        """The process that all others of a node end with, but for the head's books."""
        return self._pids["raylet"][0]

    @property
    def actors(self) -> list[int]:
        """Processes that simulate, or could."""
        return [pid for pid, name in _children(self.raylet) if name.startswith("ray::Evaluation")]

    @property
    def processes(self) -> list[int]:
        """All that there are of it."""
        own = [pid for group in self._pids.values() for pid in group]
        return own + [pid for parent in own for pid, _ in _children(parent)]

    def kill(self) -> None:
        """As a machine goes that is switched off."""
        for pid in self.processes:
            _kill(pid)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self) -> None:
        """Ends it in order, then what is left of it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=15)
        self.kill()


class RayCluster:
    """A head and other nodes, all on the loopback address.

    All but the head have the resource "evaluation".
    """

    def __init__(self, nodes: int = 1, *, cpus: int = 1, **settings: str) -> None:
        """`cpus` are those of each node; `settings` are Ray's, as RAY_NAME in the environment."""
        self._cpus = cpus
        # The path of a socket must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
        token = self._folder / "token"
        token.write_text(secrets.token_hex(32), encoding="ascii")
        token.chmod(0o600)
        self.environment = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            # Ray would take the machine's own address in place of the loopback one.
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
        """All that there are."""
        return [self.head, *self.others]

    @property
    def actors(self) -> list[int]:
        """Processes of all nodes that simulate, or could."""
        return [pid for node in self.nodes for pid in node.actors]

    @property
    def processes(self) -> list[int]:
        """Everything that makes up the cluster, actors too."""
        return [pid for node in self.nodes for pid in node.processes]

    @contextlib.contextmanager
    def as_environment(self) -> Iterator[None]:
        """Has processes that are started meanwhile find the cluster."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def replace_node(self) -> None:
        """Another machine takes the place of one that is gone without notice."""
        self.others.pop(0).kill()
        self.others.append(self._start(self.address))

    def replace_all(self) -> None:
        """The head is gone, and all that it knew; everything is started anew where it was."""
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
            # So that nodes can be told apart by what they have.
            "resources": {} if gcs_address is None else {"evaluation": 1},
            "folder": str(self._folder),
        }
        # Ray waits 30 s for a raylet, which is too short where others want all processors.
        for _ in range(_MOST_STARTS - 1):
            with contextlib.suppress(NodeNotStarted):
                return RayNode(self.environment, settings)
        return RayNode(self.environment, settings)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Returns once a condition holds."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_PATIENCE_SECONDS} s: {what}")
        time.sleep(0.05)


def _children(parent: int) -> list[tuple[int, str]]:
    """The processes that a process started, and their titles."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for word in (task / "children").read_text().split():
                with contextlib.suppress(OSError):
                    title = Path(f"/proc/{word}/cmdline").read_bytes().decode(errors="replace")
                    found.append((int(word), title))
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
