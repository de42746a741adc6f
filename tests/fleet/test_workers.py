"""Tests a fleet of real worker processes that end, die, freeze and return."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import remy_simulator
from benchmarks.worker_farm import WorkerFarm
from remy_farm.evaluation.interface import Evaluation, Share, TaskQuarantined
from remy_proto.v1 import evaluation_pb2
from remy_services.transport.grpc import SimulatorIdentity, WorkerFleetSettings
from remy_services.transport.reproductions import reproduction_writer
from remy_simulator.columns import pack_specimens, unpack_specimens
from tests.fleet.designs import TRACE_BYTES, first_simulation, requests, trace_requests

_DONE, _BAD_INPUT, _UNSUITABLE = 0, 2, 7
_TIMEOUT_SECONDS = 120


@pytest.fixture
def farm() -> Iterator[WorkerFarm]:
    with WorkerFarm(WorkerFleetSettings(idle_seconds=0.5)) as farm:
        yield farm


def _long_request() -> evaluation_pb2.EvaluationRequest:
    """Returns a request that takes some CPU seconds in many tasks."""
    request = requests("joint", 3)[2]
    request.duration_ms = 20_000
    specimens = []
    for copy in range(60):
        for specimen in unpack_specimens(request.specimen_columns):
            specimen.key += copy + 1
            specimens.append(specimen)
    request.specimen_columns.CopyFrom(pack_specimens(specimens))
    return request


def _begin(
    farm: WorkerFarm, request: evaluation_pb2.EvaluationRequest, job_id: str = "job"
) -> Future[Evaluation]:
    """Starts an evaluation in a thread."""
    evaluation: Future[Evaluation] = Future()

    def evaluate() -> None:
        try:
            evaluation.set_result(farm.share(Share(job_id), request))
        except BaseException as error:
            evaluation.set_exception(error)

    threading.Thread(target=evaluate, daemon=True).start()
    return evaluation


def _wait_for_results(farm: WorkerFarm, count: int) -> None:
    farm.wait_until(lambda: farm.fleet.snapshot().counts.tasks_done >= count)


def test_trace_is_sent_once_per_worker(farm: WorkerFarm) -> None:
    traced = trace_requests(4)
    expected = [remy_simulator.evaluate_columns(request) for request in traced]
    lost = farm.start_worker()
    assert farm.evaluate(traced[0]) == expected[0]
    # The request has only the trace's hash; the evaluator has the trace from the request before.
    del traced[1].traces[:]
    assert farm.evaluate(traced[1]) == expected[1]
    assert farm.fleet.traffic.trace_bytes == TRACE_BYTES

    # The stopped worker has the trace, and tasks that it does not finish.
    lost.send_signal(signal.SIGSTOP)
    running = _begin(farm, traced[2])
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
    lost.kill()
    farm.start_worker()
    assert running.result(_TIMEOUT_SECONDS).outcome == expected[2]
    assert farm.evaluate(traced[3]) == expected[3]
    assert farm.fleet.traffic.trace_bytes == 2 * TRACE_BYTES
    assert farm.fleet.traffic.shared_bytes < TRACE_BYTES / 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signalled_worker_finishes_its_tasks(farm: WorkerFarm, number: signal.Signals) -> None:
    request = _long_request()
    leaving, staying = farm.start_worker(), farm.start_worker("--pin-threads")
    farm.wait_for_workers(2)
    running = _begin(farm, request)
    _wait_for_results(farm, 3)
    leaving.send_signal(number)
    assert leaving.wait(_TIMEOUT_SECONDS) == _DONE
    assert running.result(_TIMEOUT_SECONDS).outcome == remy_simulator.evaluate_columns(request)

    counts = farm.fleet.snapshot().counts
    assert counts.workers_left == {"signal": 1}
    # The worker answered all its tasks; it handed none back.
    assert not counts.leases_ended["goodbye"]
    assert staying.poll() is None


def _pinned_threads(pid: int) -> int:
    pinned = 0
    for path in Path(f"/proc/{pid}/task").iterdir():
        # gRPC's threads may have ended meanwhile.
        with suppress(ProcessLookupError):
            pinned += len(os.sched_getaffinity(int(path.name))) == 1
    return pinned


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one CPU")
@pytest.mark.parametrize(("flags", "pinned"), [((), 0), (("--pin-threads",), 2)])
def test_pin_threads_option_pins_the_simulating_threads(
    farm: WorkerFarm, flags: tuple[str, ...], pinned: int
) -> None:
    worker = farm.start_worker(*flags, threads=2)
    # The worker starts its threads with its first task.
    farm.evaluate(requests("paper", 1)[0])
    assert _pinned_threads(worker.pid) == pinned


def test_tasks_of_a_killed_worker_go_to_others_at_once(farm: WorkerFarm) -> None:
    first, request = requests("paper", 2)
    killed = farm.start_worker()
    # After an evaluation the worker is known to be connected and has capacity.
    farm.evaluate(first)
    # The stopped worker is given tasks and does not answer.
    killed.send_signal(signal.SIGSTOP)
    running = _begin(farm, request)
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
    killed.kill()
    farm.wait_for_workers(0)
    assert not running.done()

    # A worker that joins later gets the tasks.
    farm.start_worker(threads=2)
    assert running.result(_TIMEOUT_SECONDS).outcome == remy_simulator.evaluate_columns(request)
    counts = farm.fleet.snapshot().counts
    assert counts.leases_ended["lost"] > 0
    assert counts.leases_ended["silent"] == 0


def test_task_that_keeps_ending_workers_is_quarantined_and_saved(tmp_path: Path) -> None:
    request = _endless_request()
    with WorkerFarm(keep_reproduction=reproduction_writer(tmp_path)) as farm:
        running = _begin(farm, request)
        for _ in range(3):
            worker = farm.start_worker()
            farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
            worker.kill()
            farm.wait_for_workers(0)
        with pytest.raises(TaskQuarantined, match="a task killed 3 workers") as raised:
            running.result(_TIMEOUT_SECONDS)
    (saved,) = tmp_path.iterdir()
    assert str(saved) in str(raised.value)
    assert evaluation_pb2.EvaluationRequest.FromString(saved.read_bytes()) == request


def _endless_request() -> evaluation_pb2.EvaluationRequest:
    """Returns a request for one simulation that never ends."""
    request = first_simulation(requests("joint", 1)[0])
    request.duration_ms = 1e12
    return request


def _cpu_ticks(pid: int) -> int:
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return int(user) + int(system)


def test_worker_in_an_endless_simulation_can_be_terminated(farm: WorkerFarm) -> None:
    worker = farm.start_worker()
    farm.wait_for_workers(1)
    running = _begin(farm, _endless_request())
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
    # The task has been sent; after half a second of CPU time the worker is simulating it.
    simulating = _cpu_ticks(worker.pid) + os.sysconf("SC_CLK_TCK") // 2
    farm.wait_until(lambda: _cpu_ticks(worker.pid) >= simulating)
    worker.terminate()
    assert worker.wait(_TIMEOUT_SECONDS) == _DONE
    assert not running.done()
    counts = farm.fleet.snapshot().counts
    assert counts.workers_left == {"signal": 1}
    # The worker handed the task back, which does not count against the task.
    assert not counts.leases_ended["goodbye"]


def test_cancelled_simulation_frees_its_worker(farm: WorkerFarm) -> None:
    farm.start_worker()

    async def begin_and_withdraw() -> None:
        evaluation = asyncio.create_task(farm.fleet.evaluate(Share("endless"), _endless_request()))
        while farm.fleet.snapshot().tasks_running == 0:
            await asyncio.sleep(0.01)
        evaluation.cancel()
        await asyncio.gather(evaluation, return_exceptions=True)

    farm.call(begin_and_withdraw())
    request = requests("joint", 1)[0]
    assert farm.evaluate(request) == remy_simulator.evaluate_columns(request)


def test_worker_with_another_simulator_is_rejected() -> None:
    other = replace(SimulatorIdentity.own(), version="9.9.9")
    with WorkerFarm(simulator=other) as farm:
        worker = farm.start_worker()
        assert worker.wait(_TIMEOUT_SECONDS) == _UNSUITABLE
        assert farm.fleet.snapshot().counts.workers_joined == 0


def test_worker_of_one_job_exits_when_the_job_has_no_tasks(farm: WorkerFarm) -> None:
    special = farm.start_worker("--job=special", "--exit-when-idle")
    farm.wait_for_workers(1)
    other = _begin(farm, requests("joint", 1)[0], "other")
    request = requests("paper", 2)[1]
    assert farm.share(Share("special"), request).outcome == remy_simulator.evaluate_columns(request)
    assert special.wait(_TIMEOUT_SECONDS) == _DONE
    assert not other.done()
    farm.start_worker()
    other.result(_TIMEOUT_SECONDS)


def test_exit_when_idle_waits_while_the_job_may_have_more_tasks() -> None:
    work_left = threading.Event()
    work_left.set()
    settings = WorkerFleetSettings(idle_seconds=0.1)
    with WorkerFarm(settings, work_left=lambda job_id: work_left.is_set()) as farm:
        worker = farm.start_worker("--exit-when-idle")
        farm.wait_for_workers(1)
        for request in requests("joint", 3):
            farm.evaluate(request)
        assert worker.poll() is None
        work_left.clear()
        assert worker.wait(_TIMEOUT_SECONDS) == _DONE


def test_worker_reconnects_when_its_coordinator_is_back() -> None:
    with WorkerFarm() as first:
        worker = first.start_worker()
        first.wait_for_workers(1)
        port = first.port
        # Without this the first farm would kill the worker when it is closed.
        first.detach(worker)
    assert worker.poll() is None
    with WorkerFarm(port=port) as second:
        second.take_over(worker)
        request = requests("joint", 1)[0]
        assert second.evaluate(request) == remy_simulator.evaluate_columns(request)
        assert worker.poll() is None


def test_reconnected_worker_abandons_simulations_of_the_old_coordinator() -> None:
    with WorkerFarm() as first:
        worker = first.start_worker()
        _begin(first, _endless_request())
        first.wait_until(lambda: first.fleet.snapshot().tasks_running > 0)
        port = first.port
        first.detach(worker)
    with WorkerFarm(port=port) as second:
        second.take_over(worker)
        request = requests("joint", 1)[0]
        running = _begin(second, request)
        assert running.result(_TIMEOUT_SECONDS).outcome == remy_simulator.evaluate_columns(request)
        assert worker.poll() is None


def test_cancelled_request_frees_its_workers(farm: WorkerFarm) -> None:
    farm.start_worker()
    farm.wait_for_workers(1)
    with ThreadPoolExecutor(1) as pool:
        cancelled = pool.submit(farm.start_and_cancel, Share("job"), _long_request(), 3)
        cancelled.result(_TIMEOUT_SECONDS)
    request = requests("joint", 1)[0]
    assert farm.evaluate(request) == remy_simulator.evaluate_columns(request)
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running == 0)
    assert farm.fleet.snapshot().tasks_waiting == 0


@pytest.mark.parametrize(
    "flags",
    [
        ("--coordinator=nonsense",),
        ("--token-file=/nowhere/token",),
        ("--tls-ca=/nowhere/ca.pem",),
        ("--insecure", "--tls-server-name=farm"),
        ("--tls-cert=/nowhere/cert.pem",),
    ],
)
def test_worker_with_invalid_flags_exits_at_once(farm: WorkerFarm, flags: tuple[str, ...]) -> None:
    assert farm.start_worker(*flags).wait(_TIMEOUT_SECONDS) == _BAD_INPUT
