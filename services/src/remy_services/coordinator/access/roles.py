"""Roles, and what each may call. What is not listed here, nobody may call."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Role(StrEnum):
    """What a token is good for."""

    #: Sees all jobs.
    VIEWER = "viewer"
    #: Also submits jobs, and changes its own.
    SUBMITTER = "submitter"
    #: Also changes the jobs of others.
    ADMIN = "admin"
    #: Evaluates; sees no jobs.
    WORKER = "worker"


_VIEWERS: Final = frozenset({Role.VIEWER, Role.SUBMITTER, Role.ADMIN})
_SUBMITTERS: Final = frozenset({Role.SUBMITTER, Role.ADMIN})
_WORKERS: Final = frozenset({Role.WORKER, Role.ADMIN})
#: A method that anybody may call, without a token.
OPEN: Final[frozenset[Role]] = frozenset()

_DESIGN: Final = "/remy_farm.v1.DesignService/"

#: Who may call each method of each service. Whose job may be changed is another question, which
#: the methods ask themselves.
METHOD_ROLES: Final[Mapping[str, frozenset[Role]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                f"{_DESIGN}{method}"
                for method in (
                    "GetJob",
                    "ListJobs",
                    "WatchJob",
                    "GetRemyCC",
                    "ListEpochs",
                    "CompareJobs",
                    "ExportJob",
                    "GetServerInfo",
                )
            ),
            _VIEWERS,
        ),
        **dict.fromkeys(
            (
                f"{_DESIGN}{method}"
                for method in (
                    "SubmitJob",
                    "PauseJob",
                    "ResumeJob",
                    "CancelJob",
                    "ExtendJob",
                    "ForkJob",
                    "DeleteJob",
                    "ImportJob",
                )
            ),
            _SUBMITTERS,
        ),
        "/remy_farm.v1.WorkerService/Work": _WORKERS,
        # Whoever runs the coordinator has no token at hand, and learns nothing of its jobs.
        "/grpc.health.v1.Health/Check": OPEN,
        "/grpc.health.v1.Health/List": OPEN,
        "/grpc.health.v1.Health/Watch": OPEN,
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": _VIEWERS | _WORKERS,
    }
)
