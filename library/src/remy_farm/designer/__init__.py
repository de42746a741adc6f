"""The designer searches for a RemyCC: a state machine without I/O, clock or threads.

A `Designer` holds the state of one design. It hands out evaluation requests and receives their
outcomes; its caller, the driver, does everything else. The same specification always leads to the
same tables, bit for bit, whatever evaluates the requests and however often the design is stopped
and resumed. Drivers are `remy_farm.driver`, for one process, and the coordinator, for a farm.

    designer = Designer(spec)                       # or Designer.resume(spec, checkpoint)
    while (request := designer.next_request()) is not None:
        events = designer.receive(evaluator.evaluate(request))
        ...                                         # persist the events, then designer.checkpoint()
    publish(designer.table)

A request and its outcome make one step. Between two calls the designer is always between two steps,
and may be checkpointed, stopped or discarded.

The driver has these duties:

 1. Evaluate one request at a time. `next_request` returns the same request until its outcome has
    been received, and None once the design is finished. Do not modify a request.
 2. Evaluate a request anywhere, in any number of parts, as often as needed. Then pass its complete
    outcome to `receive`, once. `receive` raises OutcomeError for an outcome of another shape, and
    changes nothing.
 3. Persist before you publish. Persist the events that a call returned, then a checkpoint taken
    after it, and only then report either to anyone. No other state has to be persisted.
 4. After a crash, resume from the last persisted checkpoint, and discard all events with a sequence
    number above the checkpoint's. The lost steps are made again, with identical results.
 5. Checkpoint as often as you like. Which checkpoints are persisted never changes a result.
 6. Keep the clock. Call `stop` with the reason when the budget of CPU time or wall time is used up.
    The designer itself watches budgets that are counted: epochs, rules and steps.
 7. After `stop`, continue to ask for requests. One closing evaluation may follow, which decides
    whether the changes of an unfinished epoch are published. It does not count as a step. Discard
    the outcome of the request that was outstanding at the stop.
 8. Publish `table` at any time. It is the best table on the validation specimens so far.
 9. To extend a finished design, resume it with a specification that has larger budgets, and call
    `reconsider`; pass the reason if a budget of time is used up. The search then continues as if it
    had never been stopped.
10. Resume a checkpoint only with the specification and the first table that it was made with, on a
    simulator with the same results. Only the name, the stop rules and the length of the schedule
    may change.
11. If the design follows its workers (`search.follow_workers`), call `set_worker_threads` before
    each request. `replayable_spec` then records the numbers of threads, so that the same design can
    be repeated anywhere.
12. Optionally evaluate the requests that `requests_ahead` returns while the current one is being
    evaluated. Pass each outcome to `receive` once `next_request` returns that request. This saves
    time and never changes a result; the work is lost only if the design is stopped.

The search itself is a `Strategy`. `PaperStrategy` is the search of the paper "TCP ex Machina"
(section 4.3), `JointStrategy` moves all rules at once, and `PatternStrategy` polishes one rule at a
time. `strategies.py` registers them.
"""

from remy_farm.designer.designer import Designer
from remy_farm.designer.scoring import (
    CheckpointError,
    DesignerError,
    OtherVersionError,
    OutcomeError,
)
from remy_farm.designer.search import Decision, StepReport, Strategy, with_steps

__all__ = [
    "CheckpointError",
    "Decision",
    "Designer",
    "DesignerError",
    "OtherVersionError",
    "OutcomeError",
    "StepReport",
    "Strategy",
    "with_steps",
]
