"""Real worker processes, and what becomes of them."""

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
from remy_services.transport.reproductions import keep_in
from remy_simulator.columns import pack_specimens, unpack_specimens
from tests.fleet.designs import TRACE_BYTES, first_simulation, requests, trace_requests

_DONE, _BAD_INPUT, _UNSUITABLE = 0, 2, 7
_PATIENCE_SECONDS = 120


@pytest.fixture
def farm() -> Iterator[WorkerFarm]:
    with WorkerFarm(WorkerFleetSettings(idle_seconds=0.5)) as farm:
        yield farm


def _long_request() -> evaluation_pb2.EvaluationRequest:
    """Some CPU seconds, in many tasks."""
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
    with_a_thread: Future[Evaluation] = Future()

    def evaluate() -> None:
        try:
            with_a_thread.set_result(farm.share(Share(job_id), request))
        except BaseException as error:
            with_a_thread.set_exception(error)

    threading.Thread(target=evaluate, daemon=True).start()
    return with_a_thread


def _wait_for_results(farm: WorkerFarm, count: int) -> None:
    farm.wait_until(lambda: farm.fleet.snapshot().counts.tasks_done >= count)


def test_a_worker_is_sent_a_trace_once_and_who_takes_its_place_asks_for_it(
    farm: WorkerFarm,
) -> None:
    requests_of_it = trace_requests(4)
    expected = [remy_simulator.evaluate_columns(request) for request in requests_of_it]
    lost = farm.start_worker()
    assert farm.evaluate(requests_of_it[0]) == expected[0]
    # By its hash alone, which the evaluator knows from the request before.
    del requests_of_it[1].traces[:]
    assert farm.evaluate(requests_of_it[1]) == expected[1]
    assert farm.fleet.traffic.trace_bytes == TRACE_BYTES

    # It has the trace, and tasks that it does not answer.
    lost.send_signal(signal.SIGSTOP)
    running = _begin(farm, requests_of_it[2])
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
    lost.kill()
    farm.start_worker()
    assert running.result(_PATIENCE_SECONDS).outcome == expected[2]
    assert farm.evaluate(requests_of_it[3]) == expected[3]
    assert farm.fleet.traffic.trace_bytes == 2 * TRACE_BYTES
    assert farm.fleet.traffic.shared_bytes < TRACE_BYTES / 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_end_ends_in_order(
    farm: WorkerFarm, number: signal.Signals
) -> None:
    request = _long_request()
    leaving, staying = farm.start_worker(), farm.start_worker("--pin-threads")
    farm.wait_for_workers(2)
    running = _begin(farm, request)
    _wait_for_results(farm, 3)
    leaving.send_signal(number)
    assert leaving.wait(_PATIENCE_SECONDS) == _DONE
    assert running.result(_PATIENCE_SECONDS).outcome == remy_simulator.evaluate_columns(request)

    counts = farm.fleet.snapshot().counts
    assert counts.workers_left == {"signal": 1}
    # It answered everything that it had.
    assert not counts.leases_ended["goodbye"]
    assert staying.poll() is None


def _pinned_threads(pid: int) -> int:
    pinned = 0
    for path in Path(f"/proc/{pid}/task").iterdir():
        # Threads that talk come and go.
        with suppress(ProcessLookupError):
            pinned += len(os.sched_getaffinity(int(path.name))) == 1
    return pinned


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one CPU")
@pytest.mark.parametrize(("flags", "pinned"), [((), 0), (("--pin-threads",), 2)])
def test_threads_are_pinned_if_they_are_to_be(
    farm: WorkerFarm, flags: tuple[str, ...], pinned: int
) -> None:
    worker = farm.start_worker(*flags, threads=2)
    # Once it has done something, its threads are there.
    farm.evaluate(requests("paper", 1)[0])
    assert _pinned_threads(worker.pid) == pinned


def test_a_killed_worker_s_tasks_go_to_others_at_once(farm: WorkerFarm) -> None:
    first, request = requests("paper", 2)
    killed = farm.start_worker()
    # Once it has done something, it has told how much it takes.
    farm.evaluate(first)
    # It is given tasks, and answers none.
    killed.send_signal(signal.SIGSTOP)
    running = _begin(farm, request)
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
    killed.kill()
    farm.wait_for_workers(0)
    assert not running.done()

    # Whoever joins is used.
    farm.start_worker(threads=2)
    assert running.result(_PATIENCE_SECONDS).outcome == remy_simulator.evaluate_columns(request)
    counts = farm.fleet.snapshot().counts
    assert counts.leases_ended["lost"] > 0
    assert counts.leases_ended["silent"] == 0


def test_a_task_that_keeps_ending_workers_is_given_up_and_kept(tmp_path: Path) -> None:
    request = _endless_request()
    with WorkerFarm(keep_reproduction=keep_in(tmp_path)) as farm:
        running = _begin(farm, request)
        for _ in range(3):
            worker = farm.start_worker()
            farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
            worker.kill()
            farm.wait_for_workers(0)
        with pytest.raises(TaskQuarantined, match="a task ended 3 workers") as raised:
            running.result(_PATIENCE_SECONDS)
    (kept,) = tmp_path.iterdir()
    assert str(kept) in str(raised.value)
    assert evaluation_pb2.EvaluationRequest.FromString(kept.read_bytes()) == request


def _endless_request() -> evaluation_pb2.EvaluationRequest:
    """One simulation, longer than anybody waits."""
    request = first_simulation(requests("joint", 1)[0])
    request.duration_ms = 1e12
    return request


def _cpu_ticks(pid: int) -> int:
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return int(user) + int(system)


def test_a_simulation_without_end_keeps_no_worker_from_ending(farm: WorkerFarm) -> None:
    worker = farm.start_worker()
    farm.wait_for_workers(1)
    running = _begin(farm, _endless_request())
    farm.wait_until(lambda: farm.fleet.snapshot().tasks_running > 0)
    # The farm has sent it; half a second of CPU later it has arrived and is simulated.
    begun = _cpu_ticks(worker.pid) + os.sysconf("SC_CLK_TCK") // 2
    farm.wait_until(lambda: _cpu_ticks(worker.pid) >= begun)
    worker.terminate()
    assert worker.wait(_PATIENCE_SECONDS) == _DONE
    assert not running.done()
    counts = farm.fleet.snapshot().counts
    assert counts.workers_left == {"signal": 1}
    # It was handed back: nothing is held against it.
    assert not counts.leases_ended["goodbye"]


def test_a_simulation_that_nobody_waits_for_any_more_makes_room(farm: WorkerFarm) -> None:
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


def test_a_worker_of_another_simulator_gets_nothing() -> None:
    other = replace(SimulatorIdentity.own(), version="9.9.9")
    with WorkerFarm(simulator=other) as farm:
        worker = farm.start_worker()
        assert worker.wait(_PATIENCE_SECONDS) == _UNSUITABLE
        assert farm.fleet.snapshot().counts.workers_joined == 0


def test_a_worker_of_one_job_ends_when_that_job_has_nothing_left(farm: WorkerFarm) -> None:
    special = farm.start_worker("--job=special", "--exit-when-idle")
    farm.wait_for_workers(1)
    other = _begin(farm, requests("joint", 1)[0], "other")
    request = requests("paper", 2)[1]
    assert farm.share(Share("special"), request).outcome == remy_simulator.evaluate_columns(request)
    assert special.wait(_PATIENCE_SECONDS) == _DONE
    assert not other.done()
    farm.start_worker()
    other.result(_PATIENCE_SECONDS)


def test_a_worker_waits_for_work_that_is_still_to_come() -> None:
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
        assert worker.wait(_PATIENCE_SECONDS) == _DONE


def test_a_worker_calls_again_until_its_coordinator_is_back() -> None:
    with WorkerFarm() as first:
        worker = first.start_worker()
        first.wait_for_workers(1)
        port = first.port
        # Its farm ends it at the end; this one has to outlive the first coordinator.
        first.detach(worker)
    assert worker.poll() is None
    with WorkerFarm(port=port) as second:
        second.take_over(worker)
        request = requests("joint", 1)[0]
        assert second.evaluate(request) == remy_simulator.evaluate_columns(request)
        assert worker.poll() is None


def test_a_simulation_for_a_coordinator_that_is_gone_makes_room_for_the_next_one() -> None:
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
        assert running.result(_PATIENCE_SECONDS).outcome == remy_simulator.evaluate_columns(request)
        assert worker.poll() is None


def test_a_withdrawn_request_leaves_workers_to_others(farm: WorkerFarm) -> None:
    farm.start_worker()
    farm.wait_for_workers(1)
    with ThreadPoolExecutor(1) as pool:
        abandoned = pool.submit(farm.start_and_cancel, Share("job"), _long_request(), 3)
        abandoned.result(_PATIENCE_SECONDS)
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
def test_flags_that_cannot_be_right_end_a_worker_at_once(
    farm: WorkerFarm, flags: tuple[str, ...]
) -> None:
    assert farm.start_worker(*flags).wait(_PATIENCE_SECONDS) == _BAD_INPUT
