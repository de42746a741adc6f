"""A coordinator, its Redis and its workers are all killed while a design runs.

REMY_SOAK=1 makes ten times as many faults (`make soak`).
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.worker_farm import REMY_WORKER
from remy_services.client.design_client import DesignClient
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.stores.local_redis import LocalRedis
from tests.children import killed_with_parent
from tests.service.endless_design import (
    check_unaffected,
    end_soon,
    history,
    result,
    submit_endless,
)
from tests.service.watcher import Watcher, connect

_ROUNDS = 20 if os.environ.get("REMY_SOAK") else 2
_WORKERS = 3
_SEED = 20_251_122
_MAX_DELAY_SECONDS = 0.15
_TIMEOUT_SECONDS = 120.0
# The bit of SIGTERM in a mask of blocked signals. A worker that is ready blocks SIGTERM and waits
# for it with sigwait.
_SIGTERM_BIT = 1 << (signal.SIGTERM - 1)


class _Workers:
    """Worker processes of one coordinator; a worker that ends is replaced."""

    def __init__(self, address: str, rng: random.Random) -> None:
        self._address = address
        self._rng = rng
        self._processes = [self._start() for _ in range(_WORKERS)]
        self._stopped: list[subprocess.Popen[bytes]] = []

    def kill(self) -> None:
        index = self._rng.randrange(_WORKERS)
        self._processes[index].kill()
        self._processes[index].wait()
        self._processes[index] = self._start()

    def terminate(self) -> None:
        index = self._rng.randrange(_WORKERS)
        self._processes[index].send_signal(signal.SIGCONT)
        _wait_until_sigterm_is_blocked(self._processes[index].pid)
        self._processes[index].terminate()
        assert self._processes[index].wait(_TIMEOUT_SECONDS) == 0
        self._processes[index] = self._start()

    def stop(self) -> None:
        """Stops a worker until the next call of `stop` or `resume`."""
        self.resume()
        process = self._rng.choice(self._processes)
        process.send_signal(signal.SIGSTOP)
        self._stopped.append(process)

    def resume(self) -> None:
        for process in self._stopped:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
        self._stopped.clear()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        flags = (f"--coordinator={self._address}", "--threads=1", "--log-level=error")
        return subprocess.Popen(killed_with_parent(REMY_WORKER, *flags))


def _wait_until_sigterm_is_blocked(process_id: int) -> None:
    """Waits until a worker handles SIGTERM itself; a worker that is starting would be killed."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    status = Path(f"/proc/{process_id}/status")
    while not int(re.findall(r"^SigBlk:\s*(\w+)$", status.read_text(), re.M)[0], 16) & _SIGTERM_BIT:
        assert time.monotonic() < deadline, "the worker does not handle SIGTERM in time"
        threading.Event().wait(0.02)


@contextmanager
def _workers(address: str, rng: random.Random) -> Iterator[_Workers]:
    workers = _Workers(address, rng)
    try:
        yield workers
    finally:
        workers.close()


def _schedule(
    coordinator: Coordinator, redis: LocalRedis, workers: _Workers, rng: random.Random
) -> list[Callable[[], None]]:
    """Returns _ROUNDS faults of each kind, in an order that the seed decides."""

    def kill_coordinator() -> None:
        coordinator.kill()
        coordinator.start()

    def kill_redis() -> None:
        redis.kill()
        redis.start()

    kinds = [kill_coordinator, kill_redis, workers.kill, workers.terminate, workers.stop]
    schedule = kinds * _ROUNDS
    rng.shuffle(schedule)
    return schedule


def test_faults_in_all_parts_do_not_change_the_result(tmp_path: Path) -> None:
    rng = random.Random(_SEED)
    (tmp_path / "redis").mkdir()
    injected: Counter[str] = Counter()
    with LocalRedis(tmp_path / "redis") as redis:
        flags = ("--store", redis.url, "--checkpoint-seconds", "0.02", "--evaluator", "workers")
        coordinator = Coordinator(tmp_path / "coordinator", *flags)
        try:
            coordinator.start()
            job = submit_endless(coordinator.address)
            with (
                _workers(coordinator.address, rng) as workers,
                Watcher(coordinator.address, job) as watcher,
            ):
                for fault in _schedule(coordinator, redis, workers, rng):
                    watcher.wait_for_step(watcher.step + 1)
                    threading.Event().wait(rng.uniform(0, _MAX_DELAY_SECONDS))
                    fault()
                    injected[fault.__name__] += 1
                workers.resume()
                with connect(coordinator.address) as connection:
                    end_soon(DesignClient(connection), job)
                watcher.wait_for_end()
            finished, table = result(coordinator.address, job)
            coordinator.stop()
        finally:
            coordinator.close()
        stored = history(redis, job)
    assert set(injected.values()) == {_ROUNDS}
    assert finished.progress.recoveries > 0
    check_unaffected(finished, table, stored, watcher.events, tmp_path / "embedded")
