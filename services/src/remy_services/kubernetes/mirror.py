"""What the cluster holds, as far as the launcher has heard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remy_services.kubernetes.contract import Change, Gone, Kind, Listed
from remy_services.kubernetes.observed import (
    ObservedJob,
    ObservedPod,
    observed_job,
    observed_pod,
)


class Mirror:
    """Jobs and Pods by their unique ids, kept up to date by what a watch tells."""

    def __init__(self) -> None:
        self._held: dict[Kind, dict[str, Mapping[str, Any]]] = {}

    @property
    def complete(self) -> bool:
        """Whether both kinds were listed: before, what is not seen may still be there."""
        return len(self._held) == 2

    @property
    def jobs(self) -> list[ObservedJob]:
        """All Jobs, by name."""
        found = map(observed_job, self._held.get("Job", {}).values())
        return sorted(found, key=lambda job: job.name)

    @property
    def pods(self) -> list[ObservedPod]:
        """All Pods, by name."""
        found = map(observed_pod, self._held.get("Pod", {}).values())
        return sorted(found, key=lambda pod: pod.name)

    def take(self, change: Change) -> None:
        """Something was listed, has changed, or is gone."""
        if isinstance(change, Listed):
            self._held[change.kind] = {_uid(each): each for each in change.objects}
        elif isinstance(change, Gone):
            self._held[change.kind].pop(_uid(change.object), None)
        else:
            self._held[change.kind][_uid(change.object)] = change.object


def _uid(each: Mapping[str, Any]) -> str:
    return str(each["metadata"]["uid"])
