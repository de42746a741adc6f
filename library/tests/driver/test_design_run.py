"""Tests whole runs of small designs with the simulator and files."""

import fcntl
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from library.tests.designer.small_spec import small_spec
from library.tests.driver.joint_spec import joint_spec
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import DesignObserver, read_events
from remy_farm.driver.run import DesignResult, DesignRun, with_budget
from remy_farm.files import FileError
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_spec
from remy_proto.v1 import progress_pb2, spec_pb2

SPEC = small_spec(signals="send_ewma, rtt_ratio", simulated_seconds=1, epochs_per_split=1, epochs=2)
#: Files that must be the same, byte for byte, however the design was made.
PUBLISHED = ("remycc.json", "remycc.dna", "pareto.csv", "spec.yaml", "provenance.json")


class Recorder(DesignObserver):
    """An observer that records its calls, and may call a function at every event."""

    def __init__(
        self, at_event: Callable[[progress_pb2.ProgressEvent], None] | None = None
    ) -> None:
        #: Steps made by earlier runs, and whether the design was resumed.
        self.start: tuple[int, bool] | None = None
        self.reports: list[progress_pb2.JobProgress] = []
        self.events: list[progress_pb2.ProgressEvent] = []
        self._at_event = at_event

    def started(self, steps: int, *, resumed: bool) -> None:
        self.start = (steps, resumed)

    def progress(self, progress: progress_pb2.JobProgress) -> None:
        self.reports.append(progress)

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        self.events.append(event)
        if self._at_event is not None:
            self._at_event(event)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DesignResult, Recorder]:
    """Runs a design without interruption."""
    out = tmp_path_factory.mktemp("whole") / "out"
    recorder = Recorder()
    result = DesignRun(SPEC, out, threads=2).run(recorder)
    return out, result, recorder


def published(out: Path) -> dict[str, bytes]:
    """Returns the content of the PUBLISHED files by name."""
    return {name: (out / name).read_bytes() for name in PUBLISHED}


def events_without_times(out: Path) -> list[progress_pb2.ProgressEvent]:
    """Returns the events of progress.jsonl without their times."""
    events = list(read_events(out / "progress.jsonl"))
    for event in events:
        event.ClearField("wall_seconds")
        event.ClearField("cpu_seconds")
    return events


Whole = tuple[Path, DesignResult, Recorder]


def test_a_run_writes_all_of_its_files(whole: Whole) -> None:
    out, result, _ = whole

    assert result.reason == progress_pb2.STOP_REASON_EPOCHS
    assert len(result.epochs) == 2
    assert read_remycc(out / "remycc.json").table == result.table
    assert read_remycc(out / "remycc.dna").table == result.table
    assert load_spec(out / "spec.yaml") == SPEC
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["seed"] == SPEC.search.seed
    assert set(provenance["versions"]) >= {"remy-farm", "remy-simulator", "python"}
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [".lock", "checkpoint.bin", "progress.jsonl", *PUBLISHED]
    )


def test_the_observer_receives_the_events_of_the_log(whole: Whole) -> None:
    out, result, recorder = whole
    events = list(read_events(out / "progress.jsonl"))

    assert recorder.events == events
    assert recorder.start == (0, False)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert events[-1].design_finished.reason == progress_pb2.STOP_REASON_EPOCHS
    assert [event.step for event in events] == sorted(event.step for event in events)
    times = [event.cpu_seconds for event in events]
    assert times == sorted(times)
    assert result.steps == events[-1].step


def test_progress_reports_the_running_step(whole: Whole) -> None:
    _, result, recorder = whole

    assert {report.step for report in recorder.reports} >= set(range(1, result.steps + 1))
    for report in recorder.reports:
        assert 0 <= report.candidates_done <= report.candidates
        assert report.simulated_packets >= 0
        assert report.eta_seconds >= 0
    last = {report.step: report for report in recorder.reports}
    assert all(report.candidates_done == report.candidates for report in last.values())


def test_repeated_interrupts_do_not_change_the_design(whole: Whole, tmp_path: Path) -> None:
    out = tmp_path / "out"
    runs = 0
    while True:
        events = 0

        def count(_event: progress_pb2.ProgressEvent) -> None:
            nonlocal events
            events += 1
            if events == 4:
                run.interrupt()  # noqa: B023 - called while `run` runs

        run = DesignRun(SPEC, out, threads=2, resume=runs > 0)
        recorder = Recorder(count)
        result = run.run(recorder)
        runs += 1
        assert recorder.start is not None
        assert recorder.start[1] == (runs > 1)
        if result.reason is not None:
            break

    assert runs > 3
    assert published(out) == published(whole[0])
    assert events_without_times(out) == events_without_times(whole[0])
    assert result.epochs == whole[1].epochs


def test_the_design_does_not_depend_on_the_number_of_threads(whole: Whole, tmp_path: Path) -> None:
    DesignRun(SPEC, tmp_path, threads=1).run()
    assert published(tmp_path) == published(whole[0])
    assert events_without_times(tmp_path) == events_without_times(whole[0])


def test_a_finished_design_continues_with_a_larger_budget(whole: Whole, tmp_path: Path) -> None:
    for steps in (3, 4, 11):
        spec = with_budget(SPEC, max_steps=steps)
        result = DesignRun(spec, tmp_path, resume=steps > 3).run()
        assert result.reason == progress_pb2.STOP_REASON_STEPS
        assert result.steps == steps

    result = DesignRun(SPEC, tmp_path, resume=True).run()

    assert result.reason == progress_pb2.STOP_REASON_EPOCHS
    assert result.table == whole[1].table
    assert result.epochs == whole[1].epochs
    assert published(tmp_path) == published(whole[0])


def test_resuming_a_finished_design_changes_nothing(whole: Whole) -> None:
    before = published(whole[0]), events_without_times(whole[0])

    recorder = Recorder()
    result = DesignRun(SPEC, whole[0], resume=True).run(recorder)

    assert recorder.start == (whole[1].steps, True)
    assert recorder.events == []
    assert result.reason == progress_pb2.STOP_REASON_EPOCHS
    assert (published(whole[0]), events_without_times(whole[0])) == before


def test_a_budget_of_cpu_time_stops_a_design_between_two_steps(tmp_path: Path) -> None:
    spec = with_budget(SPEC, max_cpu_seconds=1e-9)

    result = DesignRun(spec, tmp_path).run()

    # CPU time is that of evaluations, so that the first step is always made.
    assert (result.reason, result.steps) == (progress_pb2.STOP_REASON_CPU_SECONDS, 1)
    assert result.cpu_seconds > 0
    again = DesignRun(spec, tmp_path, resume=True).run()
    assert (again.reason, again.steps) == (progress_pb2.STOP_REASON_CPU_SECONDS, 1)
    longer = DesignRun(with_budget(SPEC, max_steps=2), tmp_path, resume=True).run()
    assert (longer.reason, longer.steps) == (progress_pb2.STOP_REASON_STEPS, 2)


def test_a_directory_with_a_design_is_refused_without_resume(whole: Whole) -> None:
    before = published(whole[0])
    with pytest.raises(FileError, match="already holds a design; resume it, or choose another"):
        DesignRun(SPEC, whole[0]).run()
    assert published(whole[0]) == before


def test_resuming_with_another_specification_is_refused(whole: Whole) -> None:
    other = spec_pb2.DesignSpec()
    other.CopyFrom(SPEC)
    other.search.seed = 99
    before = published(whole[0])
    with pytest.raises(FileError, match=r"checkpoint\.bin: .* another specification"):
        DesignRun(other, whole[0], resume=True).run()
    assert published(whole[0]) == before


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    DesignRun(with_budget(SPEC, max_steps=2), tmp_path).run()
    checkpoint = OutDirectory(tmp_path).checkpoint
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    with pytest.raises(FileError, match=r"checkpoint\.bin: the checkpoint .* is damaged"):
        DesignRun(SPEC, tmp_path, resume=True).run()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    DesignRun(with_budget(SPEC, max_steps=1), tmp_path).run()
    with (tmp_path / ".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FileError, match="is in use by another run"):
            DesignRun(SPEC, tmp_path, resume=True).run()
    assert DesignRun(SPEC, tmp_path, resume=True).run().reason is not None


def test_an_unwritable_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"file/out: cannot be written \(not a directory\)"):
        DesignRun(SPEC, tmp_path / "file" / "out").run()


def test_a_design_can_run_outside_of_the_main_thread(tmp_path: Path) -> None:
    results: list[DesignResult] = []
    spec = with_budget(SPEC, max_steps=2)
    thread = threading.Thread(target=lambda: results.append(DesignRun(spec, tmp_path).run()))
    thread.start()
    thread.join()
    assert results[0].steps == 2


def test_steps_of_a_budget_are_measured_once(tmp_path: Path) -> None:
    first = DesignRun(with_budget(joint_spec(), max_steps=2), tmp_path).run()
    assert first.reason == progress_pb2.STOP_REASON_STEPS
    assert not first.spec.search.joint.HasField("cpu_seconds")

    larger = joint_spec()
    larger.search.joint.cpu_seconds = 1e6
    result = DesignRun(larger, tmp_path, resume=True).run()

    assert result.reason == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    assert result.spec.search == first.spec.search
    assert load_spec(tmp_path / "spec.yaml") == result.spec


def test_an_interrupted_rehearsal_leaves_only_the_lock(tmp_path: Path) -> None:
    run = DesignRun(joint_spec(), tmp_path)
    run.interrupt()
    result = run.run()
    assert (result.reason, result.steps) == (None, 0)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]

    again = DesignRun(joint_spec(), tmp_path, resume=True).run()
    assert again.reason == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
