"""The threads that simulate."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

import structlog

from remy_simulator import RuleTable
from remy_workers.desk import Desk
from remy_workers.simulation import simulate
from remy_workers.telemetry.metrics import WorkerMetrics
from remy_workers.telemetry.tracing import task_span

# A little behind the threads that talk, which need next to nothing, but at once.
_NICENESS = 1

#: Tasks with tables as the simulator has them.
SimulationDesk = Desk[Sequence[RuleTable]]

_log = structlog.get_logger()


def start_simulation_threads(
    count: int,
    desk: SimulationDesk,
    metrics: WorkerMetrics,
    *,
    pin: bool,
    on_failure: Callable[[], None],
) -> None:
    """Threads that do what comes to the desk, for as long as the process lives.

    With `pin` each stays on one CPU. `on_failure` is called after an error that is not the task's
    fault has been logged; that thread does nothing more.
    """
    cpus = sorted(os.sched_getaffinity(0))

    def run(number: int) -> None:
        thread_id = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread_id)
        os.setpriority(os.PRIO_PROCESS, thread_id, niceness + _NICENESS)
        if pin:
            os.sched_setaffinity(thread_id, {cpus[number % len(cpus)]})
        try:
            while True:
                _do_one(desk, metrics)
        except BaseException:
            _log.exception("a simulation thread failed")
            on_failure()

    for number in range(count):
        threading.Thread(target=run, args=(number,), name=f"simulate-{number}", daemon=True).start()


def _do_one(desk: SimulationDesk, metrics: WorkerMetrics) -> None:
    work = desk.take()
    metrics.task_started()
    with task_span(
        work.trace_parent,
        job_id=work.job_id,
        candidates=len(work.request.candidates),
        specimens=len(work.request.specimens),
    ):
        answer = simulate(work)
    is_wanted = desk.hand_in(work, answer.message)
    if answer.is_refusal:
        metrics.task_refused()
        _log.warning("the simulator refuses a task", job_id=work.job_id)
        return
    metrics.task_done(
        wall_seconds=answer.wall_seconds,
        cpu_seconds=answer.cpu_seconds,
        evaluations=answer.simulations,
        packets=answer.packets,
    )
    if not is_wanted:
        _log.debug("a result came too late", job_id=work.job_id)
