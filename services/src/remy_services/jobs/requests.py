"""Requests about jobs: names, pages of lists, budgets, forks, imports and differences."""

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
_MOST_SHOWN = 5


class NoSuchJob(Exception):
    """No job has this id or name. One sentence for people."""


class AmbiguousName(Exception):
    """Several jobs have this name. One sentence for people."""


def new_job_id(unix_seconds: int, random: bytes) -> str:
    """An id that sorts by time; `random` are at least 5 random bytes."""
    return f"{unix_seconds:08x}{random[:_RANDOM_BYTES].hex()}"


def problem_with_name(name: str) -> str | None:
    """What is wrong with a name for a job; None if nothing is. The rule is that of specifications'
    names."""
    if not name:
        return "is empty"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, but must have at most {LONGEST_NAME}"
    return checking.problem_with_name(name)


def find_job(jobs: Iterable[job_pb2.Job], name: str) -> str:
    """The id of the job of this id, or else of the only one of this name, or else of the only one
    whose id begins like this.

    Raises NoSuchJob or AmbiguousName.
    """
    named, begun = [], []
    for job in jobs:
        if job.id == name:
            return job.id
        if job.name == name:
            named.append(job.id)
        if name and job.id.startswith(name):
            begun.append(job.id)
    found = named or begun
    if not found:
        raise NoSuchJob(f"there is no job {_shown(name)}")
    if len(found) > 1:
        newest = sorted(found, reverse=True)[:_MOST_SHOWN]
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
    """Not a token that a page came with."""


def passes(wanted: messages.ListJobsRequest, job: job_pb2.Job) -> bool:
    """Whether the job is wanted; what is empty lets all pass."""
    return (
        (not wanted.states or job.state in wanted.states)
        and (not wanted.owner or job.owner == wanted.owner)
        and wanted.name_contains in job.name
        and (not wanted.campaign or job.campaign == wanted.campaign)
    )


@dataclass(frozen=True)
class Page:
    """Some of the jobs, and the token of those after them; empty if there are none."""

    jobs: list[job_pb2.Job]
    next_token: str


def page_of(
    jobs: Iterable[job_pb2.Job], wanted: messages.ListJobsRequest, *, size: int, token: str
) -> Page:
    """At most `size` >= 1 of the jobs that are wanted, newest first, from where the token says.

    Jobs that come and go between two pages neither shift nor repeat others. Raises BadPageToken.
    """
    passing = sorted((job for job in jobs if passes(wanted, job)), key=_place, reverse=True)
    if token:
        last = _place_of(token)
        passing = [job for job in passing if _place(job) < last]
    page = passing[:size]
    return Page(page, _token_of(page[-1]) if len(passing) > size else "")


def _place(job: job_pb2.Job) -> tuple[int, str]:
    return (job.create_time.ToNanoseconds(), job.id)


def _token_of(job: job_pb2.Job) -> str:
    nanoseconds, job_id = _place(job)
    return base64.urlsafe_b64encode(f"{nanoseconds}/{job_id}".encode()).decode()


def _place_of(token: str) -> tuple[int, str]:
    try:
        text = base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise BadPageToken from error
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise BadPageToken
    return (int(match["time"]), match["job"])


def extended(
    spec: spec_pb2.DesignSpec,
    done: progress_pb2.JobProgress,
    *,
    stop: spec_pb2.Stop | None,
    joint_steps: int | None,
) -> spec_pb2.DesignSpec:
    """The specification with other stop rules, or with another length of its schedule;
    None leaves either as it is. Raises SpecError, whose paths are those of the request, also for
    fewer steps or epochs than are done."""
    if stop is not None:
        _check_above(stop, done)
    if stop is None and joint_steps is None:
        problem = "or joint_steps must be given; there is nothing to change"
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
            f"is {most}, but the job has made {made} {name} already; at least as many are needed",
        )
        for name, most, made in (
            ("steps", stop.steps, done.step),
            ("epochs", stop.epochs, done.epoch),
        )
        if stop.HasField(name) and 0 < most < made
    ]
    if violations:
        raise SpecError("the request", violations)


def named_recordings(job: job_pb2.Job) -> list[bytes]:
    """Hashes of the recordings that a job's links follow."""
    return [*trace_hashes(job.spec), *job.evaluation.traces]


_SOURCE = "the forked specification"


def with_settings(spec: spec_pb2.DesignSpec, settings: Sequence[str]) -> spec_pb2.DesignSpec:
    """The specification with settings such as "objective.delta=0.1" changed.

    Values are YAML. Raises SpecError, whose paths are those of the request or of the specification.
    """
    tree = read_yaml(to_yaml(spec), _SOURCE)
    for index, setting in enumerate(settings):
        path, value = parse_setting(setting, f"settings[{index}]", source="the request")
        tree = vary(tree, path, value, source=_SOURCE)
    return spec_from_tree(tree, _SOURCE)


_LONGEST_OWNER = 200
# Jobs may have been named when more than specifications allow was allowed.
_LONGEST_SHOWN = 200


class NoJob(Exception):
    """What should be a job cannot be one. One sentence for people."""


def check_job(archive: job_pb2.JobArchive) -> None:
    """Raises NoJob, or SpecError, for what no farm would have made of a job."""
    job = archive.record.job
    if not job.HasField("evaluation"):
        check_spec(job.spec, source="the job's specification")
    elif len(job.evaluation.parts) != len(archive.epochs):
        raise NoJob(
            f"the job has {len(job.evaluation.parts)} parts, and the archive {len(archive.epochs)}"
        )
    if job.state not in TRANSITIONS:
        raise NoJob(f"the job's state is number {job.state}, which is no state")
    if job.revision != len(archive.events):
        raise NoJob(
            f"the job is at revision {job.revision}, and its history has {len(archive.events)} "
            f"entries"
        )
    if not job.name or len(job.name) > _LONGEST_SHOWN or not job.name.isprintable():
        raise NoJob(f"the job's name must be printable text of 1 to {_LONGEST_SHOWN} characters")
    if len(job.owner) > _LONGEST_OWNER or not job.owner.isprintable():
        raise NoJob(
            f"the job's owner must be printable text of at most {_LONGEST_OWNER} characters"
        )
    try:
        for time in (job.create_time, job.start_time, job.end_time):
            time.ToNanoseconds()
        if archive.record.HasField("first_table"):
            to_native(archive.record.first_table)
    except ValueError as error:
        raise NoJob(f"the job's table or time makes no sense: {error}") from error


def as_imported(archive: job_pb2.JobArchive, now: Timestamp, *, by: str, owner: str) -> None:
    """Changes the archive into that of a job that rests here: paused, if it was not in a final
    state; and that no request of a client of this farm has made."""
    record = archive.record
    record.client_request_id = ""
    record.request_sha256 = b""
    record.job.owner = owner
    draft = Draft(record, now)
    if record.job.state == CANCELLING:
        draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
    elif record.job.state != PAUSED and record.job.state not in FINAL:
        draft.rest(message="was brought here from another farm", by=by)
    record.CopyFrom(draft.record)
    archive.events.extend(draft.events)


def differences(specs: Sequence[spec_pb2.DesignSpec]) -> list[messages.SettingDifference]:
    """The settings in which they are not all alike, in the order of a specification file; empty
    where a specification says nothing."""
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
