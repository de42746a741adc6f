"""Simulations can be cancelled, whatever they are doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

import remy_simulator
from remy_proto.v1 import evaluation_pb2, rule_table_pb2


def _request(
    action: tuple[float, float, float], specimen: evaluation_pb2.Specimen
) -> evaluation_pb2.EvaluationRequest:
    """Makes a request that would take longer than a lifetime."""
    table = remy_simulator.RuleTable([0], [([], action)])
    return evaluation_pb2.EvaluationRequest(
        tables=[rule_table_pb2.RuleTable.FromString(table.to_message())],
        candidates=[evaluation_pb2.Candidate()] * 3,
        specimens=[specimen],
        duration_ms=1e15,
        seed=3,
    )


def _specimen(
    senders: int, on_ms: float, off_ms: float, buffer: int | None
) -> evaluation_pb2.Specimen:
    traffic = evaluation_pb2.Traffic(exponential_time={"mean_ms": on_ms}, mean_off_ms=off_ms)
    return evaluation_pb2.Specimen(
        key=1,
        link_rate_packets_per_ms=10.0,
        rtt_ms=100.0,
        buffer_packets=buffer,
        senders=[evaluation_pb2.SenderGroup(count=senders, traffic=traffic)],
    )


_ENDLESS = {
    "an ordinary one": _request((1.0, 1.0, 1.0), _specimen(2, 1000.0, 1000.0, 100)),
    "one that fills the memory of the path": _request(
        (1.0, 1000.0, 0.001), _specimen(1, 1e14, 1.0, None)
    ),
    "one that drops nearly all": _request((1.0, 1e5, 0.0), _specimen(2, 1e14, 1.0, 1)),
    "one of very many senders that hardly ever send": _request(
        (0.0, 0.0, 1.0), _specimen(16_383, 0.001, 0.001, None)
    ),
}


@pytest.mark.parametrize("what", _ENDLESS)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_cancelled_simulation_ends(what: str, threads: int) -> None:
    cancellation = remy_simulator.Cancellation()
    timer = threading.Timer(0.2, cancellation.cancel)
    timer.start()
    assert not cancellation.cancelled
    with pytest.raises(remy_simulator.Cancelled, match="cancelled"):
        remy_simulator.evaluate_columns(_ENDLESS[what], threads, cancellation=cancellation)
    assert cancellation.cancelled
    with pytest.raises(remy_simulator.Cancelled):
        remy_simulator.evaluate_columns(_ENDLESS[what], threads, cancellation=cancellation)


@pytest.mark.parametrize("what", list(_ENDLESS)[:3])
def test_a_packet_limit_ends_a_simulation(what: str) -> None:
    with pytest.raises(remy_simulator.Cancelled, match="more than 100000 packets"):
        remy_simulator.evaluate_columns(_ENDLESS[what], 2, packet_limit=100_000)


def test_the_packet_limit_is_exact() -> None:
    """It depends only on the packets, not on when a thread checks."""
    request = evaluation_pb2.EvaluationRequest()
    request.CopyFrom(_ENDLESS["an ordinary one"])
    request.duration_ms = 20_000.0
    packets = sum(remy_simulator.evaluate_columns(request).packets_sent)
    assert packets > 0
    for threads in (1, 3):
        remy_simulator.evaluate_columns(request, threads, packet_limit=packets)
        with pytest.raises(remy_simulator.Cancelled):
            remy_simulator.evaluate_columns(request, threads, packet_limit=packets - 1)


_PROGRAM = """
import sys
import remy_simulator
from remy_proto.v1 import evaluation_pb2
request = evaluation_pb2.EvaluationRequest.FromString(bytes.fromhex(sys.argv[1]))
print("begun", flush=True)
remy_simulator.evaluate_columns(request, int(sys.argv[2]))
"""


@pytest.mark.parametrize("what", _ENDLESS)
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_simulation_and_its_threads(what: str, threads: int) -> None:
    encoded = _ENDLESS[what].SerializeToString().hex()
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, encoded, str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    # nanobind reports objects of the simulator that leak at the process's end.
    assert "nanobind" not in errors
