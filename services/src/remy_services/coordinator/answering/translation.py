"""What an error inside of the coordinator is for its callers."""

from __future__ import annotations

import secrets

import grpc
import structlog

from remy_services.coordinator.answering import refusal
from remy_services.coordinator.answering.handlers import UndecodableRequest
from remy_services.coordinator.answering.refusal import CallRefused
from remy_services.coordinator.errors import JobLost, RequestIdTaken, StoreInTrouble
from remy_services.designer import DesignerError
from remy_services.jobs.listing import BadPageToken
from remy_services.jobs.naming import AmbiguousName, NoSuchJob
from remy_services.jobs.operations import NotNow
from remy_services.spec import SpecError
from remy_services.stores import JobMissing, StoreUnavailable

_log = structlog.get_logger()


def refusal_of(error: Exception, method: str) -> CallRefused:
    """The refusal that callers see. What nobody expected is logged, and they see its id alone."""
    match error:
        case CallRefused():
            return error
        case SpecError():
            return refusal.bad_request(
                str(error), [(each.path or "spec", each.problem) for each in error.violations]
            )
        case UndecodableRequest():
            return CallRefused(
                grpc.StatusCode.INVALID_ARGUMENT, "the request is not a message of its type"
            )
        case NotNow():
            return refusal.not_now("JOB_STATE", "", str(error))
        case NoSuchJob() | JobMissing():
            return refusal.not_found("remy_farm.v1.Job", "", str(error))
        case AmbiguousName():
            return refusal.bad_request(str(error), [("job", "is not unambiguous")])
        case RequestIdTaken():
            return refusal.already_exists("remy_farm.v1.Job", "", str(error))
        case BadPageToken():
            return refusal.bad_field("page_token", "is not one that a response came with")
        case DesignerError():
            return refusal.bad_request(str(error), [("spec", str(error))])
        case StoreUnavailable() | StoreInTrouble():
            return refusal.unavailable(f"the store is not available: {error}")
        case JobLost():
            return refusal.unavailable(f"this coordinator does not have the job: {error}")
    error_id = secrets.token_hex(4)
    _log.error("a call failed unexpectedly", method=method, error_id=error_id, exc_info=error)
    return CallRefused(grpc.StatusCode.INTERNAL, f"internal error, id {error_id}")
