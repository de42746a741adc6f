"""Tests that a job's design is byte-identical to one in-process."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from library.tests.designer.pair_spec import pair_spec
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_pattern_spec import small_pattern_spec
from library.tests.designer.small_spec import small_spec
from library.tests.driver.joint_spec import joint_spec
from remy_farm.driver.run import DesignRun
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import spec_pb2
from remy_services.jobs.states import SUCCEEDED
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.coordinator.running_server import Client

_SPECS = {
    "paper": small_spec(
        signals="send_ewma, rtt_ratio", epochs_per_split=1, epochs=2, simulated_seconds=1
    ),
    "joint": small_joint_spec(starts=2, start_steps=4),
    "scale-free": small_joint_spec(signals="send_ratio, rtt_ratio", edition=2, maximum_rules=20),
    "pattern": small_pattern_spec(steps=20),
}


@pytest.fixture(params=sorted(_SPECS))
def spec(request: pytest.FixtureRequest) -> spec_pb2.DesignSpec:
    return _SPECS[request.param]


def test_history_and_table_equal_the_embedded_design(
    client: Client, spec: spec_pb2.DesignSpec, tmp_path: Path
) -> None:
    table, events = embedded_design(spec, tmp_path / "embedded")
    job = client.submit(spec)
    history = client.history(job.id)

    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    progress = [event.progress for event in history if event.HasField("progress")]
    assert [without_clocks(event) for event in progress] == events
    shown = client.get(job.id)
    assert shown.state == SUCCEEDED
    assert shown.revision == len(history)
    assert shown.progress.step == events[-1].step
    assert client.remycc(job.id) == table


def test_a_cpu_time_budget_is_converted_to_steps_once(client: Client, tmp_path: Path) -> None:
    job = client.until_final(client.submit(joint_spec()).id)
    assert not job.spec.search.joint.HasField("cpu_seconds")
    changes = [each for each in client.history(job.id) if each.HasField("budget_changed")]
    (changed,) = [each.budget_changed for each in changes]
    assert changed.joint_steps == job.spec.search.joint.steps > 0
    table, _ = embedded_design(job.spec, tmp_path / "embedded")
    assert client.remycc(job.id) == table


def test_tables_designed_together_are_fetched_by_name(client: Client, tmp_path: Path) -> None:
    DesignRun(pair_spec(), tmp_path / "pair", threads=1).run()
    job = client.until_final(client.submit(pair_spec()).id)
    assert job.state == SUCCEEDED
    last = job.progress.epoch - 1
    for name in ("fast", "low-delay"):
        expected = (tmp_path / "pair" / f"remycc-{name}.json").read_bytes()
        for epoch in (None, last):
            request = messages.GetRemyCCRequest(job=job.id, table=name, epoch=epoch)
            assert client.call("GetRemyCC", request).content == expected
    assert client.remycc(job.id) == (tmp_path / "pair" / "remycc-fast.json").read_bytes()
    with pytest.raises(grpc.RpcError, match="must be one of fast, low-delay"):
        client.call("GetRemyCC", messages.GetRemyCCRequest(job=job.id, table="brisk"))
