"""Tests the actions of the launcher's reconciler for each combination of design and Jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from remy_proto.v1 import spec_pb2
from remy_services.kubernetes.manifest import (
    Design,
    LauncherSettings,
    Load,
    Owner,
    QueuePriority,
    WorkersPhase,
)
from remy_services.kubernetes.observed import ObservedJob, ObservedPod, Past
from remy_services.kubernetes.reconciliation import Apply, Plan, Remove, reconcile
from services.tests.kubernetes.objects import NOW, SETTINGS, TEMPLATE, design, job, pod


def plan(
    designs: list[Design],
    jobs: list[ObservedJob] | None = None,
    pods: list[ObservedPod] | None = None,
    *,
    settings: LauncherSettings = SETTINGS,
    past: dict[str, Past] | None = None,
    now: float = NOW,
) -> Plan:
    return reconcile(designs, jobs or [], pods or [], settings, None, past or {}, now)


def name_for(target: Design, settings: LauncherSettings = SETTINGS) -> str:
    (action,) = plan([replace(target, phase=WorkersPhase.RUNNING)], settings=settings).actions
    assert isinstance(action, Apply)
    return str(action.manifest["metadata"]["name"])


NAME = name_for(design())
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"


def spec_of(action: object) -> dict[str, Any]:
    assert isinstance(action, Apply)
    return dict(action.manifest["spec"])


def test_a_running_design_gets_one_job() -> None:
    result = plan([design()])
    (action,) = result.actions
    assert spec_of(action)["parallelism"] == 2
    assert spec_of(action)["suspend"] is False
    assert result.sentences == {"0001": "2 workers requested"}


def test_a_matching_job_is_left_alone() -> None:
    found = job(NAME, parallelism=2)
    result = plan([design()], [found], [pod("a", NAME), pod("b", NAME)])
    assert result.actions == ()
    assert result.sentences == {"0001": "2 workers running"}


def test_a_restarted_launcher_adopts_existing_jobs() -> None:
    jobs = [job(NAME, parallelism=2), job(name_for(design("0002")), "0002", parallelism=2)]
    assert plan([design(), design("0002")], jobs).actions == ()


def test_a_job_without_design_is_deleted() -> None:
    assert plan([], [job("farm-0009-x", "0009")]).actions == (Remove("0009", "farm-0009-x"),)


def test_a_job_being_deleted_is_not_deleted_again() -> None:
    assert plan([], [job("farm-0009-x", "0009", deleting=True)]).actions == ()


def test_a_changed_template_replaces_the_job() -> None:
    result = plan([design()], [job("farm-0001-old", parallelism=2)])
    apply, remove = result.actions
    assert isinstance(apply, Apply)
    assert apply.manifest["metadata"]["name"] == NAME
    assert remove == Remove("0001", "farm-0001-old")


def test_pausing_suspends_the_job() -> None:
    (action,) = plan([design(phase=WorkersPhase.PAUSED)], [job(NAME, parallelism=2)]).actions
    assert spec_of(action)["suspend"] is True
    assert (
        plan(
            [design(phase=WorkersPhase.PAUSED)], [job(NAME, parallelism=2, suspended=True)]
        ).actions
        == ()
    )


def test_a_queued_design_gets_no_job() -> None:
    assert plan([design(phase=WorkersPhase.PAUSED)]).actions == ()


def test_resuming_resumes_the_job() -> None:
    (action,) = plan([design()], [job(NAME, parallelism=2, suspended=True)]).actions
    assert spec_of(action)["suspend"] is False


def test_a_failed_job_of_a_paused_design_is_deleted() -> None:
    failed = job(NAME, failure="PodFailurePolicy", finished_at=NOW)
    assert plan([design(phase=WorkersPhase.PAUSED)], [failed]).actions == (Remove("0001", NAME),)


@pytest.mark.parametrize(
    ("found", "ended_at", "removed"),
    [
        # Its workers exit by themselves.
        (job(NAME), NOW - 10, False),
        (job(NAME), None, False),
        # They do not exit in time.
        (job(NAME), NOW - 61, True),
        # A suspended Job would never finish.
        (job(NAME, suspended=True), NOW, True),
        # A finished Job deletes itself after its TTL.
        (job(NAME, complete=True, finished_at=NOW), NOW - 100, False),
    ],
)
def test_the_job_of_an_ended_design(
    found: ObservedJob, ended_at: float | None, removed: bool
) -> None:
    result = plan([design(phase=WorkersPhase.ENDED, ended_at=ended_at)], [found])
    assert result.actions == ((Remove("0001", NAME),) if removed else ())
    assert result.sentences == {}


def test_a_job_failed_by_a_defect_is_kept() -> None:
    failed = job(NAME, failure="PodFailurePolicy", finished_at=NOW - 10_000)
    ended = pod("a", NAME, phase="Failed", exit_code=70, exit_reason="Error")
    result = plan([design()], [failed], [ended])
    assert result.actions == ()
    assert result.sentences["0001"] == (
        f"no workers: their Job {NAME} failed (PodFailurePolicy, the last with exit code 70); it "
        "is not retried until the design is paused and resumed, or the farm is upgraded"
    )


def test_a_job_over_its_backoff_limit_is_recreated_later() -> None:
    failed = job(NAME, failure="BackoffLimitExceeded", finished_at=NOW - 200)
    assert plan([design()], [failed]).actions == ()
    assert "retried in 100 s" in plan([design()], [failed]).sentences["0001"]
    assert plan([design()], [failed], now=NOW + 101).actions == (Remove("0001", NAME),)


def test_a_job_that_completed_early_is_recreated() -> None:
    done = job(NAME, complete=True, finished_at=NOW - 5)
    assert plan([design()], [done]).actions == ()
    assert plan([design()], [done], now=NOW + 5).actions == (Remove("0001", NAME),)


def test_no_job_is_created_while_one_of_its_name_is_being_deleted() -> None:
    assert plan([design()], [job(NAME, deleting=True)]).actions == ()


def test_a_pod_on_a_lost_node_is_replaced() -> None:
    """The Job counts the lost pod until its node is removed, so parallelism is raised by one."""
    found = job(NAME, parallelism=2)
    pods = [pod("a", NAME), pod("b", NAME, ends_at=NOW - 60)]
    result = plan([design()], [found], pods)
    assert spec_of(result.actions[0])["parallelism"] == 3
    assert "1 on unresponsive nodes, replaced" in result.sentences["0001"]
    found = replace(found, parallelism=3, workers=2)
    assert plan([design()], [found], [*pods, pod("c", NAME)]).actions == ()
    back = plan([design()], [found], [pod("a", NAME), pod("c", NAME)])
    assert spec_of(back.actions[0])["parallelism"] == 2


def test_a_terminating_pod_is_not_replaced_twice() -> None:
    pods = [pod("a", NAME), pod("b", NAME, ends_at=NOW + 30)]
    assert plan([design()], [job(NAME, parallelism=2)], pods).actions == ()


def test_counts_include_deleted_pods() -> None:
    found = job(NAME, parallelism=2)
    preempted = pod("a", NAME, phase="Failed", disruption="DeletionByTaintManager", exit_code=1)
    failed = pod("b", NAME, phase="Failed", exit_code=1)
    first = plan([design()], [found], [preempted, failed])
    assert first.counted["0001"].preempted == 1
    assert first.counted["0001"].failed == 1
    second = plan([design()], [found], [pod("c", NAME), pod("d", NAME)], past=dict(first.past))
    assert second.sentences["0001"] == (
        "2 workers running; 1 preempted so far, replaced; 1 failed so far"
    )
    assert plan([], [], past=dict(second.past)).past == {}


def lost(*numbers: int) -> list[ObservedPod]:
    """Returns pods that were lost with their nodes."""
    return [
        pod(f"lost-{each}", NAME, phase="Failed", disruption="DeletionByTaintManager")
        for each in numbers
    ]


def test_a_job_with_long_controller_backoff_is_recreated() -> None:
    # After five losses the controller waits 160 s. The first four pods are already deleted.
    found = [job(NAME, parallelism=2, workers=2)]
    past = dict(plan([design()], found, lost(1, 2, 3, 4)).past)
    past = dict(plan([design()], found, past=past, now=NOW + 100).past)
    result = plan([design()], found, [*lost(5), pod("a", NAME)], past=past, now=NOW + 101)
    assert result.actions == (Remove("0001", NAME),)
    assert "recreated" in result.sentences["0001"]
    # A recreated Job of the same name has no losses.
    anew = [job(NAME, uid="another", parallelism=2, workers=2)]
    result = plan([design()], anew, past=dict(result.past), now=NOW + 105)
    assert result.actions == ()


@pytest.mark.parametrize(
    ("losses", "present", "seconds"),
    [
        # Short waits do not justify recreation: 20 s, or the rest of 40 s.
        (2, 0, 0.0),
        (3, 0, 25.0),
        # Restarting the present workers would cost more than waiting for the missing one.
        (3, 7, 0.0),
        # Without losses, a quota or policy blocks the pods, and recreation does not help.
        (0, 1, 300.0),
    ],
)
def test_a_job_is_kept_if_waiting_costs_less(losses: int, present: int, seconds: float) -> None:
    eight = design(workers=spec_pb2.Workers(minimum=8, maximum=8))
    found = [job(NAME, parallelism=8, workers=8)]
    running = [pod(f"present-{each}", NAME) for each in range(present)]
    pods = lost(*range(losses)) + running
    past = dict(plan([eight], found, pods).past)
    assert plan([eight], found, pods, past=past, now=NOW + seconds).actions == ()


def test_failing_workers_are_left_to_the_controllers_backoff() -> None:
    failed = [pod(f"failed-{each}", NAME, phase="Failed", exit_code=1) for each in range(8)]
    assert plan([design()], [job(NAME, parallelism=2, workers=2)], failed).actions == ()


def test_reasons_of_waiting_pods_are_reported() -> None:
    waiting = [
        pod(name, NAME, phase="Pending", waits_for="Unschedulable", waits_message="0/3 nodes fit.")
        for name in "bc"
    ]
    found = job(NAME, parallelism=3)
    workers = spec_pb2.Workers(minimum=3, maximum=3)
    target = design(workers=workers)
    result = plan([target], [found], [pod("a", NAME), *waiting])
    assert result.sentences["0001"] == (
        "1 of 3 workers running; 2 waiting: Unschedulable (0/3 nodes fit)"
    )


def test_missing_pods_are_explained() -> None:
    found = job(NAME, parallelism=2)
    assert plan([design()], [found], now=NOW + 5).sentences["0001"] == "0 of 2 workers running"
    sentence = plan([design()], [found], now=NOW + 30).sentences["0001"]
    assert "a resource quota or an admission policy" in sentence
    assert f"kubectl describe job {NAME}" in sentence


@pytest.mark.parametrize(
    ("workers", "sentence"),
    [
        (
            spec_pb2.Workers(image="evil/image"),
            "workers.image is evil/image, but this farm allows localhost/*",
        ),
        (spec_pb2.Workers(cpus=5), "workers.cpus is 5, but this farm allows at most 4"),
        (
            spec_pb2.Workers(memory_mib=5000),
            "workers.memory_mib is 5000, but this farm allows at most 4096",
        ),
        (
            spec_pb2.Workers(minimum=21),
            "workers.minimum is 21, but this farm allows at most 20",
        ),
    ],
)
def test_a_design_over_the_limits_gets_no_workers(workers: spec_pb2.Workers, sentence: str) -> None:
    result = plan([design(workers=workers)], [job(NAME)])
    assert result.actions == (Remove("0001", NAME),)
    assert result.sentences["0001"] == f"no workers can be started: {sentence}"


def test_worker_settings_are_in_the_pod_template() -> None:
    workers = spec_pb2.Workers(
        minimum=3, maximum=3, image="localhost/other:2", cpus=1.5, memory_mib=512
    )
    spec = spec_of(plan([design(workers=workers)]).actions[0])
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["parallelism"] == 3
    assert container["image"] == "localhost/other:2"
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "memory": "512Mi"},
        "limits": {"cpu": "1500m", "memory": "512Mi"},
    }
    assert container["env"] == [
        {"name": "A", "value": "b"},
        {"name": "REMY_FARM_WORKER_JOB", "value": "0001"},
    ]
    assert TEMPLATE["spec"]["template"]["spec"]["containers"][0]["image"] == "localhost/worker:1"


def test_jobs_have_an_owner_reference() -> None:
    owner = Owner("apps/v1", "Deployment", "farm-coordinator", "1-2-3")
    (action,) = reconcile([design()], [], [], SETTINGS, owner, {}, NOW).actions
    assert isinstance(action, Apply)
    (reference,) = action.manifest["metadata"]["ownerReferences"]
    assert reference["uid"] == "1-2-3"
    assert action.manifest["metadata"]["name"] == NAME


class TestInAQueue:
    """Tests Jobs in a Kueue queue: Kueue owns `suspend` and the number of workers."""

    QUEUED = LauncherSettings(
        instance="farm",
        template={**TEMPLATE, "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "spot"}}},
        minimum_workers=2,
    )

    def test_the_launcher_leaves_queued_jobs_unchanged(self) -> None:
        (made,) = plan([design()], settings=self.QUEUED).actions
        assert "suspend" not in spec_of(made)
        assert isinstance(made, Apply)
        assert PRIORITY_LABEL not in made.manifest["metadata"]["labels"]
        name = name_for(design(), self.QUEUED)
        waiting = job(name, parallelism=2, suspended=True)
        busy = design(load=Load(1000, 1.0))
        kept = plan([busy], [waiting], settings=self.QUEUED)
        assert kept.actions == ()
        assert kept.sentences["0001"] == "2 workers requested, waiting for admission by Kueue"

    def test_a_design_can_name_its_queue(self) -> None:
        for settings in (SETTINGS, self.QUEUED):
            (made,) = plan([replace(design(), queue_name="team")], settings=settings).actions
            assert isinstance(made, Apply)
            assert made.manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
            assert "suspend" not in spec_of(made)

    def test_pausing_removes_the_job_from_the_queue(self) -> None:
        name = name_for(design(), self.QUEUED)
        result = plan([design(phase=WorkersPhase.PAUSED)], [job(name)], settings=self.QUEUED)
        assert result.actions == (Remove("0001", name),)

    @pytest.mark.parametrize(
        ("priority", "label"), [(-1, None), (0, "low"), (4, "low"), (5, "high"), (9, "high")]
    )
    def test_the_highest_matching_priority_class_is_used(
        self, priority: int, label: str | None
    ) -> None:
        classes = (QueuePriority(5, "high"), QueuePriority(0, "low"))
        settings = msgspec.structs.replace(self.QUEUED, queue_priorities=classes)
        (made,) = plan([replace(design(), priority=priority)], settings=settings).actions
        assert isinstance(made, Apply)
        assert made.manifest["metadata"]["labels"].get(PRIORITY_LABEL) == label
        plain = msgspec.structs.replace(settings, template=TEMPLATE)
        (made,) = plan([replace(design(), priority=priority)], settings=plain).actions
        assert isinstance(made, Apply)
        assert PRIORITY_LABEL not in made.manifest["metadata"]["labels"]
