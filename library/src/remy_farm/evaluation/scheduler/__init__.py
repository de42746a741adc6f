"""The task scheduler: who evaluates what many designs want evaluated, without I/O or a clock.

Requests are cut into tasks, slices of candidates x specimens, while they are given out. Workers
have them on lease, and answer each once: with a result, a refusal, or by giving it back. No worker
that comes, goes or fails changes an outcome: an evaluation is a pure function.

Whoever puts a scheduler between evaluations and workers (threads, connections, actors) has
these duties:

 1. Tell the scheduler everything that happens, with the time on one monotonic clock, in seconds;
    then call `advance`, and do what it returns, all of it. Call it several times a second in any
    case.
 2. An assignment goes to its worker; a cancellation as well, and the worker answers a cancelled
    task too: it gives it back, or sends a result that nobody needs.
 3. Let in workers of one simulator only. Check a result (`remy_simulator.columns.check`) before
    `complete`; `reject` what is damaged, `disbelieve` what is intact but cannot be right.
 4. `leave` as soon as a worker's connection is lost. A worker that announces its end says goodbye
    first; one that does not may have been ended by what it was doing. Whoever can tell a process
    that ended from a machine that is gone tells the former by `learn_crashes`.
 5. An expelled worker is to be disconnected. It may not join again.

What the scheduler promises:

 * An evaluation ends once: with its outcome, or with a reason, and after `withdraw` with nothing.
 * A task whose worker left is given out again at once, and one whose worker fell silent after
   `lease_seconds`. A task that runs for long is given to an idle worker too. One that had taken
   much longer than expected when its worker left is done in pieces: it may take longer than
   workers stay.
 * Jobs of higher priority go first; among equals, CPU time is shared by weight.
 * The first intact answer to a task holds. Where a second one comes, of a task that was lent twice,
   the two are compared by their hashes, and the job fails if they differ.
 * A worker whose results are damaged or impossible again and again is quarantined: it gets nothing
   more. The same impossible result twice is the request's fault, and fails its evaluation.
 * A task that ended several workers, none of which had said goodbye, is given up and fails its
   evaluation, unless workers are lost so often that this may be chance. A worker that comes back
   under its name had not ended, one that had long been silent went with its machine, and one that
   somebody watches counts once that one says that it crashed. Until then it is done by idle workers
   only, and by none that was not heard of since the last one was lost: workers that vanish together
   were not ended by it.
"""
