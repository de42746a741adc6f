"""The task board: what many designs want evaluated, and who evaluates it, without I/O or a clock.

Requests are cut into tasks, slices of candidates x specimens, while they are given out. Workers
have them on lease, and answer each once: with a result, a refusal, or by giving it back. Nothing
that a worker does or fails to do changes an outcome: an evaluation is a pure function.

Whoever puts a board between evaluations and workers (threads, connections, actors) has these
duties:

 1. Tell the board everything that happens, with the time on one monotonic clock, in seconds; then
    call `advance`, and do what it returns, all of it. Call it several times a second in any case.
 2. An assignment goes to its worker; a cancellation as well, and the worker answers a cancelled
    task too: it gives it back, or sends a result that nobody needs.
 3. Check a result (`fleet.result_check`) before `complete`; `reject` what is damaged, `disbelieve`
    what is intact but cannot be right.
 4. `leave` as soon as a worker's connection is lost. A worker that announces its end says goodbye
    first; one that does not may have been ended by what it was doing.
 5. An expelled worker is to be disconnected. It may not join again.

What the board promises:

 * An evaluation ends once: with its outcome, or with a reason, and after `withdraw` with nothing.
 * A task whose worker left is given out again at once, and one whose worker fell silent after
   `lease_seconds`. A task that runs for long is given to an idle worker too.
 * Jobs of higher priority go first; among equals, CPU time is shared by weight.
 * A sampled share of the tasks is done by two workers and compared. Where they differ a third one
   decides, and whoever was wrong is quarantined: it gets nothing more, and what it alone has done
   of unfinished requests is done again. If there is no third, the two are asked once more, and who
   contradicts itself is wrong; if neither does, the task waits for another worker.
 * A task that ended several workers, none of which had said goodbye, is given up and fails its
   evaluation. A worker that comes back under its name had not ended.
   Until then it is done by idle workers only, and by none that was not heard of since the last one
   was lost: workers that vanish together were not ended by it.
"""

from remy_services.fleet.board.board import TaskBoard, WorkerQuarantined
from remy_services.fleet.board.counters import DURATION_BUCKETS_SECONDS, BoardSnapshot, Counts
from remy_services.fleet.board.effects import Assignment, Completion, Effects, Quarantine, Refusal
from remy_services.fleet.board.settings import BoardSettings
from remy_services.fleet.board.workers import WorkerFacts

__all__ = [
    "DURATION_BUCKETS_SECONDS",
    "Assignment",
    "BoardSettings",
    "BoardSnapshot",
    "Completion",
    "Counts",
    "Effects",
    "Quarantine",
    "Refusal",
    "TaskBoard",
    "WorkerFacts",
    "WorkerQuarantined",
]
