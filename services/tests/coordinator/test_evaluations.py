"""Tests evaluation jobs."""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from laboratory.tests.studies.small_studies import SMALL
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.evaluation.local import LocalEvaluator
from remy_laboratory.studies.networks import study_network
from remy_laboratory.studies.study import parse_study
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.checkpointing import RunSettings
from remy_services.coordinator.evaluation_run import EvaluatedParts, EvaluationRun
from remy_services.coordinator.farm import FarmSettings
from remy_services.jobs.states import CANCELLED, FAILED, PAUSED, RUNNING, SUCCEEDED
from remy_services.transport.grpc import SimulatorIdentity
from remy_simulator import columns
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)
from services.tests.coordinator.test_traces import upload
from services.tests.coordinator.test_transfer import export_archive, import_archive
from tests.waiting import wait_until

_NETWORK = {
    "rate_mbps": 8,
    "rtt_ms": 20,
    "traffic": {"exponential_time": {"mean_ms": 500}, "mean_off_ms": 500},
    "senders": 2,
}


def small_request(
    first_run: int, seconds: float = 2.0, **network_keys: Any
) -> evaluation_pb2.EvaluationRequest:
    """Returns a request with two runs of a network."""
    study = parse_study(SMALL, "small.yaml", study="small", name="figure")
    network = study_network(study.rows[0].senders, _NETWORK | network_keys)
    return columns.packed(
        evaluation_pb2.EvaluationRequest(
            candidates=[evaluation_pb2.Candidate()],
            specimens=[network.run(run) for run in range(first_run, first_run + 2)],
            duration_ms=seconds * 1000,
            seed=1,
        )
    )


_SMALL = [small_request(run) for run in range(0, 12, 2)]
#: Slow requests, so that a test can act while they run.
_LONG = [small_request(run, seconds=400.0) for run in range(0, 24, 2)]


def submit_evaluation(
    client: Client, requests: list[evaluation_pb2.EvaluationRequest], **head: object
) -> job_pb2.Job:
    head.setdefault("simulator_sha256", SimulatorIdentity.own().sha256)

    def stream() -> Iterator[messages.SubmitEvaluationRequest]:
        for number, request in enumerate(requests):
            first = messages.SubmitEvaluationRequest(**head) if number == 0 else None  # type: ignore[arg-type]
            message = first or messages.SubmitEvaluationRequest()
            message.request = request.SerializeToString(deterministic=True)
            yield message

    call = client.stub.SubmitEvaluation
    job: job_pb2.Job = call(stream(), timeout=TIMEOUT_SECONDS, metadata=client.metadata).job
    return job


def _outcome(client: Client, job: str, part: int) -> bytes:
    request = messages.ReadEvaluationRequest(job=job, part=part)
    return b"".join(each.piece for each in client.call("ReadEvaluation", request))


def _outcomes(client: Client, job: str, parts: int) -> list[bytes]:
    return [_outcome(client, job, part) for part in range(parts)]


def _embedded(requests: list[evaluation_pb2.EvaluationRequest]) -> list[bytes]:
    with closing(LocalEvaluator()) as evaluator:
        return [
            evaluator.evaluate(request).SerializeToString(deterministic=True)
            for request in requests
        ]


def _evaluations(client: Client, job: str) -> int:
    """Returns the number of simulations made for a job."""
    return client.get(job).progress.evaluations


def test_outcomes_equal_those_of_local_evaluation(client: Client) -> None:
    job = submit_evaluation(client, _SMALL, name="cells", priority=3)
    assert (job.name, job.priority, len(job.evaluation.parts)) == ("cells", 3, len(_SMALL))
    ended = client.until_final(job.id)
    assert (ended.state, ended.stop_reason) == (SUCCEEDED, progress_pb2.STOP_REASON_EVALUATED)
    assert ended.progress.share_done == 1
    assert ended.progress.evaluations == 2 * len(_SMALL)
    assert _outcomes(client, job.id, len(_SMALL)) == _embedded(_SMALL)
    (listed,) = client.call("ListJobs", messages.ListJobsRequest()).jobs
    assert listed.HasField("evaluation")
    assert not listed.evaluation.parts


def test_scores_with_a_price_of_lost_packets_equal_those_of_local_evaluation(
    client: Client,
) -> None:
    priced, free = (
        [small_request(run, buffer={"packets": 4}) for run in range(0, 8, 2)] for _ in range(2)
    )
    for request in priced:
        request.objective.CopyFrom(spec_pb2.Objective(alpha=1, beta=1, delta=1, loss_price=5))
    for request in free:
        request.objective.CopyFrom(spec_pb2.Objective(alpha=1, beta=1, delta=1))
    job = submit_evaluation(client, priced)
    client.until_final(job.id)
    assert _outcomes(client, job.id, len(priced)) == _embedded(priced) != _embedded(free)


def test_a_repeated_request_id_creates_one_job(client: Client) -> None:
    first = submit_evaluation(client, _SMALL, client_request_id="one")
    assert submit_evaluation(client, _SMALL, client_request_id="one", priority=9).id == first.id
    with pytest.raises(grpc.RpcError) as caught:
        submit_evaluation(client, _SMALL[1:], client_request_id="one")
    assert refusal(caught.value)[0] == grpc.StatusCode.ALREADY_EXISTS


def test_outcomes_of_other_jobs_are_reused(client: Client) -> None:
    first = submit_evaluation(client, _SMALL[:4])
    client.until_final(first.id)
    second = submit_evaluation(client, _SMALL)
    client.until_final(second.id)
    assert _evaluations(client, second.id) == 2 * len(_SMALL[4:])
    assert _outcomes(client, second.id, len(_SMALL)) == _embedded(_SMALL)


def test_pause_resume_extend_and_cancel(client: Client) -> None:
    job = submit_evaluation(client, _LONG).id
    client.until(job, lambda shown: shown.progress.step >= 1)
    client.call("PauseJob", messages.PauseJobRequest(job=job))
    paused = client.until_state(job, PAUSED)
    assert 1 <= paused.progress.step < len(_LONG)
    client.call("ExtendJob", messages.ExtendJobRequest(job=job, priority=5))
    client.call("ResumeJob", messages.ResumeJobRequest(job=job))
    resumed = client.until(job, lambda shown: shown.progress.step > paused.progress.step)
    assert resumed.priority == 5
    client.call("CancelJob", messages.CancelJobRequest(job=job))
    ended = client.until_final(job)
    assert ended.state == CANCELLED
    assert _outcome(client, job, 0) == _embedded(_LONG[:1])[0]
    # A new job reuses the outcomes of the cancelled one.
    again = submit_evaluation(client, _LONG[: ended.progress.step]).id
    assert client.until_final(again).progress.evaluations == 0


def test_a_higher_priority_preempts_an_evaluation(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    farm = replace(settings.farm, jobs=replace(settings.farm.jobs, running_jobs=1))
    with RunningServer(replace(settings, farm=farm)) as server:
        client = server.client()
        low = submit_evaluation(client, _LONG).id
        client.until_state(low, RUNNING)
        high = client.submit(small_joint_spec(), priority=1).id
        client.until_final(high)
        events = client.history(low)
    assert any("preempted" in each.state_changed.message for each in events)


def test_parts_behind_a_slow_one_are_evaluated_without_busy_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated, turns = set(), []
    evaluate, wait = EvaluationRun._evaluate, EvaluationRun._wait

    async def recording_evaluate(run: EvaluationRun, number: int, kept: EvaluatedParts) -> Any:
        outcome = await evaluate(run, number, kept)
        evaluated.add(number)
        return outcome

    async def counting_wait(run: EvaluationRun) -> None:
        turns.append(run)
        await wait(run)

    monkeypatch.setattr(EvaluationRun, "_evaluate", recording_evaluate)
    monkeypatch.setattr(EvaluationRun, "_wait", counting_wait)
    # Two threads run the slow part, and one the others.
    settings = settings_for(tmp_path, threads=3)
    run_settings = RunSettings(checkpoint_seconds=0.0)
    with RunningServer(replace(settings, farm=replace(settings.farm, runs=run_settings))) as server:
        client = server.client()
        job = submit_evaluation(client, [small_request(0, seconds=1e9), *_SMALL, *_LONG])
        parts = 1 + len(_SMALL) + len(_LONG)
        wait_until(lambda: evaluated == set(range(1, parts)))
        before = len(turns)
        time.sleep(0.5)
        # The run only waits for the slow part.
        assert len(turns) - before < 10
        client.call("CancelJob", messages.CancelJobRequest(job=job.id))
        assert client.until_final(job.id).state == CANCELLED


def test_a_restart_repeats_no_evaluation(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        job = submit_evaluation(client, _LONG).id
        before = client.until(job, lambda shown: shown.progress.step >= 2).progress.step
    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        assert client.get(job).progress.step >= before
        ended = client.until_final(job)
        assert ended.state == SUCCEEDED
        assert ended.progress.evaluations == 2 * len(_LONG)
        outcomes = _outcomes(client, job, len(_LONG))
        # The same requests from another client.
        again = submit_evaluation(client, _LONG).id
        assert again != job
        assert client.until_final(again).progress.evaluations == 0
        assert _outcomes(client, again, len(_LONG)) == outcomes == _embedded(_LONG)


def test_outcomes_of_imported_jobs_are_not_reused(client: Client) -> None:
    job = submit_evaluation(client, _SMALL).id
    client.until_final(job)
    archive = export_archive(client, job)
    client.call("DeleteJob", messages.DeleteJobRequest(job=job))
    import_archive(client, archive)
    assert _outcomes(client, job, len(_SMALL)) == _embedded(_SMALL)
    again = submit_evaluation(client, _SMALL).id
    assert client.until_final(again).progress.evaluations == 2 * len(_SMALL)


def test_calls_for_design_jobs_are_refused(client: Client) -> None:
    job = submit_evaluation(client, _SMALL).id
    client.until_final(job)
    for method, request in (
        ("GetRemyCC", messages.GetRemyCCRequest(job=job)),
        ("ForkJob", messages.ForkJobRequest(job=job)),
        ("CompareJobs", messages.CompareJobsRequest(jobs=[job])),
        ("ExtendJob", messages.ExtendJobRequest(job=job, joint_steps=3)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            client.call(method, request)
        code, sentence = refusal(caught.value)
        assert code == grpc.StatusCode.FAILED_PRECONDITION, method
        assert "is an evaluation job" in sentence
    assert not client.call("ListEpochs", messages.ListEpochsRequest(job=job)).epochs


def test_missing_outcomes_are_refused(client: Client) -> None:
    design = client.submit(small_joint_spec()).id
    job = submit_evaluation(client, _LONG).id
    for name, part, code in (
        (design, 0, grpc.StatusCode.FAILED_PRECONDITION),
        (job, len(_LONG) - 1, grpc.StatusCode.FAILED_PRECONDITION),
        (job, len(_LONG), grpc.StatusCode.INVALID_ARGUMENT),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            _outcome(client, name, part)
        assert refusal(caught.value)[0] == code


def _with_a_trace(opportunities_us: bytes) -> evaluation_pb2.EvaluationRequest:
    request = small_request(0)
    link = request.specimen_columns.kinds[0].links.add()
    link.trace.sha256 = hashlib.sha256(opportunities_us).digest()
    link.trace.semantics = 1  # type: ignore[assignment]
    return request


def test_invalid_requests_are_refused(client: Client) -> None:
    empty = evaluation_pb2.EvaluationRequest()
    holding = small_request(0)
    holding.traces.add(opportunities_us=b"12345678")
    for requests, head, words in (
        ([], {}, "simulator_sha256"),
        ([empty], {}, "must have candidates"),
        ([holding], {}, "upload them with UploadTrace"),
        ([_with_a_trace(b"12345678")], {}, "upload it first"),
        (_SMALL, {"simulator_sha256": b"another"}, "install the same version on both sides"),
        (_SMALL, {"weight": -1.0}, "weight"),
        (_SMALL, {"name": "no name/"}, "name"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            submit_evaluation(client, requests, **head)
        code, sentence = refusal(caught.value)
        assert code == grpc.StatusCode.INVALID_ARGUMENT, words
        assert words in sentence


def test_a_request_that_the_simulator_refuses_fails_the_job(client: Client) -> None:
    request = small_request(0)
    request.duration_ms = -1
    job = submit_evaluation(client, [*_SMALL, request]).id
    failed = client.until_final(job)
    assert failed.state == FAILED
    assert failed.failure_reason == job_pb2.FAILURE_REASON_REQUEST_REFUSED


def test_the_packet_limit_fails_the_job(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    farm = FarmSettings(runs=RunSettings(checkpoint_seconds=0.05, maximum_packets=10_000))
    with RunningServer(replace(settings, farm=farm)) as server:
        client = server.client()
        failed = client.until_final(submit_evaluation(client, _LONG).id)
    assert failed.failure_reason == job_pb2.FAILURE_REASON_WORK_LIMIT


def test_uploaded_traces_are_used_and_exported(client: Client) -> None:
    times = array("Q", range(0, 2_000_000, 1500)).tobytes()
    assert upload(client, times) == hashlib.sha256(times).digest()
    job = submit_evaluation(client, [_with_a_trace(times)]).id
    assert client.until_final(job).state == SUCCEEDED
    with_content = _with_a_trace(times)
    with_content.traces.add(sha256=hashlib.sha256(times).digest(), opportunities_us=times)
    assert _outcomes(client, job, 1) == _embedded([with_content])
    # The archive contains the trace.
    archive = export_archive(client, job)
    client.call("DeleteJob", messages.DeleteJobRequest(job=job))
    import_archive(client, archive)
    assert _outcomes(client, job, 1) == _embedded([with_content])
