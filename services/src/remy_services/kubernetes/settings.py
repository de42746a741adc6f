"""What the launcher is told about the workers it may start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

_Count = Annotated[int, Meta(ge=1)]
_Positive = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Owner:
    """The object whose end is also the end of the workers' Jobs."""

    api_version: str
    kind: str
    name: str
    uid: str


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a specification may ask for."""

    #: Workers of one design.
    maximum_workers: _Count = 100
    #: Images, as patterns in the manner of a shell ("registry.example/remy-farm/*").
    images: tuple[str, ...] = ()
    #: CPUs and memory of one worker.
    cpus: _Positive = 64.0
    memory_mib: _Count = 262144


class LauncherSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the launcher makes Jobs."""

    #: Tells this farm's Jobs from others' in the namespace; the beginning of their names.
    instance: Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    #: A batch/v1 Job that lacks a name, labels of its own, `parallelism` and `suspend`. Its first
    #: container is the worker.
    template: dict[str, Any]
    #: Workers of a design whose specification does not say how many.
    minimum_workers: _Count = 1
    maximum_workers: _Count = 10
    limits: Limits = Limits()
    #: The Deployment whose end is also the end of the Jobs; empty: none.
    owner_deployment: str = ""
    #: How long the workers of a finished design may take to end by themselves.
    finish_seconds: _Positive = 60.0
    #: After how long a Job that failed too often is tried anew.
    retry_seconds: _Positive = 300.0
