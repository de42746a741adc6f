"""Pure logic of job requests: names, pagination, budgets, forks, imports and comparisons."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.designer import DesignerError
from remy_farm.designer.search import with_steps
from remy_farm.specification import (
    SpecError,
    Violation,
    check_spec,
    checking,
    parse_setting,
    spec_from_tree,
    to_yaml,
    vary,
)
from remy_farm.specification.reading import Tree, read_yaml
from remy_farm.specification.referenced_files import trace_hashes
from remy_farm.specification.schema import format_number
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, progress_pb2, spec_pb2
from remy_services.jobs.states import CANCELLED, CANCELLING, FINAL, PAUSED, TRANSITIONS, Draft
from remy_simulator.messages import to_native

LONGEST_NAME = 100
_RANDOM_BYTES = 5
_MAX_IDS_SHOWN = 5


class NoSuchJob(Exception):
    """No job has this id or name. The message is one sentence for users."""


class AmbiguousName(Exception):
    """Several jobs match this name. The message is one sentence for users."""


def new_job_id(unix_seconds: int, random: bytes) -> str:
    """Returns an id that sorts by creation time; `random` has at least 5 random bytes."""
    return f"{unix_seconds:08x}{random[:_RANDOM_BYTES].hex()}"


def problem_with_name(name: str) -> str | None:
    """Returns why a job name is invalid, or None. Specification names follow the same rule."""
    if not name:
        return "is empty"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, but must have at most {LONGEST_NAME}"
    return checking.problem_with_name(name)


def find_job(jobs: Iterable[job_pb2.Job], name: str) -> str:
    """Returns the id of the job with this id, else with this unique name or unique id prefix.


    Raises NoSuchJob or AmbiguousName.
    """
    named, prefixed = [], []
    for job in jobs:
        if job.id == name:
            return job.id
        if job.name == name:
            named.append(job.id)
        if name and job.id.startswith(name):
            prefixed.append(job.id)
    found = named or prefixed
    if not found:
        raise NoSuchJob(f"there is no job {_shown(name)}")
    if len(found) > 1:
        newest = sorted(found, reverse=True)[:_MAX_IDS_SHOWN]
        more = ", ..." if len(found) > len(newest) else ""
        what = "jobs are named" if named else "ids of jobs begin with"
        raise AmbiguousName(
            f"{len(found)} {what} {_shown(name)}; use an id: {', '.join(newest)}{more}"
        )
    return found[0]


def _shown(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


_TOKEN = re.compile(r"(?P<time>-?[0-9]{1,20})/(?P<job>[^/]{1,200})")


class BadPageToken(Exception):
    """The page token is not from an earlier response."""


def matches(wanted: messages.ListJobsRequest, job: job_pb2.Job) -> bool:
    """Returns whether the job matches the filters; an empty filter matches all jobs."""
    return (
        (not wanted.states or job.state in wanted.states)
        and (not wanted.owner or job.owner == wanted.owner)
        and wanted.name_contains in job.name
        and (not wanted.campaign or job.campaign == wanted.campaign)
    )


@dataclass(frozen=True)
class Page:
    """A page of jobs, and the token of the next page, which is empty on the last page."""

    jobs: list[job_pb2.Job]
    next_token: str


def paginate(
    jobs: Iterable[job_pb2.Job], wanted: messages.ListJobsRequest, *, size: int, token: str
) -> Page:
    """Returns at most `size` >= 1 matching jobs, newest first, starting after the token's job.

    Jobs that are created or deleted between two pages do not shift other jobs. Raises
    BadPageToken.
    """
    matching = sorted((job for job in jobs if matches(wanted, job)), key=_sort_key, reverse=True)
    if token:
        last = _sort_key_of_token(token)
        matching = [job for job in matching if _sort_key(job) < last]
    page = matching[:size]
    return Page(page, _token_of(page[-1]) if len(matching) > size else "")


def _sort_key(job: job_pb2.Job) -> tuple[int, str]:
    return (job.create_time.ToNanoseconds(), job.id)


def _token_of(job: job_pb2.Job) -> str:
    nanoseconds, job_id = _sort_key(job)
    return base64.urlsafe_b64encode(f"{nanoseconds}/{job_id}".encode()).decode()


def _sort_key_of_token(token: str) -> tuple[int, str]:
    try:
        text = base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise BadPageToken from error
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise BadPageToken
    return (int(match["time"]), match["job"])


def extend_budgets(
    spec: spec_pb2.DesignSpec,
    done: progress_pb2.JobProgress,
    *,
    stop: spec_pb2.Stop | None,
    joint_steps: int | None,
) -> spec_pb2.DesignSpec:
    """Returns the specification with new stop rules or a new number of joint steps.

    None leaves either unchanged. Raises SpecError, with paths of the request, also for fewer steps
    or epochs than are already done.
    """
    if stop is not None:
        _check_above(stop, done)
    if stop is None and joint_steps is None:
        problem = "or joint_steps is required; the request changes nothing"
        raise SpecError("the request", [Violation("stop", problem)])
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if stop is not None:
        changed.stop.CopyFrom(stop)
    if joint_steps is not None:
        try:
            changed = with_steps(changed, joint_steps)
        except DesignerError as error:
            problem = f"cannot be {joint_steps}: {error}"
            raise SpecError("the request", [Violation("joint_steps", problem)]) from error
    check_spec(changed, source="the job's specification with these budgets")
    return changed


def _check_above(stop: spec_pb2.Stop, done: progress_pb2.JobProgress) -> None:
    violations = [
        Violation(
            f"stop.{name}",
            f"is {most}, but the job has already completed {completed} {name}; the limit must be "
            "at least that",
        )
        for name, most, completed in (
            ("steps", stop.steps, done.step),
            ("epochs", stop.epochs, done.epoch),
        )
        if stop.HasField(name) and 0 < most < completed
    ]
    if violations:
        raise SpecError("the request", violations)


def referenced_traces(job: job_pb2.Job) -> list[bytes]:
    """Returns the hashes of the link traces that a job references."""
    return [*trace_hashes(job.spec), *job.evaluation.traces]


_SOURCE = "the forked specification"


def with_settings(spec: spec_pb2.DesignSpec, settings: Sequence[str]) -> spec_pb2.DesignSpec:
    """Returns the specification with settings such as "objective.delta=0.1" applied.

    Values are YAML. Raises SpecError, with paths of the request or of the specification.
    """
    tree = read_yaml(to_yaml(spec), _SOURCE)
    for index, setting in enumerate(settings):
        path, value = parse_setting(setting, f"settings[{index}]", source="the request")
        tree = vary(tree, path, value, source=_SOURCE)
    return spec_from_tree(tree, _SOURCE)


_LONGEST_OWNER = 200
# Older farms allowed longer names than LONGEST_NAME, so imports accept this length.
_LONGEST_IMPORTED_NAME = 200


class InvalidJob(Exception):
    """An archive does not describe a valid job. The message is one sentence for users."""


def check_job(archive: job_pb2.JobArchive) -> None:
    """Raises InvalidJob or SpecError if no farm can have exported this archive."""
    job = archive.record.job
    if not job.HasField("evaluation"):
        check_spec(job.spec, source="the job's specification")
    elif len(job.evaluation.parts) != len(archive.epochs):
        raise InvalidJob(
            f"the job has {len(job.evaluation.parts)} parts, but the archive has "
            f"{len(archive.epochs)}"
        )
    if job.state not in TRANSITIONS:
        raise InvalidJob(f"the job's state is {job.state}, which is not a known state")
    if job.revision != len(archive.events):
        raise InvalidJob(
            f"the job is at revision {job.revision}, but its history has {len(archive.events)} "
            "events"
        )
    if not job.name or len(job.name) > _LONGEST_IMPORTED_NAME or not job.name.isprintable():
        raise InvalidJob(
            f"the job's name must be printable text of 1 to {_LONGEST_IMPORTED_NAME} characters"
        )
    if len(job.owner) > _LONGEST_OWNER or not job.owner.isprintable():
        raise InvalidJob(
            f"the job's owner must be printable text of at most {_LONGEST_OWNER} characters"
        )
    try:
        for time in (job.create_time, job.start_time, job.end_time):
            time.ToNanoseconds()
        if archive.record.HasField("first_table"):
            to_native(archive.record.first_table)
    except ValueError as error:
        raise InvalidJob(f"the job's table or a timestamp is invalid: {error}") from error


def prepare_import(archive: job_pb2.JobArchive, now: Timestamp, *, by: str, owner: str) -> None:
    """Prepares an archive for this farm, in place.

    A job that is not final becomes paused. The client request id is cleared, because no client of
    this farm sent it.
    """
    record = archive.record
    record.client_request_id = ""
    record.request_sha256 = b""
    record.job.owner = owner
    draft = Draft(record, now)
    if record.job.state == CANCELLING:
        draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
    elif record.job.state != PAUSED and record.job.state not in FINAL:
        draft.pause_inactive(message="imported from another farm", by=by)
    record.CopyFrom(draft.record)
    archive.events.extend(draft.events)


def differences(specs: Sequence[spec_pb2.DesignSpec]) -> list[messages.SettingDifference]:
    """Returns the settings that differ, in file order; an absent setting has an empty value."""
    settings = [dict(_leaves(read_yaml(to_yaml(spec), "the specification"))) for spec in specs]
    paths = dict.fromkeys(path for each in settings for path in each)
    rows = [(path, [each.get(path, "") for each in settings]) for path in paths]
    return [
        messages.SettingDifference(path=path, values=values)
        for path, values in rows
        if len(set(values)) > 1
    ]


def _leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path, _text(tree)


def _text(tree: Tree) -> str:
    match tree:
        case list():
            return f"[{', '.join(_text(item) for item in tree)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_text(value)}' for key, value in tree.items())}}}"
        case bool():
            return "true" if tree else "false"
        case float() | int():
            return format_number(tree)
    return str(tree)
