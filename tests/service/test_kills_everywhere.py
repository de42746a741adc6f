"""A coordinator, its Redis and its workers, all of them killed while a design is under way.

REMY_SOAK=1 makes it ten times as many faults (`make soak`).
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
    check_untouched,
    end_soon,
    history,
    result,
    submit_endless,
)
from tests.service.watcher import Watcher, connect

_ROUNDS = 20 if os.environ.get("REMY_SOAK") else 2
_WORKERS = 3
_SEED = 20_251_122
_LONGEST_DELAY_SECONDS = 0.15
_PATIENCE_SECONDS = 120.0
# In the set of signals that a process blocks, which workers wait for instead.
_TERMINATE = 1 << (signal.SIGTERM - 1)


class _Workers:
    """Processes that work for one coordinator, however often it is started again."""

    def __init__(self, address: str, chance: random.Random) -> None:
        self._address = address
        self._chance = chance
        self._processes = [self._start() for _ in range(_WORKERS)]
        self._frozen: list[subprocess.Popen[bytes]] = []

    def kill(self) -> None:
        place = self._chance.randrange(_WORKERS)
        self._processes[place].kill()
        self._processes[place].wait()
        self._processes[place] = self._start()

    def tell_to_end(self) -> None:
        place = self._chance.randrange(_WORKERS)
        self._processes[place].send_signal(signal.SIGCONT)
        _wait_until_it_heeds_signals(self._processes[place].pid)
        self._processes[place].terminate()
        assert self._processes[place].wait(_PATIENCE_SECONDS) == 0
        self._processes[place] = self._start()

    def freeze(self) -> None:
        """One stands still until the next one does."""
        self.thaw()
        frozen = self._chance.choice(self._processes)
        frozen.send_signal(signal.SIGSTOP)
        self._frozen.append(frozen)

    def thaw(self) -> None:
        for process in self._frozen:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
        self._frozen.clear()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        flags = (f"--coordinator={self._address}", "--threads=1", "--log-level=error")
        return subprocess.Popen(killed_with_parent(REMY_WORKER, *flags))


def _wait_until_it_heeds_signals(process_id: int) -> None:
    """A worker that has only just been started is ended by the signal itself."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    status = Path(f"/proc/{process_id}/status")
    while not int(re.findall(r"^SigBlk:\s*(\w+)$", status.read_text(), re.M)[0], 16) & _TERMINATE:
        assert time.monotonic() < deadline, "the worker does not come to heed signals"
        threading.Event().wait(0.02)


@contextmanager
def _workers(address: str, chance: random.Random) -> Iterator[_Workers]:
    workers = _Workers(address, chance)
    try:
        yield workers
    finally:
        workers.close()


def _schedule(
    coordinator: Coordinator, redis: LocalRedis, workers: _Workers, chance: random.Random
) -> list[Callable[[], None]]:
    """Each kind of fault in every round, in an order that the seed decides."""

    def kill_coordinator() -> None:
        coordinator.kill()
        coordinator.start()

    def kill_redis() -> None:
        redis.kill()
        redis.start()

    kinds = [kill_coordinator, kill_redis, workers.kill, workers.tell_to_end, workers.freeze]
    schedule = kinds * _ROUNDS
    chance.shuffle(schedule)
    return schedule


def test_faults_everywhere_leave_no_trace_in_the_result(tmp_path: Path) -> None:
    chance = random.Random(_SEED)
    (tmp_path / "redis").mkdir()
    done: Counter[str] = Counter()
    with LocalRedis(tmp_path / "redis") as redis:
        flags = ("--store", redis.url, "--checkpoint-seconds", "0.02", "--evaluator", "workers")
        coordinator = Coordinator(tmp_path / "coordinator", *flags)
        try:
            coordinator.start()
            job = submit_endless(coordinator.address)
            with (
                _workers(coordinator.address, chance) as workers,
                Watcher(coordinator.address, job) as watcher,
            ):
                for fault in _schedule(coordinator, redis, workers, chance):
                    watcher.wait_for_step(watcher.step + 1)
                    threading.Event().wait(chance.uniform(0, _LONGEST_DELAY_SECONDS))
                    fault()
                    done[fault.__name__] += 1
                workers.thaw()
                with connect(coordinator.address) as connection:
                    end_soon(DesignClient(connection), job)
                watcher.wait_for_end()
            finished, table = result(coordinator.address, job)
            coordinator.stop()
        finally:
            coordinator.close()
        seen = history(redis, job)
    assert set(done.values()) == {_ROUNDS}
    assert finished.progress.recoveries > 0
    check_untouched(finished, table, seen, watcher.events, tmp_path / "embedded")
