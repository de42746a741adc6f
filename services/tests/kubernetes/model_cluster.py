"""Model of the Job controller and the kubelets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remy_services.kubernetes.observed import ObservedJob, ObservedPod, observed_job
from remy_services.kubernetes.reconciliation import Action, Apply
from services.tests.kubernetes.objects import NOW


@dataclass
class ModelCluster:
    """Jobs by name, and their pods."""

    now: float = NOW
    jobs: dict[str, ObservedJob] = field(default_factory=dict)
    pods: dict[str, ObservedPod] = field(default_factory=dict)
    created: int = 0

    def act(self, action: Action) -> None:
        """Applies an action of the launcher."""
        if isinstance(action, Apply):
            applied = observed_job(action.manifest)
            old = self.jobs.get(
                applied.name, replace(applied, uid=applied.name, created_at=self.now)
            )
            self.jobs[applied.name] = replace(
                old,
                parallelism=applied.parallelism,
                workers=applied.workers,
                suspended=applied.suspended,
            )
        else:
            self.jobs.pop(action.name, None)
            self.pods = {n: pod for n, pod in self.pods.items() if pod.job_name != action.name}

    def settle(self) -> None:
        """Creates missing pods and deletes surplus ones, like the Job controller."""
        for job in self.jobs.values():
            pods = [pod for pod in self.pods.values() if pod.job_name == job.name]
            live = [pod for pod in pods if pod.phase in ("Pending", "Running")]
            wanted = 0 if job.suspended or job.finished else job.parallelism
            for pod in live[wanted:]:
                del self.pods[pod.name]
            for _ in range(wanted - len(live)):
                self.created += 1
                name = f"{job.name}-{self.created}"
                self.pods[name] = ObservedPod(name, name, job.job_id, job.name, job.uid, "Running")

    def end(self, name: str, *, disruption: str | None = None, exit_code: int = 1) -> None:
        """Ends a pod, by disruption or with an exit code."""
        pod = self.pods[name]
        self.pods[name] = replace(pod, phase="Failed", disruption=disruption, exit_code=exit_code)

    def fail(self, name: str, reason: str) -> None:
        """Marks a Job as failed, like the Job controller."""
        self.jobs[name] = replace(self.jobs[name], failure=reason, finished_at=self.now)
