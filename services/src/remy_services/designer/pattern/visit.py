"""A rule's turn: its races, one after another."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import progress_pb2
from remy_services.designer.pattern.compass import neighbours
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.race import Race
from remy_simulator.messages import ActionTuple as Action

# A rule ends its turn with steps too small to gain anything. What the others did since may have
# changed that: the next turn begins with steps this many times as long.
_REOPENED = 2.0
# No step is longer: two of them change an intersend time tenfold.
_LONGEST_STEP = 1.2
# No rule may keep the others from their turns.
_RACES_PER_VISIT = 8


def begin_visit(context: Context, state: PatternState) -> PatternState:
    """Turns to the first rule of the queue; with none left the epoch ends."""
    if not state.queue:
        return replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE, race=Race())
    rule = state.queue[0]
    step = min(state.current.steps[rule] * _REOPENED, context.search.first_step)
    state = replace(state, current=state.current.with_step(rule, step), visit_races=0)
    return begin_race(context, state)


def begin_race(context: Context, state: PatternState) -> PatternState:
    """The next race for the rule whose turn it is."""
    return replace(
        state,
        purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
        race=Race.between(len(candidate_actions(context, state))),
        races=state.races + 1,
        visit_races=state.visit_races + 1,
    )


def candidate_actions(context: Context, state: PatternState) -> list[Action]:
    """What the race is between."""
    rule, current = state.queue[0], state.current
    return neighbours(context.space, current.table.action(rule), current.steps[rule])


def after_race(context: Context, state: PatternState, action: Action | None) -> PatternState:
    """Takes over the winner's action, if any, and goes on: with longer steps after a success, with
    shorter ones after a failure, until they are too short."""
    rule, current = state.queue[0], state.current
    if action is None:
        current = current.with_step(rule, current.steps[rule] / 2)
    else:
        current = current.with_action(rule, action)
        current = current.with_step(rule, min(current.steps[rule] * 2, _LONGEST_STEP))
        changed = state.changed_rules
        if rule not in changed:
            state = replace(state, changed_rules=(*changed, rule))
    state = replace(state, current=current)
    is_done = current.steps[rule] < context.search.minimum_step
    if is_done or state.visit_races >= _RACES_PER_VISIT:
        return begin_visit(context, replace(state, queue=state.queue[1:]))
    return begin_race(context, state)
