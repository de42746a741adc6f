"""Who may work here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import grpc

import remy_simulator
from remy_farm.v1 import worker_service_pb2
from remy_services.fleet.board import WorkerFacts

_LONGEST_NAME = 200
_MOST_THREADS = 4096


@dataclass(frozen=True)
class SimulatorIdentity:
    """Simulators with equal identities give equal results."""

    version: str
    #: `remy_simulator.fingerprint`.
    digest: str

    @classmethod
    def own(cls) -> SimulatorIdentity:
        """Of the simulator that is installed here."""
        return cls(version("remy-simulator"), remy_simulator.fingerprint())


class Unwelcome(Exception):
    """A caller is sent away: with what status, and why, in one sentence."""

    def __init__(self, code: grpc.StatusCode, why: str) -> None:
        super().__init__(why)
        self.code = code


def check_hello(hello: worker_service_pb2.Hello, own: SimulatorIdentity) -> WorkerFacts:
    """What the board needs to know of a worker. Raises Unwelcome."""
    for name, value in (("worker_id", hello.worker_id), ("job_id", hello.job_id)):
        if len(value) > _LONGEST_NAME or not value.isprintable():
            raise _misspoken(f"{name} must be printable, of at most {_LONGEST_NAME} characters")
    if not hello.worker_id:
        raise _misspoken("worker_id is missing from Hello")
    if not 1 <= hello.threads <= _MOST_THREADS:
        raise _misspoken(f"threads is {hello.threads}; it must be 1 to {_MOST_THREADS}")
    theirs = SimulatorIdentity(hello.simulator_version, hello.simulator_digest)
    if theirs != own:
        raise Unwelcome(
            grpc.StatusCode.FAILED_PRECONDITION,
            f"worker {hello.worker_id} has simulator {_describe(theirs)} and this coordinator "
            f"{_describe(own)}, so that their results would differ; install the coordinator's "
            "version of remy-farm-worker",
        )
    return WorkerFacts(hello.worker_id, hello.threads, hello.job_id, _describe(theirs))


def _misspoken(why: str) -> Unwelcome:
    return Unwelcome(grpc.StatusCode.INVALID_ARGUMENT, why)


def _describe(identity: SimulatorIdentity) -> str:
    # What a stranger sends is not repeated at length.
    return f"{identity.version[:20] or '(none)'} ({identity.digest[:12] or 'no digest'})"
