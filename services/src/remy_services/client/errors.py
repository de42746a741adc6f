"""What can go wrong between a client and a coordinator."""

from __future__ import annotations

import grpc


class SettingsError(Exception):
    """A setting of the connection cannot be used. One sentence, which names the setting."""


class ServiceError(Exception):
    """A request to a coordinator failed; its text is one sentence for the user."""

    def __init__(self, message: str, code: grpc.StatusCode, *, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        #: What happened, without the advice what to do.
        self.message = message
        #: As the coordinator, or the transport in its place, has it.
        self.code = code
        #: Whether the request had been sent before, and may have taken effect then.
        self.is_repeated = False


class Unreachable(ServiceError):
    """The coordinator could not be reached, or did not answer in time; later it may."""


class NotAllowed(ServiceError):
    """The token is missing, unknown, or has too low a role."""


class BadRequest(ServiceError):
    """What was asked for makes no sense, whatever the state of the farm."""


class Refused(ServiceError):
    """What was asked for cannot be done now: no such job, not in this state, over a limit."""


class ServerFailed(ServiceError):
    """A defect of the coordinator; its log has the details."""
