"""What may happen to a Ray cluster, done to one while it is at work."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Sequence

from benchmarks.ray_cluster import RayCluster, wait_until
from benchmarks.ray_farm import RayFarm

# A fault comes when the work has recovered from the one before: what meets the same task three
# times in a row would rightly be taken for the task's fault.
_TASKS_BETWEEN_FAULTS = 5


class Faults:
    """Ends or stops parts of a cluster, one after the other, in a thread of its own."""

    def __init__(
        self, cluster: RayCluster, farm: RayFarm, kinds: Sequence[str], lease_seconds: float
    ) -> None:
        """`kinds` are names of `_KINDS`, in this order."""
        self._cluster = cluster
        self._farm = farm
        self._kinds = kinds
        self._lease_seconds = lease_seconds
        # A seed, so that a run that fails can be run again.
        self._chance = random.Random(len(kinds))
        self._thread = threading.Thread(target=self._run, name="faults")
        self._error: BaseException | None = None
        self.done = 0

    def begin(self) -> None:
        """Starts with the first one."""
        self._thread.start()

    @property
    def are_over(self) -> bool:
        """Whether there will be no more of them, for whatever reason."""
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Waits for the last one. Raises what went wrong."""
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

    def _signal_an_actor(self, number: int) -> int:
        while True:
            wait_until(lambda: bool(self._cluster.actors), "an actor to end")
            actors = self._cluster.actors
            with contextlib.suppress(ProcessLookupError, IndexError):
                actor = self._chance.choice(actors)
                os.kill(actor, number)
                return actor

    def _kill_an_actor(self) -> None:
        self._signal_an_actor(signal.SIGKILL)

    def _stop_an_actor(self) -> None:
        """For longer than its lease."""
        actor = self._signal_an_actor(signal.SIGSTOP)
        threading.Event().wait(self._lease_seconds + 1)
        self._wait_for_tasks()
        with contextlib.suppress(ProcessLookupError):
            os.kill(actor, signal.SIGCONT)

    def _kill_the_driver(self) -> None:
        wait_until(lambda: self._farm.fleet.driver_pid is not None, "a driver to end")
        driver = self._farm.fleet.driver_pid
        if driver is not None:
            os.kill(driver, signal.SIGKILL)

    def _replace_a_node(self) -> None:
        self._cluster.replace_node()

    def _replace_all(self) -> None:
        self._cluster.replace_all()


_KINDS: dict[str, Callable[[Faults], None]] = {
    "actor killed": Faults._kill_an_actor,
    "actor stopped": Faults._stop_an_actor,
    "driver killed": Faults._kill_the_driver,
    "node lost": Faults._replace_a_node,
    "head and all lost": Faults._replace_all,
}


# Besides one of each kind, one of so many faults is dear.
_CHEAP_ONES = 50


def mixture(count: int) -> list[str]:
    """So many faults with all kinds among them, the dear ones seldom, in an order of chance."""
    dear = [kind for kind in _KINDS if kind != "actor killed"]
    kinds = dear + [
        dear[number // _CHEAP_ONES % len(dear)] if number % _CHEAP_ONES == 0 else "actor killed"
        for number in range(1, count - len(dear) + 1)
    ]
    random.Random(count).shuffle(kinds)
    return kinds
