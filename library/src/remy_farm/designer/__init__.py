"""The designer: the search for a RemyCC as a state machine without I/O, clock or threads.

Whoever drives a `Designer` (the command line in one process, or a coordinator with a fleet behind
it) evaluates what it asks for, keeps what it hands out, and enforces the budgets that need a clock.
The designer does the rest, deterministically: the same specification leads to the same tables, byte
for byte, whatever evaluates its requests and however often it is stopped and resumed.

    designer = Designer(spec)                       # or Designer.resume(spec, checkpoint)
    while (request := designer.next_request()) is not None:
        events = designer.receive(evaluator.evaluate(request))
        ...                                         # keep the events, then designer.checkpoint()
    publish(designer.table)

The driver's duties:

 1. One request at a time. `next_request` returns the same request until its outcome was received,
    and None once the design is finished. A request must not be modified.
 2. Evaluate it anywhere, in any number of parts, as often as needed; hand the complete outcome of
    exactly that request to `receive`, once. An outcome of another shape is refused and changes
    nothing.
 3. A request and its outcome make one step. Between two calls the designer is always between two
    steps, and may be checkpointed, stopped or thrown away.
 4. Persist before you publish: keep the events that a call returned, then the checkpoint taken
    after it, and only then show either to anybody as done. Nothing else needs to be kept.
 5. After a crash resume from the last checkpoint that was kept, and drop every event with a
    sequence number above the checkpoint's. The steps lost are made again, identically.
 6. Not every step needs a checkpoint: which ones are kept never changes a result.
 7. Clocks are the driver's. When CPU time or wall time is used up, call `stop` with the reason.
    What the specification counts (epochs, rules, steps) the designer watches by itself.
 8. After `stop` go on asking for requests: one more may be due, which decides whether the changes
    of an unfinished epoch are good enough to be published. It is not counted as a step. The
    abandoned request's outcome is not wanted any more.
 9. `table` is the table to publish at any time; it has beaten its predecessor on validation
    specimens.
10. A finished design goes on where the search left off when its budgets grow: resume it with the
    new specification, then call `reconsider`, with the budget of time that is used up if one is.
    What the stop cost leaves no trace in the search.
11. Names and budgets (`name`, `stop`, the length of the schedule) may change from run to run;
    everything else that the specification says is fixed for the life of a design, and so are the
    table that it was given to begin with, if any, and what the simulator makes of a request: a
    checkpoint is resumed where results are the same bits.

12. Of a design that follows its workers (`search.follow_workers`) say how many threads they have
    before a request is asked for: `hear_of_workers`. What was heard, and before which step, is the
    schedule in `followed`, with which the same design is made anywhere.
13. What `requests_ahead` returns will be asked for, unless the design is stopped: have it evaluated
    meanwhile, and hand each outcome over when `next_request` returns that request. Who does not has
    the same tables, later.

How to search is a `Strategy`, such as `JointStrategy`, which moves all rules at once, and
`PaperStrategy`, the search of the paper (section 4.3); `strategies.py` has them all.
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
