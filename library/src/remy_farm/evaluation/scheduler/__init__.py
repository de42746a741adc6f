"""Assigns simulation tasks of many jobs to workers. A state machine without I/O and without a
clock.

The scheduler cuts evaluation requests into tasks (slices of candidates x specimens) as it assigns
them. A worker holds a task on a lease and answers it once: with a result, with a refusal, or by
giving it back. Because an evaluation is a pure function, workers that join, leave or fail never
change its outcome.

The code that connects a scheduler to workers (threads, connections, actors) has these duties:

 1. Report every event to the scheduler, with the time of one monotonic clock in seconds; then call
    `advance` and carry out all effects that it returns. Call `advance` several times a second even
    without events.
 2. Send assignments and cancellations to their workers. A worker answers a cancelled task as well:
    it gives the task back, or sends a result that is ignored.
 3. Admit only workers with the same simulator. Check each result (`remy_simulator.columns.check`)
    before `complete`. Call `reject` for a damaged result, and `reject_implausible` for an undamaged
    result that cannot be right.
 4. Call `leave` as soon as a worker's connection is lost. A worker that shuts down says goodbye
    first; one that does not may have been killed by its task. If crashed processes can be told from
    lost machines, report them with `set_crashed_hosts`.
 5. Disconnect an expelled worker. It may not join again.

The scheduler guarantees:

 * An evaluation ends exactly once, with its outcome or with an error. After `withdraw` its end is
   not reported.
 * If a worker leaves, its tasks are assigned to others at once; if it falls silent, after
   `lease_seconds`. A task that runs for long is assigned to an idle worker as well (hedging). A
   task that was already late when its worker left is divided, because it may take longer than
   workers stay.
 * Jobs of higher priority are served first. Among jobs of equal priority, CPU time is shared by
   weight.
 * The first undamaged answer to a task is accepted. If a task is answered again, the hashes of both
   answers are compared, and the job fails if they differ.
 * A worker that repeatedly sends damaged or implausible results is quarantined: it gets no more
   tasks. If a second worker sends the same implausible result, the request is at fault, and its
   evaluation fails.
 * A poison task, which has killed several workers, fails its evaluation, unless workers are lost so
   often that this may be a coincidence. A worker that left without a goodbye counts as killed by
   its task, with these exceptions: it joins again under its name; it had been silent for long, so
   that its machine was lost; or its crashes are observed and none was reported. A suspected task is
   only assigned to idle workers that have been heard from since its last worker was lost, because
   workers that vanish together were not killed by the task.
"""
