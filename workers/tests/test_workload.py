"""What a worker has to do, in any order of events: every task is answered once."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from remy_farm.v1 import evaluation_pb2
from remy_workers.workload import Work, Workload


def _work(lease_id: int) -> Work[None]:
    return Work(lease_id, "job", evaluation_pb2.EvaluationRequest(), None)


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.workload = Workload[None]()
        self.received = 0
        self.answered: list[int] = []
        self.lost: list[int] = []
        self.running: set[int] = set()
        self.unwanted: set[int] = set()
        self.waiting: list[int] = []

    @rule()
    def receive(self) -> None:
        self.received += 1
        returned = self.workload.add(_work(self.received))
        self.answered += returned
        assert bool(returned) == self.workload.is_ending
        if not returned:
            self.waiting.append(self.received)

    @rule()
    def begin(self) -> None:
        work = self.workload.begin()
        assert (work.lease_id if work else None) == (self.waiting[0] if self.waiting else None)
        if work is not None:
            self.waiting.remove(work.lease_id)
            self.running.add(work.lease_id)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.running)))
        assert self.workload.end(lease_id) == (lease_id not in self.unwanted)
        self.running.remove(lease_id)
        self.answered.append(lease_id)

    @precondition(lambda self: self.received)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.integers(1, self.received))
        dropped = self.workload.cancel([lease_id])
        assert dropped == ([lease_id] if lease_id in self.waiting else [])
        self.answered += dropped
        self.waiting = [each for each in self.waiting if each not in dropped]
        self.unwanted |= {lease_id} & self.running

    @rule()
    def lose_the_connection(self) -> None:
        dropped = self.workload.forget_waiting()
        assert dropped == self.waiting
        self.lost += dropped
        self.waiting = []

    @rule()
    def wind_down(self) -> None:
        dropped = self.workload.wind_down()
        assert dropped == self.waiting
        self.answered += dropped
        self.waiting = []

    @invariant()
    def every_task_is_somewhere_once(self) -> None:
        places = [*self.answered, *self.lost, *self.waiting, *self.running]
        assert sorted(places) == list(range(1, self.received + 1))
        assert self.workload.running == len(self.running)


TestAnyOrder = AnyOrder.TestCase


def test_what_was_given_up_is_answered_once() -> None:
    workload = Workload[None]()
    workload.add(_work(1))
    workload.begin()
    workload.wind_down()
    assert workload.give_up() == [1]
    # Its thread is done with it in the end; that answer is nobody's any more.
    assert not workload.end(1)
