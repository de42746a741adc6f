"""Injects faults into workers by a seeded schedule.

Workers are killed, stopped, terminated, disconnected, stalled, and made to send corrupt results.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

from benchmarks.programs import ROOT
from benchmarks.worker_farm import WorkerFarm
from tests.fleet.network import Link, Network
from tests.waiting import wait_until

_TIMEOUT_SECONDS = 120.0
_DONE, _REFUSED = 0, 6
# The maximum number of results between two faults; it is so small that several workers may be
# missing at once.
_MAX_RESULTS_BETWEEN_FAULTS = 30


class WorkerSlot:
    """A worker behind a proxy, which is replaced when it ends."""

    def __init__(self, farm: WorkerFarm, link: Link) -> None:
        self._farm = farm
        self.link = link
        self.worker = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # Warnings about the injected faults would only fill the log.
        return self._farm.start_worker("--log-level=error", port=self.link.port)

    def kill(self) -> None:
        self.worker.kill()
        self.worker.wait()
        self.worker = self._start()

    def terminate(self) -> None:
        self.worker.terminate()
        assert self.worker.wait(_TIMEOUT_SECONDS) == _DONE
        self.worker = self._start()


class Faults:
    """Injects one fault after another into a working farm."""

    def __init__(self, farm: WorkerFarm, network: Network, workers: int, seed: int) -> None:
        self._farm = farm
        self._rng = random.Random(seed)
        self._slots = [WorkerSlot(farm, network.link(farm.port)) for _ in range(workers)]
        self.counts: Counter[str] = Counter()

    def inject(self, faults: int) -> None:
        """Injects `faults` faults, each kind equally often, in an order that the seed decides."""
        kinds: list[Callable[[], None]] = [
            self._kill,
            self._stop,
            self._terminate,
            self._cut,
            self._stall,
            self._corrupt,
        ]
        schedule = [kinds[number % len(kinds)] for number in range(faults)]
        self._rng.shuffle(schedule)
        for fault in schedule:
            self._wait_for_results(self._rng.randrange(_MAX_RESULTS_BETWEEN_FAULTS))
            fault()
            self.counts[fault.__name__.strip("_")] += 1

    def _kill(self) -> None:
        self._connected_slot().kill()

    def _terminate(self) -> None:
        self._connected_slot().terminate()

    def _cut(self) -> None:
        self._connected_slot().link.cut()

    def _stop(self) -> None:
        """Stops a worker until its leases have expired, then continues it."""
        slot = self._joined_slot()
        slot.worker.send_signal(signal.SIGSTOP)
        self._wait_for_silence()
        slot.worker.send_signal(signal.SIGCONT)

    def _stall(self) -> None:
        slot = self._joined_slot()
        slot.link.stall()
        self._wait_for_silence()
        slot.link.resume()

    def _corrupt(self) -> None:
        """Runs another worker, which corrupts its results, until it is rejected."""
        self._farm.wait_until(lambda: self._responding_workers() >= 1)
        address = f"--coordinator=127.0.0.1:{self._farm.port}"
        with subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.fleet.corrupting_worker"),
                *(address, "--threads=1", "--log-level=error"),
            ],
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                assert process.wait(_TIMEOUT_SECONDS) == _REFUSED
            finally:
                process.kill()

    def _connected_slot(self) -> WorkerSlot:
        """Returns a random slot whose worker is connected."""
        return self._rng.choice(
            wait_until(lambda: [slot for slot in self._slots if slot.link.is_used], "a worker")
        )

    def _joined_slot(self) -> WorkerSlot:
        """Returns a random slot whose worker has joined, so that the farm notices its silence."""
        self._farm.wait_until(lambda: self._responding_workers() >= len(self._slots))
        return self._connected_slot()

    def _responding_workers(self) -> int:
        snapshot = self._farm.fleet.snapshot()
        return snapshot.workers - snapshot.silent_workers

    def _wait_for_silence(self) -> None:
        left = self._farm.fleet.snapshot().counts.workers_left.total()
        # The worker may also give up its connection and leave instead of being silent.
        self._farm.wait_until(
            lambda: (
                self._farm.fleet.snapshot().silent_workers > 0
                or self._farm.fleet.snapshot().counts.workers_left.total() > left
            )
        )

    def _wait_for_results(self, count: int) -> None:
        counts = self._farm.fleet.snapshot().counts
        done = counts.simulations_done
        self._farm.wait_until(lambda: counts.simulations_done >= done + count)
