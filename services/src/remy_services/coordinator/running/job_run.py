"""One run of a job: from its turn to its end, or until it has to wait."""

from __future__ import annotations

import contextlib

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_services.coordinator.errors import JobLost
from remy_services.coordinator.keeping import Environment, JobKeeper
from remy_services.coordinator.keeping.job_keeper import Edit
from remy_services.coordinator.running import endings
from remy_services.coordinator.running.beginning import Begun, begin, may_have_been_extended
from remy_services.coordinator.running.desk import Desk
from remy_services.coordinator.running.failures import check_work, reason_for
from remy_services.coordinator.running.interruptible import evaluate_unless
from remy_services.coordinator.running.live import LiveProgress
from remy_services.coordinator.running.orders import Order, Orders
from remy_services.coordinator.running.resume import first_table
from remy_services.coordinator.running.saver import Saver
from remy_services.coordinator.running.settings import RunSettings
from remy_services.coordinator.running.stopwatch import Stopwatch
from remy_services.designer.clock_budgets import Elapsed, exhausted
from remy_services.evaluation import Evaluation, Share, SharedEvaluator
from remy_services.jobs.states import PENDING


class JobRun:
    """Drives the designer of one job that this coordinator holds."""

    def __init__(
        self,
        environment: Environment,
        keeper: JobKeeper,
        evaluator: SharedEvaluator,
        settings: RunSettings,
    ) -> None:
        self._environment = environment
        self._keeper = keeper
        self._evaluator = evaluator
        self._settings = settings
        self._orders = Orders(keeper)
        progress = keeper.job.progress
        self._stopwatch = Stopwatch(Elapsed(progress.wall_seconds, progress.cpu_seconds))
        self._live = LiveProgress(self._stopwatch, progress, settings.price_per_cpu_hour)
        self._desk: Desk | None = None
        self._saver: Saver | None = None

    def look(self) -> None:
        """The job's record has changed."""
        self._orders.bell.set()

    def leave(self, why: str) -> None:
        """Has the job keep what it has, and wait for another turn. `why` is for people."""
        self._orders.leave(why)

    def hurry(self) -> None:
        """A job that is being cancelled ends at once, without its closing evaluation."""
        self._orders.hurry()

    def write_live(self, progress: job_pb2.JobProgress) -> None:
        """Sets what is known besides what was committed."""
        self._live.write(progress)
        if self._desk is not None:
            self._live.write_eta(progress, self._keeper.job.spec.stop, self._desk)

    async def run(self) -> None:
        """Returns when the job is not active any more, or belongs to another coordinator."""
        try:
            await self._run()
        except JobLost:
            pass
        except Exception as error:
            await self._fail(error)
        finally:
            if self._saver is not None:
                await self._saver.close()

    async def _run(self) -> None:
        keeper = self._keeper
        if keeper.job.state == PENDING:
            await keeper.change(endings.schedule)
        begun = await begin(self._environment, keeper, self._evaluate)
        if begun is None:
            await self._settle()
            return
        desk, saver = self._set_up(begun)
        await saver.save(endings.started(self._environment, begun))
        if may_have_been_extended(keeper.job, desk.finished, self._stopwatch.elapsed()):
            await desk.reconsider(keeper.job.spec)
        while await self._step(desk, saver):
            pass

    def _set_up(self, begun: Begun) -> tuple[Desk, Saver]:
        record = self._keeper.record
        self._desk = Desk(
            self._environment,
            record.job.id,
            begun.designer,
            spec=begun.spec,
            first_table=first_table(record),
            progress=record.job.progress,
            last_sequence=begun.last_sequence,
            elapsed=self._stopwatch.elapsed,
        )
        self._saver = Saver(
            self._environment,
            self._keeper,
            self._desk,
            self.write_live,
            self._settings,
            refused=[each.revision for each in begun.refused],
            on_failure=self._orders.bell.set,
        )
        return self._desk, self._saver

    async def _step(self, desk: Desk, saver: Saver) -> bool:
        """One request and its outcome; False if the run is over."""
        order = self._orders.next()
        if order is Order.VANISH:
            return False
        if order is Order.LEAVE:
            await self._settle()
            return False
        if order is Order.STOP:
            self._orders.stopped()
            await desk.stop(progress_pb2.STOP_REASON_CANCELLED)
        if order is Order.GO_ON:
            await self._follow_budgets(desk)
        request = await desk.next_request()
        if request is None:
            return not await self._finish(desk, saver)
        with self._environment.observer.step(self._keeper.job, request):
            self._live.began(request, desk)
            evaluation = await self._evaluate(request)
            if evaluation is None:
                return True
            self._live.evaluated(evaluation)
            await desk.receive(evaluation.outcome)
        check_work(desk.simulated_packets, self._settings.maximum_packets)
        await saver.keep_up()
        saver.note()
        return True

    async def _follow_budgets(self, desk: Desk) -> None:
        spec = self._keeper.job.spec
        if spec != desk.spec:
            await desk.reconsider(spec)
        spent = exhausted(spec.stop, self._stopwatch.elapsed())
        if spent is not None:
            await desk.stop(spent)

    async def _evaluate(self, request: evaluation_pb2.EvaluationRequest) -> Evaluation | None:
        job = self._keeper.job
        return await evaluate_unless(
            self._orders.interrupt,
            self._orders.bell,
            self._evaluator,
            Share(job.id, job.priority, job.weight),
            request,
            self._live.reported,
        )

    async def _finish(self, desk: Desk, saver: Saver) -> bool:
        """Commits the end of the design; False if it was extended meanwhile."""
        reason = desk.finished
        assert reason is not None
        try:
            await saver.save(endings.finished(reason, desk.spec))
        except endings.BudgetsChanged:
            return False
        return True

    async def _settle(self) -> None:
        """Commits what there is, and the state that the job waits or ends in."""
        await self._save(endings.settled(self._orders.why_leave or ""))

    async def _fail(self, error: Exception) -> None:
        fail = endings.failed(*reason_for(error))
        with contextlib.suppress(JobLost):
            try:
                await self._save(fail)
            except JobLost:
                raise
            except Exception:
                # What the designer last said may be what is wrong.
                await self._keeper.change(fail)

    async def _save(self, edit: Edit) -> None:
        """Commits a change, with all that the designer has said if there is one."""
        await (self._saver.save(edit) if self._saver else self._keeper.change(edit))
