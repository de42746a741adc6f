"""Tests the pure reconciler of DesignJob objects and jobs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.specification import load_spec, spec_from_tree
from remy_farm.specification.schema import descriptor_of
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.jobs.states import (
    CANCELLED,
    FAILED,
    FINAL,
    PAUSED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Operation,
)
from remy_services.kubernetes.design_jobs import (
    PHASES,
    Ask,
    mirror_of,
    observed_design_job,
    reconcile_objects,
    tree_of,
    with_numbers,
)
from services.tests.kubernetes.design_job_model import DESIGN, Crash, Model

ROOT = Path(__file__).resolve().parents[3]

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def applied(**spec: Any) -> Model:
    """Returns a model with a user's object and its job."""
    model = Model()
    model.create("mine", {"design": DESIGN, **spec})
    model.settle()
    return model


def submitted_by_grpc(state: job_pb2.JobState = RUNNING) -> Model:
    """Returns a model with a job submitted by gRPC."""
    model = Model()
    job = job_pb2.Job(id="6b02a4e7c087b7c672", name="By_gRPC", owner="ada", weight=0.5, state=state)
    job.spec.CopyFrom(small_joint_spec(stop={"epochs": 7}))
    model.jobs[job.id] = job
    model.settle()
    return model


def status(model: Model, name: str = "mine") -> dict[str, Any]:
    found: dict[str, Any] = model.objects[name]["status"]
    return found


def test_an_object_creates_a_job_with_its_settings() -> None:
    model = applied(priority=3, weight="0.25", queueName="team")
    job = model.job_of_object("mine")
    assert (job.name, job.priority, job.weight, job.queue_name) == ("mine", 3, 0.25, "team")
    assert job.spec.network.rtt_ms.exact == 150.5
    assert job.spec.name == "mine"
    assert job.state == PENDING
    assert status(model)["phase"] == "Pending"
    assert status(model)["jobID"] == job.id
    model.check()


def test_a_paused_object_creates_a_paused_job() -> None:
    model = applied(paused=True)
    assert model.job_of_object("mine").state == PAUSED
    model.change("mine", {"paused": False})
    model.settle()
    assert model.job_of_object("mine").state == PENDING


@pytest.mark.parametrize("event", ["apply", "pause", "finish", "delete"])
def test_crashes_between_actions_do_not_change_the_outcome(event: str) -> None:
    def start() -> Model:
        model = Model() if event == "apply" else applied()
        match event:
            case "apply":
                model.create("mine", {"design": DESIGN})
            case "pause":
                model.run(model.job_of_object("mine").id)
                model.change("mine", {"paused": True, "priority": 9, "design": {"stop": None}})
                model.change("mine", {"design": {"stop": {"epochs": 11}}})
            case "finish":
                model.run(model.job_of_object("mine").id)
                model.run(model.job_of_object("mine").id)
            case "delete":
                model.run(model.job_of_object("mine").id)
                model.delete("mine")
        return model

    def outcome(model: Model) -> Any:
        model.check()
        states = [(job.state, job.priority, job.spec.stop.epochs) for job in model.jobs.values()]
        found = [(each["spec"], each["status"]["phase"]) for each in model.objects.values()]
        reasons = [each["reason"] for each in model.events.values()]
        assert len(set(reasons)) == len(reasons)
        return states, found, model.created

    whole = start()
    whole.settle()
    crashes = 0
    for number in range(30):
        for steps_before in range(4):
            model = start()
            with contextlib.suppress(Crash):
                for _ in range(steps_before):
                    model.step()
                try:
                    model.step(number)
                except Crash:
                    crashes += 1
                    raise
            model.settle()
            assert outcome(model) == outcome(whole)
    assert crashes > 3


def test_changes_of_the_object_are_applied_to_the_job() -> None:
    model = applied()
    model.run(model.job_of_object("mine").id)
    model.change("mine", {"priority": 4, "design": {"search": {"joint": {"steps": 300}}}})
    model.change("mine", {"design": {"stop": {"cpu_seconds": "1.5"}}})
    model.settle()
    job = model.job_of_object("mine")
    assert (job.priority, job.spec.search.joint.steps) == (4, 300)
    assert job.spec.stop == spec_pb2.Stop(epochs=7, cpu_seconds=1.5)
    assert job.state == RUNNING
    model.check()


def test_changes_of_the_job_are_written_to_the_object() -> None:
    model = applied()
    job = model.job_of_object("mine")
    model.run(job.id)
    model.call(job.id, Operation.PAUSE)
    model.call(job.id, Operation.EXTEND)
    job.spec.stop.ClearField("epochs")
    job.spec.stop.wall_seconds = 0.5
    job.priority = -2
    model.settle()
    spec = model.objects["mine"]["spec"]
    assert (spec["paused"], spec["priority"]) == (True, -2)
    assert spec["design"]["stop"] == {"wall_seconds": "0.5"}
    assert job.state == PAUSED
    model.call(job.id, Operation.RESUME)
    model.settle()
    assert spec["paused"] is False
    assert job.state == PENDING


def test_steps_converted_from_a_time_budget_are_not_written_to_the_object() -> None:
    model = Model()
    joint = {"cpu_seconds": 60}
    model.create("mine", {"design": {**DESIGN, "search": {"joint": joint}}})
    model.settle()
    model.job_of_object("mine").spec.search.joint.steps = 4711
    model.change("mine", {"priority": 1})
    model.settle()
    assert model.job_of_object("mine").spec.search.joint.steps == 4711
    assert model.objects["mine"]["spec"]["design"]["search"]["joint"] == joint


def test_a_refused_change_is_reported_and_kept() -> None:
    model = applied()
    job = model.job_of_object("mine")
    job.state = FAILED
    model.change("mine", {"design": {"stop": {"epochs": 9}}})
    model.settle()
    assert model.accepted("mine")["status"] == "False"
    assert "cannot be extended" in model.accepted("mine")["message"]
    assert [each["type"] for each in model.events.values() if "Refused" in each["reason"]] == [
        "Warning"
    ]
    # Also after a restart of the coordinator.
    model.known = {}
    model.settle()
    assert model.objects["mine"]["spec"]["design"]["stop"] == {"epochs": 9}
    assert model.accepted("mine")["status"] == "False"
    model.change("mine", {"design": {"stop": {"epochs": 7}}})
    model.settle()
    assert model.accepted("mine")["status"] == "True"


def test_deleting_an_object_cancels_its_job() -> None:
    model = applied()
    job = model.job_of_object("mine")
    model.run(job.id)
    model.delete("mine")
    assert model.objects
    model.settle()
    assert not model.objects
    assert job.state == CANCELLED
    # If the job is extended, it gets a mirror.
    model.call(job.id, Operation.EXTEND)
    model.settle()
    (mirror,) = model.objects.values()
    assert mirror["metadata"]["name"] == f"mine-{job.id}"
    assert mirror["spec"]["design"]["stop"] == {"epochs": 8}
    model.check()


def test_a_submitted_job_gets_a_mirror() -> None:
    model = submitted_by_grpc()
    name = "by-grpc-6b02a4e7c087b7c672"
    spec = model.objects[name]["spec"]
    assert (spec["weight"], spec["paused"], spec["priority"]) == ("0.5", False, 0)
    assert status(model, name)["owner"] == "ada"
    model.change(name, {"paused": True})
    model.settle()
    assert model.jobs["6b02a4e7c087b7c672"].state == PAUSED
    model.call("6b02a4e7c087b7c672", Operation.DELETE)
    model.settle()
    assert not model.objects


def test_a_final_job_gets_no_mirror() -> None:
    for state in FINAL:
        assert not submitted_by_grpc(state).objects


def test_an_object_without_job_reports_it() -> None:
    model = applied(paused=True)
    model.call(model.job_of_object("mine").id, Operation.DELETE)
    model.settle()
    assert status(model)["phase"] == "Missing"
    assert "apply it again" in status(model)["message"]
    model.known = {}
    model.settle()
    assert not model.jobs
    model.delete("mine")
    assert not model.objects


def test_jobs_of_other_coordinators_are_left_alone() -> None:
    model = applied()
    job_id = model.job_of_object("mine").id
    del model.jobs[job_id]
    seen = [observed_design_job(each) for each in model.objects.values()]
    assert list(reconcile_objects(seen, {job_id: None}, {}, model.now)) == []


def test_evaluation_jobs_have_no_object() -> None:
    model = applied()
    job = model.job_of_object("mine")
    job.evaluation.SetInParent()
    assert list(reconcile_objects([], {job.id: job}, {}, model.now)) == []


def test_results_are_published_at_each_end() -> None:
    model = applied()
    job = model.job_of_object("mine")
    for _ in range(2):
        model.run(job.id)
    model.settle()
    assert model.published == [job.id]
    assert status(model)["result"] == {"revision": job.revision}
    model.known = {}
    model.settle()
    assert model.published == [job.id]
    model.change("mine", {"design": {"stop": {"epochs": 20}}})
    model.settle()
    for _ in range(2):
        model.run(job.id)
    model.settle()
    assert model.published == [job.id, job.id]


def test_progress_writes_are_rate_limited() -> None:
    model = applied()
    job = model.job_of_object("mine")
    model.run(job.id)
    assert model.step()
    job.progress.step = 5
    assert not model.step()
    model.now += 10
    assert model.step()
    assert status(model)["step"] == 5
    job.progress.step = 6
    model.call(job.id, Operation.PAUSE)
    assert model.step()
    assert status(model)["phase"] == "Pausing"


def test_conditions_keep_their_transition_time() -> None:
    model = applied()
    began = {each["type"]: each for each in status(model)["conditions"]}
    model.run(model.job_of_object("mine").id)
    model.settle()
    then = {each["type"]: each for each in status(model)["conditions"]}
    assert then["Complete"]["lastTransitionTime"] == began["Complete"]["lastTransitionTime"]
    assert then["Running"]["lastTransitionTime"] > began["Running"]["lastTransitionTime"]
    model.job_of_object("mine").state = SUCCEEDED
    model.settle()
    done = {each["type"]: each["status"] for each in status(model)["conditions"]}
    assert done == {"Accepted": "True", "Running": "False", "Complete": "True", "Failed": "False"}


def test_every_state_is_a_phase() -> None:
    names = {job_pb2.JobState.Name(each) for each in job_pb2.JobState.values() if each}
    phases = {each.removeprefix("JOB_STATE_").capitalize() for each in names}
    assert set(PHASES) == phases | {"Refused", "Missing"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_specifications_round_trip_through_objects(path: Path) -> None:
    spec = load_spec(path)
    tree = mirror_of(job_pb2.Job(id="1", spec=spec, weight=1))["spec"]["design"]
    assert spec_from_tree(with_numbers(tree, descriptor_of(spec)), "the object") == spec
    assert not list(floats(tree))


def test_the_example_object_is_the_demo() -> None:
    manifest = yaml.safe_load((ROOT / "examples" / "kubernetes" / "design-job.yaml").read_text())
    model = Model()
    model.create(manifest["metadata"]["name"], manifest["spec"])
    model.settle()
    assert model.job_of_object("demo").spec == load_spec(ROOT / "examples" / "demo.yaml")


def floats(tree: Any) -> Any:
    match tree:
        case float():
            yield tree
        case dict():
            for each in tree.values():
                yield from floats(each)
        case list():
            for each in tree:
                yield from floats(each)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2**64 - 1))
def test_numbers_round_trip_exactly(value: float, seed: int) -> None:
    spec = spec_pb2.DesignSpec(search=spec_pb2.Search(simulated_seconds=value, seed=seed))
    tree = tree_of(spec)
    back = with_numbers(tree, descriptor_of(spec))["search"]
    assert (float(back["simulated_seconds"]), back["seed"]) == (value + 0.0, seed)
    assert not list(floats(tree))


OPERATIONS = list(Operation)


@given(st.data())
@settings(max_examples=60)
def test_objects_and_jobs_converge_after_random_events(
    data: st.DataObject,
) -> None:
    model = submitted_by_grpc(data.draw(st.sampled_from([PENDING, RUNNING, PAUSED, SUCCEEDED])))
    for _ in range(data.draw(st.integers(1, 12), "rounds")):
        event = data.draw(st.sampled_from(["apply", "change", "delete", "call", "run", "wait"]))
        name = data.draw(st.sampled_from(sorted({*model.objects, "first", "second"})))
        if event == "apply" and name not in model.objects:
            model.create(name, {"design": DESIGN, "paused": data.draw(st.booleans())})
        elif event == "change" and name in model.objects:
            stop = {"stop": {"epochs": data.draw(st.integers(5, 9))}}
            paused, priority = data.draw(st.booleans()), data.draw(st.integers(-1, 1))
            model.change(name, {"paused": paused, "priority": priority, "design": stop})
        elif event == "delete" and name in model.objects:
            model.delete(name)
        elif event in ("call", "run") and model.jobs:
            job_id = data.draw(st.sampled_from(sorted(model.jobs)))
            if event == "run":
                model.run(job_id)
            else:
                model.call(job_id, data.draw(st.sampled_from(OPERATIONS)))
        model.now += data.draw(st.sampled_from([1.0, 60.0]))
        with contextlib.suppress(Crash):
            model.step(data.draw(st.none() | st.integers(0, 6), "crash before"))
    model.settle()
    model.check()


def test_requests_carry_the_generation() -> None:
    model = Model()
    model.create("mine", {"design": DESIGN})
    model.change("mine", {"priority": 5})
    (ask,) = [each for each in model.plan() if isinstance(each, Ask)]
    assert ask.generation == 2
