"""Workers that are killed, frozen, told to end, cut off and wrong, by a seeded schedule."""

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

_PATIENCE_SECONDS = 120.0
_DONE, _REFUSED = 0, 6
# Results between two faults: few enough that several workers may be away at once.
_MOST_RESULTS_BETWEEN = 30


class Place:
    """Where there is always a worker: who ends is replaced."""

    def __init__(self, farm: WorkerFarm, link: Link) -> None:
        self._farm = farm
        self.link = link
        self.worker = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # What it complains of is what is done to it.
        return self._farm.start_worker("--log-level=error", port=self.link.port)

    def kill(self) -> None:
        self.worker.kill()
        self.worker.wait()
        self.worker = self._start()

    def tell_to_end(self) -> None:
        self.worker.terminate()
        assert self.worker.wait(_PATIENCE_SECONDS) == _DONE
        self.worker = self._start()


class Faults:
    """Does harm to a farm of workers, one thing after another, while it works."""

    def __init__(self, farm: WorkerFarm, network: Network, places: int, seed: int) -> None:
        self._farm = farm
        self._chance = random.Random(seed)
        self._places = [Place(farm, network.link(farm.port)) for _ in range(places)]
        self.counts: Counter[str] = Counter()

    def do(self, faults: int) -> None:
        """So many faults, each kind equally often, in an order that the seed decides."""
        kinds: list[Callable[[], None]] = [
            self._kill,
            self._freeze,
            self._tell_to_end,
            self._cut,
            self._stall,
            self._corrupt,
        ]
        schedule = [kinds[number % len(kinds)] for number in range(faults)]
        self._chance.shuffle(schedule)
        for fault in schedule:
            self._wait_for_results(self._chance.randrange(_MOST_RESULTS_BETWEEN))
            fault()
            self.counts[fault.__name__.strip("_")] += 1

    def _kill(self) -> None:
        self._somewhere().kill()

    def _tell_to_end(self) -> None:
        self._somewhere().tell_to_end()

    def _cut(self) -> None:
        self._somewhere().link.cut()

    def _freeze(self) -> None:
        """For longer than its lease, so that others have its tasks when it goes on."""
        place = self._somewhere_joined()
        place.worker.send_signal(signal.SIGSTOP)
        self._wait_for_silence()
        place.worker.send_signal(signal.SIGCONT)

    def _stall(self) -> None:
        place = self._somewhere_joined()
        place.link.stall()
        self._wait_for_silence()
        place.link.resume()

    def _corrupt(self) -> None:
        """A worker more, whose results are damaged, until it is found out."""
        self._farm.wait_until(lambda: self._serving() >= 1)
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
                assert process.wait(_PATIENCE_SECONDS) == _REFUSED
            finally:
                process.kill()

    def _somewhere(self) -> Place:
        """A place whose worker is connected."""
        return self._chance.choice(
            wait_until(lambda: [place for place in self._places if place.link.is_used], "a worker")
        )

    def _somewhere_joined(self) -> Place:
        """A place whose worker has said hello: one that has not is nobody whose silence is told."""
        self._farm.wait_until(lambda: self._serving() >= len(self._places))
        return self._somewhere()

    def _serving(self) -> int:
        snapshot = self._farm.fleet.snapshot()
        return snapshot.workers - snapshot.silent_workers

    def _wait_for_silence(self) -> None:
        left = self._farm.fleet.snapshot().counts.workers_left.total()
        # A worker that is not heard of; or one that gave up its connection in the meantime.
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
