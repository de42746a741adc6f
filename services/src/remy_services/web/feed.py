"""The feed: jobs as rows of a list, what changed in them, and their histories as columns.

One thread asks the coordinator about once a second for as long as somebody looks, and tells all
who do; the coordinator is asked no more where many look at the same. A coordinator that goes away
is waited for, and everything is told anew when it is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, cast

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.client.design_client import FINAL_STATES, DesignClient
from remy_services.client.status import ServiceError
from remy_services.client.watching import watch_job
from remy_services.jobs.formatting import describe_history, state_name, why
from remy_services.jobs.history import EPOCH_COLUMNS, epoch_rows

#: JSON, as it goes to the page.
Tree = dict[str, Any]
#: Is told each update of the feed, in the feed's thread.
Listener = Callable[[Tree], None]

_EVERY_SECONDS: Final = 1.0
# What has ended seldom changes: it is looked at this often, and when something has just ended.
_EVERYTHING_EVERY_SECONDS: Final = 10.0
# Of the time, at most so much is spent asking.
_SHARE_OF_TIME: Final = 0.2
_ACTIVE: Final = [
    state
    for state in cast("list[job_pb2.JobState]", job_pb2.JobState.values())
    if state != job_pb2.JOB_STATE_UNSPECIFIED and state not in FINAL_STATES
]
# More than a screen shows.
_NEWEST: Final = 60
# In which a browser draws these, before all others are asked for.
_BEFORE_THE_REST_SECONDS: Final = 0.4
# For as long it is asked for who is expected.
_EXPECTED_SECONDS: Final = 10.0
# Who comes back in it sees at once what was known, and half a second later what is so now.
_KEPT_SECONDS: Final = 600.0
# A curve has no more pixels.
_MOST_POINTS: Final = 4000
_MOST_ENTRIES: Final = 1000
_WORK: Final = frozenset(
    {
        progress_pb2.STEP_PURPOSE_IMPROVE,
        progress_pb2.STEP_PURPOSE_CLIMB,
        progress_pb2.STEP_PURPOSE_COUNT_USES,
    }
)


def job_row(job: job_pb2.Job) -> Tree:
    """What a list shows of a job. Times are seconds, since 1970 where they are moments."""
    now = job.progress
    has_score = now.HasField("score")
    row: Tree = {
        "id": job.id,
        "name": job.name,
        "owner": job.owner,
        "state": state_name(job.state),
        "why": why(job),
        "priority": job.priority,
        "campaign": job.campaign,
        "is_evaluation": job.HasField("evaluation"),
        "epoch": now.epoch,
        "rules": now.rules,
        "step": now.step,
        "score": now.score.mean if has_score else None,
        "error": now.score.standard_error
        if has_score and now.score.HasField("standard_error")
        else None,
        "share": now.share_done if now.HasField("share_done") else None,
        "workers": now.workers,
        "packets_per_second": now.packets_per_second,
        "cpu_seconds": now.cpu_seconds,
        "wall_seconds": now.wall_seconds,
        "cost": now.estimated_cost if now.HasField("estimated_cost") else None,
        "eta_seconds": now.eta_seconds if now.HasField("eta_seconds") else None,
        "created": job.create_time.seconds,
        "revision": job.revision,
    }
    if job.HasField("fork"):
        row["fork"] = {"job": job.fork.job_id, "epoch": job.fork.epoch}
    return row


def history_tree(client: DesignClient, job: str, after_revision: int) -> Tree:
    """A job's history after a revision: scores by step, splits and merges, epochs, and sentences.

    Of long histories every n-th score is sent, and the last of the sentences. Raises ServiceError.
    """
    found = client.get(job)
    points: list[tuple[int, float, float | None, float | None]] = []
    sizes: list[tuple[int, int]] = []
    entries: list[tuple[int, int, str]] = []
    for event in _past(client, found, after_revision):
        sentence = describe_history(event)
        if sentence is not None:
            entries.append((event.revision, event.time.seconds, sentence))
        progress = event.progress
        match progress.WhichOneof("event"):
            case "step_finished":
                done = progress.step_finished
                if done.purpose in _WORK and done.HasField("score"):
                    score = done.score
                    error = score.standard_error if score.HasField("standard_error") else None
                    cpu = progress.cpu_seconds if progress.HasField("cpu_seconds") else None
                    points.append((progress.step, score.mean, error, cpu))
            case "rule_split":
                sizes.append((progress.step, progress.rule_split.rules))
            case "rules_merged":
                sizes.append((progress.step, progress.rules_merged.rules))
    every = max(1, -(-len(points) // _MOST_POINTS))
    return {
        "revision": found.revision,
        "points": points[::-1][::every][::-1],
        "sizes": sizes,
        "entries": entries[-_MOST_ENTRIES:],
        "epochs": epochs_tree(client, found.id),
    }


def epochs_tree(client: DesignClient, job: str) -> list[Tree]:
    """A job's epochs in order. Raises ServiceError."""
    wanted = [name for name in EPOCH_COLUMNS if name not in ("evaluations", "simulated_packets")]
    return [{name: row[name] for name in wanted} for row in epoch_rows(client.epochs(job))]


def _past(client: DesignClient, job: job_pb2.Job, after: int) -> Iterator[job_pb2.JobEvent]:
    """The entries that are there now; what happens from now on is not waited for."""
    if job.revision <= after:
        return
    for update in watch_job(client.connection, job.id, after_revision=after):
        if isinstance(update, job_pb2.JobEvent):
            yield update
            if update.revision >= job.revision:
                return


class JobFeed:
    """Asks for jobs while there are listeners, and tells them what changed.

    An update is a tree with "kind": "jobs" (all of them, first and after every loss; with "more"
    the newest of them, and all follow), "changed" (rows that are new or differ, and ids that are
    gone), "lost" and "refused" (with why), "back".
    """

    def __init__(self, client: DesignClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._is_closed = False
        self._wake = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._seen: dict[str, bytes] = {}
        self._rows: dict[str, Tree] = {}
        self._everything_at: float | None = None
        self._trouble: Tree | None = None
        # What has been told of the newest where the rest is yet to come.
        self._newest: Tree | None = None
        # Who has come since something was asked for wants all, and at once.
        self._beginnings = 0
        self._is_due = False
        self._expected_until = self._known_at = float("-inf")

    def expect(self) -> None:
        """Somebody is about to listen: what is told first is asked for already."""
        with self._lock:
            if not self._is_wanted():
                self._begin()
            self._expected_until = self._clock() + _EXPECTED_SECONDS

    def listen(self, listener: Listener) -> None:
        """Tells it all jobs, or why that cannot be, and then what changes."""
        with self._lock:
            if not self._is_wanted():
                self._begin()
            self._expected_until = float("-inf")
            if (known := self._known()) is not None:
                listener(known)
                if self._everything_at is not None and "more" in known:
                    listener({"kind": "jobs", "rows": list(self._rows.values())})
            if self._trouble is not None:
                listener(self._trouble)
            self._listeners.append(listener)

    def first(self, patience_seconds: float) -> Tree | None:
        """What a listener would be told first, as soon as it is known; None: not in that time."""
        with self._lock:
            self._wake.wait_for(
                lambda: self._known() is not None or self._trouble is not None or self._is_closed,
                patience_seconds,
            )
            return self._known() if self._trouble is None else None

    def _known(self) -> Tree | None:
        """The newest jobs, and whether there are more."""
        if self._everything_at is None:
            return self._newest
        rows = sorted(self._rows.values(), key=itemgetter("created"), reverse=True)
        if len(rows) <= _NEWEST:
            return {"kind": "jobs", "rows": rows}
        return {"kind": "jobs", "rows": rows[:_NEWEST], "more": True}

    def _is_wanted(self) -> bool:
        return bool(self._listeners) or self._clock() < self._expected_until

    def _begin(self) -> None:
        if self._trouble is not None or self._clock() - self._known_at >= _KEPT_SECONDS:
            # What was known is too old to go on from.
            self._everything_at, self._trouble, self._newest = None, None, None
            self._seen, self._rows = {}, {}
            self._beginnings += 1
            self._is_due = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
            self._thread.start()
        self._wake.notify_all()

    def leave(self, listener: Listener) -> None:
        """Tells it no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def hurry(self) -> None:
        """Asks at once: something has just been changed."""
        with self._lock:
            self._everything_at = None if self._everything_at is None else float("-inf")
            self._is_due = True
            self._wake.notify_all()

    def close(self) -> None:
        """Ends the thread."""
        with self._lock:
            self._is_closed = True
            self._wake.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_wanted():
                    self._wake.wait_for(lambda: self._is_wanted() or self._is_closed)
                    # What is known still is drawn first.
                    self._wait(_BEFORE_THE_REST_SECONDS)
                if self._is_closed:
                    return
                self._is_due = False
                beginning = self._beginnings
            began = self._clock()
            self._ask(began, beginning)
            spent = self._clock() - began
            with self._lock:
                self._wait(max(_EVERY_SECONDS, spent / _SHARE_OF_TIME))

    def _wait(self, seconds: float) -> None:
        self._wake.wait_for(lambda: self._is_due or self._is_closed, seconds)

    def _ask(self, now: float, beginning: int) -> None:
        wants_all = (
            self._everything_at is None or now - self._everything_at >= _EVERYTHING_EVERY_SECONDS
        )
        try:
            if not wants_all:
                active = list(self._client.list_all(messages.ListJobsRequest(states=_ACTIVE)))
                here = {job.id for job in active}
                wants_all = any(
                    row["state"] not in _FINAL_NAMES and key not in here
                    for key, row in self._rows.items()
                )
            if wants_all:
                if self._everything_at is None:
                    self._tell_newest()
                active = list(self._client.list_all(messages.ListJobsRequest()))
        except ServiceError as error:
            kind = "lost" if error.is_retryable or self._trouble is not None else "refused"
            self._tell_trouble({"kind": kind, "why": str(error)})
            return
        with self._lock:
            if beginning == self._beginnings:
                self._take(active, is_all=wants_all, now=now)

    def _tell_newest(self) -> None:
        """What a screen shows first, where the rest takes a while."""
        page = self._client.list(messages.ListJobsRequest(page_size=_NEWEST))
        if page.next_page_token:
            rows = [job_row(job) for job in page.jobs]
            with self._lock:
                self._newest = {"kind": "jobs", "rows": rows, "more": True}
                self._known_at = self._clock()
                self._tell(self._newest)
                self._wake.notify_all()
                self._wait(_BEFORE_THE_REST_SECONDS)

    def _tell_trouble(self, trouble: Tree) -> None:
        with self._lock:
            is_new = self._trouble is None
            self._trouble = trouble
            self._wake.notify_all()
            if is_new:
                self._tell(trouble)

    def _take(self, jobs: Sequence[job_pb2.Job], *, is_all: bool, now: float) -> None:
        changed = []
        gone: list[str] = []
        for job in jobs:
            content = job.SerializeToString(deterministic=True)
            if self._seen.get(job.id) != content:
                self._seen[job.id] = content
                changed.append(job_row(job))
        is_first = self._everything_at is None
        self._known_at = now
        if is_all:
            self._everything_at, self._newest = now, None
            self._wake.notify_all()
            here = {job.id for job in jobs}
            gone = [key for key in self._rows if key not in here]
        for key in gone:
            del self._rows[key], self._seen[key]
        self._rows.update({row["id"]: row for row in changed})
        was_lost, self._trouble = self._trouble is not None, None
        if was_lost:
            self._tell({"kind": "back"})
        if is_first or was_lost:
            self._tell({"kind": "jobs", "rows": list(self._rows.values())})
        elif changed or gone:
            self._tell({"kind": "changed", "rows": changed, "gone": gone})

    def _tell(self, update: Tree) -> None:
        for listener in list(self._listeners):
            listener(update)


_FINAL_NAMES: Final = frozenset(state_name(state) for state in FINAL_STATES)
