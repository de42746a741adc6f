"""Feed of jobs for the page: rows of the job list, their changes, and histories as columns.

One thread polls the coordinator about once a second while there are listeners, and notifies all of
them, so the load on the coordinator does not grow with their number. After an outage of the
coordinator, all jobs are sent again.
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

#: JSON object for the page.
Tree = dict[str, Any]
#: Called with each update, in the feed's thread.
Listener = Callable[[Tree], None]

_POLL_SECONDS: Final = 1.0
# Final jobs change rarely, so all jobs are polled only this often, and when a job has just ended.
_ALL_JOBS_INTERVAL_SECONDS: Final = 10.0
# Maximum fraction of time spent in requests.
_MAX_REQUEST_FRACTION: Final = 0.2
_ACTIVE: Final = [
    state
    for state in cast("list[job_pb2.JobState]", job_pb2.JobState.values())
    if state != job_pb2.JOB_STATE_UNSPECIFIED and state not in FINAL_STATES
]
# Number of newest jobs that are sent first; more than fit on a screen.
_NEWEST: Final = 60
# Delay before all other jobs are requested, so that a browser can render the newest ones.
_RENDER_SECONDS: Final = 0.4
# Time for which the feed polls for an announced listener.
_EXPECTED_SECONDS: Final = 10.0
# Time for which known jobs are kept without listeners, to show them at once to a returning one.
_CACHE_SECONDS: Final = 600.0
# Maximum points of a curve, which has fewer pixels.
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
    """Returns a job's row in the list. Durations are seconds, times are Unix seconds."""
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
    """Returns a job's history after a revision: scores by step, table sizes, epochs and sentences.

    Long histories are reduced to every n-th score and the last sentences. Raises ServiceError.
    """
    found = client.get(job)
    points: list[tuple[int, float, float | None, float | None]] = []
    sizes: list[tuple[int, int]] = []
    entries: list[tuple[int, int, str]] = []
    for event in _existing_events(client, found, after_revision):
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
    """Returns a job's epochs in order. Raises ServiceError."""
    wanted = [name for name in EPOCH_COLUMNS if name not in ("evaluations", "simulated_packets")]
    return [{name: row[name] for name in wanted} for row in epoch_rows(client.epochs(job))]


def _existing_events(
    client: DesignClient, job: job_pb2.Job, after: int
) -> Iterator[job_pb2.JobEvent]:
    """Yields the existing events after a revision, without waiting for new ones."""
    if job.revision <= after:
        return
    for update in watch_job(client.connection, job.id, after_revision=after):
        if isinstance(update, job_pb2.JobEvent):
            yield update
            if update.revision >= job.revision:
                return


class JobFeed:
    """Polls jobs while there are listeners, and sends them updates.

    An update has a "kind": "jobs" (all jobs, at first and after an outage; with "more" only the
    newest, and all follow), "changed" (new or changed rows, and ids of deleted jobs), "lost" and
    "refused" (with "why"), or "back".
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
        # The update with the newest jobs, while the complete list is pending.
        self._newest: Tree | None = None
        # Number of restarts. A response requested before the last restart is discarded.
        self._restarts = 0
        self._is_due = False
        self._expected_until = self._known_at = float("-inf")

    def expect(self) -> None:
        """Starts polling for a listener that will come soon."""
        with self._lock:
            if not self._is_wanted():
                self._start()
            self._expected_until = self._clock() + _EXPECTED_SECONDS

    def listen(self, listener: Listener) -> None:
        """Adds a listener, which gets all jobs or an error, and then changes."""
        with self._lock:
            if not self._is_wanted():
                self._start()
            self._expected_until = float("-inf")
            if (known := self._known()) is not None:
                listener(known)
                if self._everything_at is not None and "more" in known:
                    listener({"kind": "jobs", "rows": list(self._rows.values())})
            if self._trouble is not None:
                listener(self._trouble)
            self._listeners.append(listener)

    def first(self, timeout_seconds: float) -> Tree | None:
        """Waits for the first update of a new listener; returns None after the timeout."""
        with self._lock:
            self._wake.wait_for(
                lambda: self._known() is not None or self._trouble is not None or self._is_closed,
                timeout_seconds,
            )
            return self._known() if self._trouble is None else None

    def _known(self) -> Tree | None:
        """Returns the update with the newest known jobs, or None."""
        if self._everything_at is None:
            return self._newest
        rows = sorted(self._rows.values(), key=itemgetter("created"), reverse=True)
        if len(rows) <= _NEWEST:
            return {"kind": "jobs", "rows": rows}
        return {"kind": "jobs", "rows": rows[:_NEWEST], "more": True}

    def _is_wanted(self) -> bool:
        return bool(self._listeners) or self._clock() < self._expected_until

    def _start(self) -> None:
        if self._trouble is not None or self._clock() - self._known_at >= _CACHE_SECONDS:
            # The cached jobs are too old.
            self._everything_at, self._trouble, self._newest = None, None, None
            self._seen, self._rows = {}, {}
            self._restarts += 1
            self._is_due = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
            self._thread.start()
        self._wake.notify_all()

    def remove_listener(self, listener: Listener) -> None:
        """Removes a listener."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def poll_soon(self) -> None:
        """Polls at once, because a job has just been changed."""
        with self._lock:
            self._everything_at = None if self._everything_at is None else float("-inf")
            self._is_due = True
            self._wake.notify_all()

    def close(self) -> None:
        """Stops the thread."""
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
                    # Lets a browser render the cached jobs first.
                    self._wait(_RENDER_SECONDS)
                if self._is_closed:
                    return
                self._is_due = False
                restart = self._restarts
            began = self._clock()
            self._poll(began, restart)
            spent = self._clock() - began
            with self._lock:
                self._wait(max(_POLL_SECONDS, spent / _MAX_REQUEST_FRACTION))

    def _wait(self, seconds: float) -> None:
        self._wake.wait_for(lambda: self._is_due or self._is_closed, seconds)

    def _poll(self, now: float, restart: int) -> None:
        wants_all = (
            self._everything_at is None or now - self._everything_at >= _ALL_JOBS_INTERVAL_SECONDS
        )
        try:
            if not wants_all:
                active = list(self._client.list_all(messages.ListJobsRequest(states=_ACTIVE)))
                active_ids = {job.id for job in active}
                wants_all = any(
                    row["state"] not in _FINAL_NAMES and key not in active_ids
                    for key, row in self._rows.items()
                )
            if wants_all:
                if self._everything_at is None:
                    self._send_newest()
                active = list(self._client.list_all(messages.ListJobsRequest()))
        except ServiceError as error:
            kind = "lost" if error.is_retryable or self._trouble is not None else "refused"
            self._send_error({"kind": kind, "why": str(error)})
            return
        with self._lock:
            if restart == self._restarts:
                self._apply(active, is_all=wants_all, now=now)

    def _send_newest(self) -> None:
        """Sends the newest jobs before the complete list, if there are more than one page."""
        page = self._client.list(messages.ListJobsRequest(page_size=_NEWEST))
        if page.next_page_token:
            rows = [job_row(job) for job in page.jobs]
            with self._lock:
                self._newest = {"kind": "jobs", "rows": rows, "more": True}
                self._known_at = self._clock()
                self._send(self._newest)
                self._wake.notify_all()
                self._wait(_RENDER_SECONDS)

    def _send_error(self, trouble: Tree) -> None:
        with self._lock:
            is_new = self._trouble is None
            self._trouble = trouble
            self._wake.notify_all()
            if is_new:
                self._send(trouble)

    def _apply(self, jobs: Sequence[job_pb2.Job], *, is_all: bool, now: float) -> None:
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
            ids = {job.id for job in jobs}
            gone = [key for key in self._rows if key not in ids]
        for key in gone:
            del self._rows[key], self._seen[key]
        self._rows.update({row["id"]: row for row in changed})
        was_lost, self._trouble = self._trouble is not None, None
        if was_lost:
            self._send({"kind": "back"})
        if is_first or was_lost:
            self._send({"kind": "jobs", "rows": list(self._rows.values())})
        elif changed or gone:
            self._send({"kind": "changed", "rows": changed, "gone": gone})

    def _send(self, update: Tree) -> None:
        for listener in list(self._listeners):
            listener(update)


_FINAL_NAMES: Final = frozenset(state_name(state) for state in FINAL_STATES)
