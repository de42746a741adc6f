"""Tests parsing of Jobs and Pods, and the phase of pods."""

from __future__ import annotations

from typing import Any

import pytest

from remy_services.kubernetes.observed import (
    PodPhase,
    has_crashed,
    observed_job,
    observed_pod,
    phase_of,
)

NOW = 1_764_000_000.0  # 2025-11-24T16:00:00Z


def pod(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    labels = {"remy-farm/job-id": "0001", "batch.kubernetes.io/job-name": "farm-0001-x"}
    return {"metadata": {"name": "p", "uid": "u", "labels": labels, **metadata}, "status": status}


def ended(code: int, *conditions: dict[str, str], reason: str = "Error") -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": reason, "message": "preempted by the cluster"}
    return {
        "phase": "Failed",
        "conditions": list(conditions),
        "containerStatuses": [{"name": "worker", "state": {"terminated": terminated}}],
    }


DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        (pod({"phase": "Running"}), PodPhase.RUNNING),
        (pod({"phase": "Pending"}), PodPhase.WAITING),
        (pod({"phase": "Succeeded"}), PodPhase.DONE),
        (pod({"phase": "Running"}, deletionTimestamp="2025-11-24T16:00:30Z"), PodPhase.TERMINATING),
        (pod({"phase": "Running"}, deletionTimestamp="2025-11-24T15:59:00Z"), PodPhase.LOST),
        (pod(ended(1, DISRUPTED)), PodPhase.PREEMPTED),
        (pod(ended(137, {**DISRUPTED, "status": "False"})), PodPhase.FAILED),
        # The node rebooted unnoticed: reported by the runtime, or by the kubelet.
        (pod(ended(255, reason="Unknown")), PodPhase.PREEMPTED),
        (pod(ended(137, reason="ContainerStatusUnknown")), PodPhase.PREEMPTED),
        # Message texts are ignored, even if they mention preemption.
        (pod(ended(1)), PodPhase.FAILED),
        (pod(ended(143)), PodPhase.STOPPED),
        (pod(ended(137, reason="OOMKilled")), PodPhase.FAILED),
    ],
)
def test_phase_follows_conditions_and_exit_codes(found: dict[str, Any], phase: PodPhase) -> None:
    assert phase_of(observed_pod(found), NOW) is phase


@pytest.mark.parametrize(
    ("status", "crashed"),
    [
        (ended(1), True),
        (ended(139), True),
        (ended(137, reason="OOMKilled"), True),
        # The container ended with its node.
        (ended(137, reason="ContainerStatusUnknown"), False),
        (ended(137), False),
        (ended(255, reason="Unknown"), False),
        (ended(139, DISRUPTED), False),
        (ended(143), False),
        ({"phase": "Failed"}, False),
        ({"phase": "Running"}, False),
    ],
)
def test_only_failures_of_the_worker_are_crashes(status: dict[str, Any], crashed: bool) -> None:
    assert has_crashed(observed_pod(pod(status))) is crashed


@pytest.mark.parametrize(
    ("status", "waits_for", "message"),
    [
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                    }
                ]
            },
            "Unschedulable",
            "0/3 nodes are available",
        ),
        (
            {
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such"}}}
                ]
            },
            "ImagePullBackOff",
            "no such",
        ),
        ({}, "Starting", ""),
    ],
)
def test_reason_of_a_waiting_pod(status: dict[str, Any], waits_for: str, message: str) -> None:
    found = observed_pod(pod({"phase": "Pending", **status}))
    assert (found.waits_for, found.waits_message) == (waits_for, message)


def test_a_job_is_parsed() -> None:
    job = {
        "metadata": {
            "name": "farm-0001-x",
            "uid": "u",
            "labels": {"remy-farm/job-id": "0001"},
            "annotations": {"remy-farm/workers": "3"},
            "creationTimestamp": "2025-11-24T16:00:00Z",
        },
        "spec": {"parallelism": 4, "suspend": False},
        "status": {
            "conditions": [
                {
                    "type": "Failed",
                    "status": "True",
                    "reason": "PodFailurePolicy",
                    "message": "Container worker failed with exit code 70",
                    "lastTransitionTime": "2025-11-24T16:01:00Z",
                }
            ]
        },
    }
    found = observed_job(job)
    assert (found.parallelism, found.workers, found.created_at) == (4, 3, NOW)
    assert (found.failure, found.finished_at, found.finished) == (
        "PodFailurePolicy",
        NOW + 60,
        True,
    )
