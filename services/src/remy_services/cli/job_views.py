"""Views of jobs: as words, tables, messages as JSON, and one line of bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import fmean
from typing import Any

import click
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.table import Table

from remy_farm.v1 import job_pb2
from remy_services.analysis.wording import count, duration, several, stop_reason, with_error
from remy_services.cli.common import plain_table, print_json, print_pairs
from remy_services.client import WORKING_STATES
from remy_services.specification import to_yaml
from remy_services.specification.reading import read_yaml
from remy_services.specification.schema import enum_of, fields_of, says_nothing

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=^*#@"


def sparkline(values: Sequence[float], width: int, *, bars: str = BLOCKS) -> str:
    """At most `width` bars between the smallest and the largest value.

    Of more values than that, neighbours are drawn as their mean.
    """
    points = _condensed(values, width)
    if not points:
        return ""
    low, high = min(points), max(points)
    if low == high:
        return bars[len(bars) // 2] * len(points)
    scale = (len(bars) - 1) / (high - low)
    return "".join(bars[round((point - low) * scale)] for point in points)


def _condensed(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    ends = [round(number * len(values) / width) for number in range(width + 1)]
    return [fmean(values[first:last]) for first, last in itertools.pairwise(ends)]


def message_tree(message: Message) -> Any:
    """Fields by name, in the order of their declaration, every one of them.

    Numbers are numbers, names of enums are in lower case without the enum's name in front, times
    are RFC 3339 in UTC, and what is not set is None.
    """
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    return {field.name: _field(message, field) for field in fields_of(message)}


def job_tree(job: job_pb2.Job) -> dict[str, Any]:
    """A job; its specification as docs/spec.md has it, and None where it was not sent."""
    tree = {field.name: _field(job, field) for field in fields_of(job) if field.name != "spec"}
    has_spec = job.HasField("spec")
    tree["spec"] = read_yaml(to_yaml(job.spec), "the specification") if has_spec else None
    return tree


def enum_name(kind: EnumDescriptor, number: int) -> str | None:
    """As in "running"; None for the value that stands for none."""
    if number == 0:
        return None
    value = kind.values_by_number.get(number)
    if value is None:
        return f"unknown_{number}"
    prefix = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return str(value.name).removeprefix(prefix).lower()


def _field(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return [_value(field, item) for item in value]
    if says_nothing(message, field):
        return None
    return _value(field, value)


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return message_tree(value)
    if field.enum_type is not None:
        return enum_name(enum_of(field), value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


_FAILURES = {
    job_pb2.FAILURE_REASON_INTERNAL: "of a defect of the coordinator",
    job_pb2.FAILURE_REASON_SNAPSHOTS_LOST: "none of its snapshots can be read",
    job_pb2.FAILURE_REASON_OTHER_VERSION: "its snapshot was made with another simulator version",
    job_pb2.FAILURE_REASON_TASK_QUARANTINED: "one of its tasks kept ending its workers",
    job_pb2.FAILURE_REASON_REQUEST_REFUSED: "the simulator refused one of its requests",
    job_pb2.FAILURE_REASON_RESULTS_DIFFER: "workers gave different results for one of its tasks",
    job_pb2.FAILURE_REASON_WORK_LIMIT: "it simulated as many packets as one job may",
}


def state_name(state: job_pb2.JobState) -> str:
    """As in "running"."""
    return enum_name(job_pb2.JobState.DESCRIPTOR, state) or "unknown"


def called(job: job_pb2.Job) -> str:
    """Name and id."""
    return f"{job.name} ({job.id})" if job.id else job.name


def why(job: job_pb2.Job) -> str:
    """What there is to say of the job's state besides its name; may be empty."""
    if job.status_message:
        return job.status_message
    if job.state == job_pb2.JOB_STATE_SUCCEEDED:
        return stop_reason(job.stop_reason)
    if job.state == job_pb2.JOB_STATE_FAILED:
        return _FAILURES.get(job.failure_reason, "for a reason that this client does not know")
    return ""


def state(job: job_pb2.Job) -> str:
    """The job's state and why."""
    reason = why(job)
    name = state_name(job.state)
    return f"{name}: {reason}" if reason else name


def has_begun(job: job_pb2.Job) -> bool:
    """Whether there are any figures yet."""
    return job.progress.step > 0 or job.progress.rules > 0


def queue_place(job: job_pb2.Job) -> str:
    """Epoch, rules and step."""
    now = job.progress
    return f"epoch {now.epoch}, {several(now.rules, 'rule')}, step {now.step}"


def candidates(job: job_pb2.Job) -> str:
    """Candidates done of those of the step; empty between steps."""
    now = job.progress
    if not now.candidates:
        return ""
    return f"{now.candidates_done} of {several(now.candidates, 'candidate')}"


def score(job: job_pb2.Job, *, digits_only: bool = False) -> str:
    """The score of the table being worked on and what the last epoch gained, as far as known."""
    now = job.progress
    words = with_error(now.score if now.HasField("score") else None)
    if digits_only or not now.HasField("epoch_gain"):
        return words
    return f"{words}, gain of the last epoch {with_error(now.epoch_gain, signed=True)}"


def measures(job: job_pb2.Job) -> str:
    """Packets a second, time used and left, workers, cost."""
    now = job.progress
    parts = []
    if job.state in WORKING_STATES:
        parts.append(f"{count(now.packets_per_second)} packets/s")
    parts.append(f"{duration(now.cpu_seconds)} CPU")
    if now.HasField("estimated_cost"):
        parts.append(f"cost {now.estimated_cost:.2f}")
    if now.workers:
        parts.append(several(now.workers, "worker"))
    if now.HasField("eta_seconds"):
        parts.append(f"ETA {duration(now.eta_seconds)}")
    if now.recoveries:
        parts.append(f"recovered {several(now.recoveries, 'time')}")
    return ", ".join(parts)


def share_done(job: job_pb2.Job) -> str:
    """How much of the search is done, where that is known."""
    if job.state == job_pb2.JOB_STATE_SUCCEEDED or not job.progress.HasField("share_done"):
        return "-"
    return f"{job.progress.share_done:.0%}"


def moment(time: Timestamp) -> str:
    """A time by the clock on this machine's wall."""
    local = datetime.fromtimestamp(time.ToNanoseconds() / 1e9).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S")


_COLUMNS = ("name", "id", "state", "owner", "epoch", "rules", "step", "done", "score", "CPU time")


def job_table(jobs: Iterable[job_pb2.Job]) -> Table:
    """One row a job, in the order given."""
    table = plain_table(*_COLUMNS, "submitted", left=4)
    for job in jobs:
        now = job.progress
        table.add_row(
            job.name,
            job.id,
            state_name(job.state),
            job.owner,
            str(now.epoch),
            str(now.rules),
            str(now.step),
            share_done(job),
            score(job, digits_only=True),
            duration(now.cpu_seconds),
            moment(job.create_time) if job.HasField("create_time") else "-",
        )
    return table


def print_job(job: job_pb2.Job, *, as_json: bool) -> None:
    """All that is known of it."""
    if as_json:
        print_json(job_tree(job))
    else:
        print_pairs(_pairs(job))


def print_change(job: job_pb2.Job, *, as_json: bool) -> None:
    """What became of a request to change it."""
    if as_json:
        print_json(job_tree(job))
    else:
        click.echo(f"{called(job)} is {state(job)}")


def _pairs(job: job_pb2.Job) -> list[tuple[str, str]]:
    pairs = [
        ("job", called(job)),
        ("state", state(job)),
        ("owner", job.owner),
        ("priority", f"{job.priority}, weight {job.weight:g}"),
    ]
    if job.campaign:
        pairs.append(("campaign", job.campaign))
    if job.HasField("fork"):
        pairs.append(("forked from", f"{job.fork.job_id}, epoch {job.fork.epoch}"))
    if has_begun(job):
        pairs += _figures(job)
    for name, field in (
        ("submitted", "create_time"),
        ("started", "start_time"),
        ("ended", "end_time"),
    ):
        if job.HasField(field):
            pairs.append((name, moment(getattr(job, field))))
    return pairs


def _figures(job: job_pb2.Job) -> list[tuple[str, str]]:
    now = job.progress
    place = queue_place(job)
    if now.HasField("share_done"):
        place += f", {now.share_done:.0%} done"
    work = f"{count(now.simulated_packets)} packets in {count(now.evaluations)} evaluations"
    return [
        ("progress", place),
        ("score", score(job)),
        ("work", f"{work}, {duration(now.wall_seconds)}"),
        ("", measures(job)),
    ]
