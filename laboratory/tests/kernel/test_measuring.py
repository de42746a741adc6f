"""Tests measurements with real sockets over an emulated link, and the simulator's predictions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import remy_simulator
from laboratory.tests.kernel.tables import SCALE_FREE, needs_c, needs_kernel
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.remycc import read_remycc
from remy_farm.specification import SpecError
from remy_laboratory.kernel import measuring
from remy_laboratory.kernel.differential import c_compiler
from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.fixed_point import SOURCES, IntegerTable
from remy_laboratory.kernel.linux import ebpf_files, write_ebpf
from remy_laboratory.kernel.measuring import (
    RunResult,
    Workload,
    build_emulator,
    jain,
    measure,
    measure_once,
    predict,
    save_plot,
)
from remy_laboratory.kernel.running import RunRecord, Scope, run_counters, running_table
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

LINK = Link(rate_mbps=10, rtt_ms=40, buffer={"packets": 100})
RUN = RunResult(9.0, 50.0, (9.0,), 0, 0, 1.0, 100.0, True)


def test_fairness_is_jains_index() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 0.0]) == 0.5
    assert jain([]) == 0.0


def test_disturbed_run_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    late = iter([900.0, 100.0, 200.0, 5000.0, 4000.0, 6000.0])

    def run(*_: object, **__: object) -> RunResult:
        return replace(RUN, late_99_us=next(late))

    monkeypatch.setattr(measuring, "measure_once", run)
    messages: list[str] = []
    row = measure(
        Path("emulator"),
        LINK,
        Workload(1),
        "reno",
        repeats=3,
        seed=1,
        on_message=messages.append,
    )
    assert [each.late_99_us for each in row.details] == [100.0, 200.0, 4000.0]
    assert row.disturbed == 1
    assert len(messages) == 3
    assert all("disturbed" in message for message in messages)


def test_prediction_depends_on_jitter_for_fine_rules() -> None:
    table = read_remycc(SCALE_FREE).table
    load = Workload(2, seconds=10.0)
    exact = predict(table, Link(), load, jitter_ms=0.0, seed=1)
    noisy = predict(table, Link(), load, jitter_ms=0.12, seed=1)
    assert exact.total_mbps == pytest.approx(noisy.total_mbps, rel=0.1)
    assert exact != noisy
    assert predict(table, Link(), load, jitter_ms=0.12, seed=1) == noisy
    assert exact.total_mbps < 15
    assert exact.mean_rtt_ms > 150


def test_plot_is_a_png(tmp_path: Path) -> None:
    row = measuring.Row("reno", "alike", 1, 9.0, 9.0, 50.0, 1.0, 30.0, 1, 0, (RUN,))
    save_plot(
        tmp_path / "measured.png", LINK, [row, replace(row, flows=2), replace(row, details=())]
    )
    assert (tmp_path / "measured.png").read_bytes().startswith(b"\x89PNG")


def test_prediction_with_a_competitor_separates_their_rates() -> None:
    table = read_remycc(SCALE_FREE).table
    load = Workload(2, seconds=20.0, competitor="cubic")
    row = predict(table, Link(), load, jitter_ms=0.0, seed=1)
    assert row.load == "beside cubic"
    assert 0 < row.own_mbps < row.total_mbps


# A program that reads packets (arrival time in us, bytes). For each packet it prints the times in
# ms at which the packet leaves the queue, the link, and the jitter box.
_SCHEDULE = r"""
#define main emulator_main
#include LINK_EMULATOR
#undef main
int main(int argc, char** argv) {
  struct link_state link = {0};
  struct hold_state hold = {0};
  struct pipe_state pipe = {0};
  long long at_us, bytes;
  if (!read_options(argc, argv, &link, &hold)) {
    return 2;
  }
  link.rate_bps = atof(argv[3]);
  random_state = 1;
  pipe.slots = calloc(kSlots, sizeof(struct packet));
  while (scanf("%lld %lld", &at_us, &bytes) == 2) {
    int64_t taken_ns = 0;
    const int64_t left_ns = leaves_link(&link, at_us * 1000, bytes, &taken_ns);
    release(&hold, &pipe, &link, left_ns, 0);
    pipe.slots[pipe.end % kSlots].entered_ns = left_ns;
    pipe.slots[pipe.end++ % kSlots].leaves_queue_ns = taken_ns;
  }
  for (uint64_t i = 0; i < pipe.end; ++i) {
    printf("%.3f %.3f %.3f\n", (double)pipe.slots[i].leaves_queue_ns / 1e6,
           (double)pipe.slots[i].entered_ns / 1e6, (double)pipe.slots[i].arrives_ns / 1e6);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def schedule(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Link, list[tuple[float, int]]], list[list[float]]]:
    folder = tmp_path_factory.mktemp("schedule")
    (folder / "schedule.c").write_text(_SCHEDULE)
    command = [*c_compiler(), "-std=gnu11", "-O1", f'-DLINK_EMULATOR="{SOURCES}/link_emulator.c"']
    program = folder / "schedule"
    subprocess.run([*command, str(folder / "schedule.c"), "-o", str(program), "-lm"], check=True)

    def run(link: Link, packets: list[tuple[float, int]]) -> list[list[float]]:
        lines = "".join(f"{at_ms * 1000:.0f} {length}\n" for at_ms, length in packets)
        result = subprocess.run(
            [program, "senders", "receivers", *link.emulator_arguments(1)],
            input=lines,
            capture_output=True,
            text=True,
            check=True,
        )
        return [list(map(float, line.split())) for line in result.stdout.splitlines()]

    return run


@pytest.fixture
def trace(tmp_path: Path) -> str:
    (tmp_path / "link.trace").write_text("5\n5\n10\n20\n")
    return str(tmp_path / "link.trace")


def _trace_link(path: str, semantics: str, *, ends: bool = False, rtt_ms: float = 100) -> Link:
    trace = {"path": path, "semantics": semantics, "ends": ends}
    return Link(rtt_ms=rtt_ms, links=[{"trace": trace}])


Schedule = Callable[[Link, list[tuple[float, int]]], list[list[float]]]
ARRIVALS = [(0.0, 1500), (0.0, 1500), (5.0, 1500), (6.0, 1500), (30.0, 1500)]


@pytest.mark.parametrize(
    ("semantics", "departures_ms"),
    [
        ("ns2", [5, 5, 10, 20, 30]),
        # A packet that arrives exactly at an opportunity, like the last one, waits for the next.
        ("mahimahi", [5, 5, 10, 20, 40]),
        ("cellsim", [5, 5, 10, 20, 30]),
    ],
)
@needs_c
def test_trace_delivers_according_to_its_semantics(
    schedule: Schedule, trace: str, semantics: str, departures_ms: list[float]
) -> None:
    link = _trace_link(trace, semantics)
    assert [departure for _, departure, _ in schedule(link, ARRIVALS)] == departures_ms


@needs_c
def test_trace_that_ends_delivers_nothing_more(schedule: Schedule, trace: str) -> None:
    link = _trace_link(trace, "ns2", ends=True)
    departures_ms = [departure for _, departure, _ in schedule(link, ARRIVALS)]
    assert departures_ms[:4] == [5, 5, 10, 20]
    assert departures_ms[4] > 1e9


@pytest.mark.parametrize(
    ("semantics", "departures_ms"),
    [("ns2", [5, 5, 10]), ("mahimahi", [5, 5, 5]), ("cellsim", [5, 5, 5])],
)
@needs_c
def test_small_packets_share_an_opportunity_if_semantics_count_bytes(
    schedule: Schedule, trace: str, semantics: str, departures_ms: list[float]
) -> None:
    link = _trace_link(trace, semantics)
    assert [departure for _, departure, _ in schedule(link, [(0.0, 700)] * 3)] == departures_ms


@pytest.mark.parametrize("semantics", ["ns2", "mahimahi", "cellsim"])
@needs_c
def test_emulated_trace_links_deliver_as_many_packets_as_the_simulator(
    schedule: Schedule, semantics: str, tmp_path: Path
) -> None:
    times_ms = sorted(round(2000 * draw * draw) for draw in remy_simulator.uniforms(3, 0, 500, 1))
    path = tmp_path / "random.trace"
    path.write_text("".join(f"{time_ms}\n" for time_ms in times_ms))
    link = _trace_link(str(path), semantics)
    window = RuleTable([0], [([], (0.0, 1e6, 0.0))])
    row = predict(window, link, Workload(1, seconds=10.0), jitter_ms=0.0, seed=1)
    # Packets arrive after the handshake. With Cellsim's semantics, half of the RTT is before the
    # queue and half is on the return path.
    arrival_ms = 150.0 if semantics == "cellsim" else 100.0
    rows = schedule(link, [(arrival_ms, 1500)] * 4000)
    delivered = [departure for _, departure, _ in rows if departure <= 9_900]
    assert row.total_mbps * 10 / 0.012 == pytest.approx(len(delivered), rel=0.01)


@pytest.mark.parametrize(
    ("box", "released_ms"),
    [
        ({"periodic": {"period_ms": 10}}, [10, 10, 20, 40]),
        ({"batches": {"packets": 2, "longest_wait_ms": 10}}, [6, 6, 25, 46]),
        ({"batches": {"packets": 3, "longest_wait_ms": 100}}, [15, 15, 15, 136]),
    ],
)
@needs_c
def test_jitter_box_holds_packets_after_the_link(
    schedule: Schedule, box: dict[str, Any], released_ms: list[float]
) -> None:
    # At 12 Mbit/s, 1,500 bytes take 1 ms.
    link = Link(rtt_ms=100, links=[{"rate_mbps": 12, "jitter_box": box}])
    arrivals = [(3.0, 1500), (5.0, 1500), (14.0, 1500), (35.0, 1500)]
    assert [released for _, _, released in schedule(link, arrivals)] == released_ms


@needs_c
def test_random_jitter_box_does_not_reorder(schedule: Schedule) -> None:
    box = {"random": {"longest_hold_ms": 20, "probability": 0.5}}
    link = Link(rtt_ms=100, links=[{"rate_mbps": 12, "jitter_box": box}])
    rows = schedule(link, [(float(number), 1500) for number in range(200)])
    held_ms = [released - departure for _, departure, released in rows]
    assert all(0 <= each <= 20 for each in held_ms)
    assert 0 in held_ms
    assert max(held_ms) > 10
    assert [released for _, _, released in rows] == sorted(released for _, _, released in rows)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"rate": 3}, "rate is not a known key; did you mean rate_mbps?"),
        ({"buffer": "infinite"}, "buffer is infinite, but the emulated queue needs a limit"),
        ({"senders": ["cubic"]}, "senders is given, but the senders are sockets of this machine"),
        ({"queue": "codel"}, "queue is given, but cannot be emulated"),
        ({"links": [{"rate_mbps": 3, "policer": {"rate_mbps": 1, "burst_packets": 3}}]}, "policer"),
        ({"links": [{"rate_mbps": 3}, {"rate_mbps": 4}]}, "has 2 links, but only one can be"),
        ({"links": [{"rate_mbps": 3, "jitter_box": {"periodic": {}}}]}, "period_ms is missing"),
        ({"packet_bytes": 1000}, "packet_bytes is given, but must be 1500"),
        ({"measurement": {"delayed_ack_ms": 3}}, "only exponential jitter"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_network_that_cannot_be_emulated_is_refused(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        Link(**keys)
    assert problem in str(refused.value)


def test_link_keys_become_emulator_arguments() -> None:
    jitter = {"jitter": {"exponential_mean_ms": 2}}
    link = Link(rate_mbps=30, rtt_ms=20, buffer={"bdp": 2}, measurement=jitter)
    assert link.emulator_arguments(7) == ["30000000", "20000", "100", "0", "2000", "7"]
    assert (link.rate_mbps, link.rtt_ms, link.jitter_ms) == (30, 20, 2)
    assert Link().emulator_arguments(1) == ["15000000", "150000", "1000", "0", "0", "1"]


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Path]:
    def namespaces() -> str:
        command = ["ip", "netns", "list"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    yield build_emulator(tmp_path)
    assert f"remy-{os.getpid()}-" not in namespaces()


@needs_kernel
def test_real_flows_stay_within_the_link_rate(emulator: Path) -> None:
    run = measure_once(emulator, LINK, Workload(2, seconds=3.0), "reno", seed=1)
    assert len(run.shares_mbps) == 2
    assert 1 < run.total_mbps <= LINK.rate_mbps
    # The emulator's RTT is at least that of an empty queue and at most that of a full queue.
    assert LINK.rtt_ms < run.mean_rtt_ms < LINK.rtt_ms + 102 * 1.2


@needs_kernel
def test_competitor_is_measured_separately(emulator: Path) -> None:
    load = Workload(1, seconds=3.0, competitor="cubic")
    run = measure_once(emulator, LINK, load, "reno", seed=1)
    assert len(run.shares_mbps) == 2
    assert run.own_mbps == run.shares_mbps[0]


@needs_kernel
def test_https_download_is_complete(emulator: Path) -> None:
    load = Workload(1, download_bytes=500_000)
    run = measure_once(emulator, LINK, load, "reno", seed=1)
    assert run.seconds * run.total_mbps * 1e6 / 8 > 500_000
    assert 3 * LINK.rtt_ms / 1000 < run.seconds < 60


@contextmanager
def _running(table: RuleTable, folder: Path) -> Iterator[RunRecord]:
    files = ebpf_files(IntegerTable.from_rule_table(table), f"remy_t{os.getpid()}")
    assert write_ebpf(folder, files)
    with running_table(folder, Scope()) as record:
        yield record


@needs_kernel
def test_first_window_is_not_counted_as_application_limited(emulator: Path, tmp_path: Path) -> None:
    app_limited_acks: list[int] = []
    # On a busy machine the sender may really be slow to write. The first window has 29 ACKs.
    for attempt in range(5):
        with _running(six_scale_free_rules(), tmp_path / f"exported-{attempt}") as record:
            run = measure_once(emulator, LINK, Workload(1, seconds=2.0), record.name, seed=1)
            app_limited_acks.append(run_counters(record)["app_limited_acks"])
        assert run.total_mbps > LINK.rate_mbps / 2
        if app_limited_acks[-1] < 15:
            break
    assert min(app_limited_acks) < 15, app_limited_acks


@needs_kernel
def test_rule_that_slows_itself_down_still_sends_a_packet_per_rtt(
    emulator: Path, tmp_path: Path
) -> None:
    nodes: list[tuple[list[tuple[int, float]], tuple[float, float, float]]] = [
        ([(2, 0.5)], (1.0, 1.0, 1.0)),
        ([], (0.0, 8.0, 0.05)),
        # The measured interval quadruples each time, and so does the next pacing interval.
        ([], (0.0, 100.0, 4.0)),
    ]
    table = RuleTable([0, 2, 3], nodes, rules=rule_table_pb2.RULES_SCALE_FREE)
    with _running(table, tmp_path / "exported") as record:
        run = measure_once(emulator, LINK, Workload(1, seconds=4.0), record.name, seed=1)
    packets = run.total_mbps * 1e6 * run.seconds / 12_000
    assert packets > run.seconds * 1000 / LINK.rtt_ms / 2


@needs_kernel
def test_trace_is_emulated(emulator: Path, tmp_path: Path) -> None:
    (tmp_path / "two-a-ms").write_text("1\n1\n2\n2\n")
    link = _trace_link(str(tmp_path / "two-a-ms"), "ns2", rtt_ms=20)
    run = measure_once(emulator, link, Workload(1, seconds=3.0), "reno", seed=1)
    assert 1 < run.total_mbps <= 24.5


@needs_kernel
def test_lost_packets_are_retransmitted(emulator: Path) -> None:
    lossy = Link(**{**LINK.keys, "loss_probability": 0.05})
    run = measure_once(emulator, lossy, Workload(1, seconds=3.0), "reno", seed=1)
    assert run.retransmissions > 0


_MEASURING = """
import sys
from pathlib import Path
from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.measuring import Workload, measure_once
link = Link(rate_mbps=10, rtt_ms=40)
measure_once(Path(sys.argv[1]), link, Workload(1, seconds=60.0), "reno", seed=1)
"""


@needs_kernel
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_measurement_leaves_no_namespaces_after_the_next(
    emulator: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", _MEASURING, str(emulator)]
    with subprocess.Popen(command, start_new_session=True) as process:
        pattern = f"remy-{process.pid}-*"
        deadline = time.monotonic() + 60
        while len(list(Path("/run/netns").glob(pattern))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait() == (143 if number == signal.SIGTERM else -number)
    if number == signal.SIGKILL:
        measure_once(emulator, LINK, Workload(1, seconds=1.0), "reno", seed=1)
    assert not list(Path("/run/netns").glob(pattern))


@needs_kernel
def test_unknown_algorithm_is_an_error(emulator: Path) -> None:
    with pytest.raises(measuring.MeasureError, match="flows of no_such failed: no_such: "):
        measure_once(emulator, LINK, Workload(1, seconds=1.0), "no_such", seed=1)
