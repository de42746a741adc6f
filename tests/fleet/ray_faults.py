"""Injects faults into a running Ray cluster."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Sequence

from benchmarks.ray_cluster import RayCluster, wait_until
from benchmarks.ray_farm import RayFarm

# Faults wait until the farm has recovered from the one before. Three faults during one task would
# quarantine the task.
_TASKS_BETWEEN_FAULTS = 5


class Faults:
    """Kills or stops parts of a cluster one after another, in a thread of its own."""

    def __init__(
        self, cluster: RayCluster, farm: RayFarm, kinds: Sequence[str], lease_seconds: float
    ) -> None:
        """`kinds` are keys of `_KINDS`, in the order in which the faults are injected."""
        self._cluster = cluster
        self._farm = farm
        self._kinds = kinds
        self._lease_seconds = lease_seconds
        # The seed is fixed, so that a failing run can be repeated.
        self._rng = random.Random(len(kinds))
        self._thread = threading.Thread(target=self._run, name="faults")
        self._error: BaseException | None = None
        self.done = 0

    def start(self) -> None:
        """Starts the thread that injects the faults."""
        self._thread.start()

    @property
    def are_over(self) -> bool:
        """Whether the thread has ended, after the last fault or an error."""
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Waits for the last fault. Raises the exception that ended the thread, if any."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            for kind in self._kinds:
                self._wait_for_tasks()
                _KINDS[kind](self)
                self.done += 1
        except BaseException as error:
            self._error = error

    def _wait_for_tasks(self) -> None:
        done = self._tasks_done() + _TASKS_BETWEEN_FAULTS
        wait_until(lambda: self._tasks_done() >= done, "tasks done after a fault")

    def _tasks_done(self) -> int:
        return self._farm.call_in_loop(self._farm.fleet.snapshot).counts.tasks_done

    def _signal_actor(self, signal_number: int) -> int:
        while True:
            wait_until(lambda: bool(self._cluster.actors), "any actors")
            actors = self._cluster.actors
            with contextlib.suppress(ProcessLookupError, IndexError):
                actor = self._rng.choice(actors)
                os.kill(actor, signal_number)
                return actor

    def _kill_actor(self) -> None:
        self._signal_actor(signal.SIGKILL)

    def _stop_actor(self) -> None:
        """Stops an actor for longer than its leases last, then continues it."""
        actor = self._signal_actor(signal.SIGSTOP)
        threading.Event().wait(self._lease_seconds + 1)
        self._wait_for_tasks()
        with contextlib.suppress(ProcessLookupError):
            os.kill(actor, signal.SIGCONT)

    def _kill_driver(self) -> None:
        wait_until(lambda: self._farm.fleet.driver_pid is not None, "a running driver")
        driver = self._farm.fleet.driver_pid
        if driver is not None:
            os.kill(driver, signal.SIGKILL)

    def _replace_node(self) -> None:
        self._cluster.replace_node()

    def _replace_all(self) -> None:
        self._cluster.replace_all()


_KINDS: dict[str, Callable[[Faults], None]] = {
    "actor killed": Faults._kill_actor,
    "actor stopped": Faults._stop_actor,
    "driver killed": Faults._kill_driver,
    "node lost": Faults._replace_node,
    "all nodes lost": Faults._replace_all,
}


# Faults other than a killed actor take long. A mixture has one of each of these slow kinds, and
# among its other faults one in this many is slow.
_FAULTS_PER_SLOW_FAULT = 50


def mixture(count: int) -> list[str]:
    """Returns `count` faults in random order: all kinds, but mostly killed actors."""
    slow = [kind for kind in _KINDS if kind != "actor killed"]
    kinds = slow + [
        slow[number // _FAULTS_PER_SLOW_FAULT % len(slow)]
        if number % _FAULTS_PER_SLOW_FAULT == 0
        else "actor killed"
        for number in range(1, count - len(slow) + 1)
    ]
    random.Random(count).shuffle(kinds)
    return kinds
