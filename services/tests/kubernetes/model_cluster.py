"""A cluster in a few lines: what the Job controller and the kubelets do to Jobs and Pods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remy_services.kubernetes.observed import ObservedJob, ObservedPod, observed_job
from remy_services.kubernetes.reconciliation import Action, Apply
from services.tests.kubernetes.objects import NOW


@dataclass
class ModelCluster:
    """Jobs by name, and the pods made for them."""

    now: float = NOW
    jobs: dict[str, ObservedJob] = field(default_factory=dict)
    pods: dict[str, ObservedPod] = field(default_factory=dict)
    made: int = 0

    def act(self, action: Action) -> None:
        """Does at once what the launcher asks for."""
        if isinstance(action, Apply):
            asked = observed_job(action.manifest)
            old = self.jobs.get(asked.name, replace(asked, uid=asked.name, created_at=self.now))
            self.jobs[asked.name] = replace(
                old,
                parallelism=asked.parallelism,
                workers=asked.workers,
                suspended=asked.suspended,
            )
        else:
            self.jobs.pop(action.name, None)
            self.pods = {n: pod for n, pod in self.pods.items() if pod.job_name != action.name}

    def settle(self) -> None:
        """The Job controller makes what is missing and removes what is too much."""
        for job in self.jobs.values():
            pods = [pod for pod in self.pods.values() if pod.job_name == job.name]
            live = [pod for pod in pods if pod.phase in ("Pending", "Running")]
            wanted = 0 if job.suspended or job.finished else job.parallelism
            for pod in live[wanted:]:
                del self.pods[pod.name]
            for _ in range(wanted - len(live)):
                self.made += 1
                name = f"{job.name}-{self.made}"
                self.pods[name] = ObservedPod(name, name, job.job_id, job.name, job.uid, "Running")

    def end(self, name: str, *, disruption: str | None = None, exit_code: int = 1) -> None:
        """A pod ends: taken away by the cluster, or by itself."""
        pod = self.pods[name]
        self.pods[name] = replace(pod, phase="Failed", disruption=disruption, exit_code=exit_code)

    def fail(self, name: str, reason: str) -> None:
        """The Job controller gives a Job up."""
        self.jobs[name] = replace(self.jobs[name], failure=reason, finished_at=self.now)
