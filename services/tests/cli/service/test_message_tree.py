import json

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from remy_cli.views import print_job
from remy_farm.specification import parse_spec, spec_from_tree
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.jobs.formatting import job_dict, message_dict
from services.tests.cli.conftest import SMALL_SPEC


def test_job_as_json() -> None:
    spec = parse_spec(SMALL_SPEC)
    job = job_pb2.Job(
        id="7",
        state=job_pb2.JOB_STATE_SUCCEEDED,
        stop_reason=progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN,
        spec=spec,
        create_time=Timestamp(seconds=1, nanos=500_000_000),
        revision=2**63,
    )
    output = job_dict(job)
    assert output["state"] == "succeeded"
    assert output["stop_reason"] == "epochs_without_gain"
    assert output["failure_reason"] is None
    assert output["create_time"] == "1970-01-01T00:00:01.500Z"
    assert output["end_time"] is None
    assert output["revision"] == 2**63
    assert spec_from_tree(output["spec"]) == spec
    assert list(output)[-1] == "spec"
    assert {field.name for field in job.DESCRIPTOR.fields} == set(output)


@pytest.mark.parametrize("steps", [0, 55])
def test_the_status_of_a_job_whose_climb_rests_says_so(
    steps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = progress_pb2.JobProgress(step=70, rules=3, resting_steps=steps)
    job = job_pb2.Job(id="7", state=job_pb2.JOB_STATE_RUNNING, progress=progress)
    print_job(job, as_json=False)
    sentence = "the climb has stalled: no slope was significant for 55 steps"
    assert (sentence in capsys.readouterr().out) == (steps > 0)


def test_absent_field_is_null_and_zero_is_zero() -> None:
    progress = progress_pb2.JobProgress(share_done=0.0, cpu_seconds=float("nan"))
    output = message_dict(progress)
    assert output["share_done"] == 0.0
    assert output["estimated_cost"] is None
    assert output["step"] == 0
    assert output["cpu_seconds"] is None
    json.dumps(output, allow_nan=False)


def test_nested_messages_and_lists() -> None:
    response = messages.CompareJobsResponse(
        differences=[messages.SettingDifference(path="a.b", values=["1", ""])]
    )
    assert message_dict(response) == {
        "jobs": [],
        "differences": [{"path": "a.b", "values": ["1", ""]}],
    }


def test_bytes_are_hexadecimal() -> None:
    assert message_dict(messages.ExportJobRequest(job="x")) == {"job": "x"}
    assert message_dict(messages.ExportJobResponse(part=b"\x00\xff")) == {"part": "00ff"}


def test_unknown_enum_value_is_shown_by_its_number() -> None:
    job = job_pb2.Job.FromString(bytes([0x20, 99]))
    assert job_dict(job)["state"] == "unknown_99"
