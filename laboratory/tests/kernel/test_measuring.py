"""Real sockets over an emulated link, and what the simulator says of them."""

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
    Measured,
    Workload,
    build_emulator,
    draw,
    jain,
    measure,
    measure_once,
    predict,
)
from remy_laboratory.kernel.running import RunRecord, Scope, counters, running_table
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

LINK = Link(rate_mbps=10, rtt_ms=40, buffer={"packets": 100})
RUN = Measured(9.0, 50.0, (9.0,), 0, 0, 1.0, 100.0, True)


def test_fairness_is_jains_index() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 0.0]) == 0.5
    assert jain([]) == 0.0


def test_a_disturbed_run_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    late = iter([900.0, 100.0, 200.0, 5000.0, 4000.0, 6000.0])

    def run(*_: object, **__: object) -> Measured:
        return replace(RUN, late_99_us=next(late))

    monkeypatch.setattr(measuring, "measure_once", run)
    said: list[str] = []
    row = measure(Path("emulator"), LINK, Workload(1), "reno", repeats=3, seed=1, say=said.append)
    assert [each.late_99_us for each in row.details] == [100.0, 200.0, 4000.0]
    assert row.disturbed == 1
    assert len(said) == 3
    assert all("disturbed" in line for line in said)


def test_the_prediction_depends_on_jitter_for_tables_that_divide_finely() -> None:
    table = read_remycc(SCALE_FREE).table
    load = Workload(2, seconds=10.0)
    exact = predict(table, Link(), load, jitter_ms=0.0, seed=1)
    noisy = predict(table, Link(), load, jitter_ms=0.12, seed=1)
    assert exact.total_mbps == pytest.approx(noisy.total_mbps, rel=0.1)
    assert exact != noisy
    assert predict(table, Link(), load, jitter_ms=0.12, seed=1) == noisy
    assert exact.total_mbps < 15
    assert exact.mean_rtt_ms > 150


def test_rows_are_drawn(tmp_path: Path) -> None:
    row = measuring.Row("reno", "alike", 1, 9.0, 9.0, 50.0, 1.0, 30.0, 1, 0, (RUN,))
    draw(tmp_path / "measured.png", LINK, [row, replace(row, flows=2), replace(row, details=())])
    assert (tmp_path / "measured.png").read_bytes().startswith(b"\x89PNG")


def test_a_prediction_beside_cubic_says_who_has_what() -> None:
    table = read_remycc(SCALE_FREE).table
    load = Workload(2, seconds=20.0, competitor="cubic")
    row = predict(table, Link(), load, jitter_ms=0.0, seed=1)
    assert row.load == "beside cubic"
    assert 0 < row.own_mbps < row.total_mbps


# Packets that come at a time in us, with so many bytes: when they are taken from the queue, when
# they have left the link, and when a jitter box has let all of them go.
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
    words = [*c_compiler(), "-std=gnu11", "-O1", f'-DLINK_EMULATOR="{SOURCES}/link_emulator.c"']
    program = folder / "schedule"
    subprocess.run([*words, str(folder / "schedule.c"), "-o", str(program), "-lm"], check=True)

    def run(link: Link, packets: list[tuple[float, int]]) -> list[list[float]]:
        said = "".join(f"{at_ms * 1000:.0f} {length}\n" for at_ms, length in packets)
        done = subprocess.run(
            [program, "senders", "receivers", *link.words(1)],
            input=said,
            capture_output=True,
            text=True,
            check=True,
        )
        return [list(map(float, line.split())) for line in done.stdout.splitlines()]

    return run


@pytest.fixture
def trace(tmp_path: Path) -> str:
    (tmp_path / "link.trace").write_text("5\n5\n10\n20\n")
    return str(tmp_path / "link.trace")


def _recorded(trace: str, semantics: str, *, ends: bool = False, rtt_ms: float = 100) -> Link:
    said = {"path": trace, "semantics": semantics, "ends": ends}
    return Link(rtt_ms=rtt_ms, links=[{"trace": said}])


Schedule = Callable[[Link, list[tuple[float, int]]], list[list[float]]]
COMING = [(0.0, 1500), (0.0, 1500), (5.0, 1500), (6.0, 1500), (30.0, 1500)]


@pytest.mark.parametrize(
    ("semantics", "left_ms"),
    [
        ("ns2", [5, 5, 10, 20, 30]),
        # What arrives at an opportunity, as the last one does, waits for the next.
        ("mahimahi", [5, 5, 10, 20, 40]),
        ("cellsim", [5, 5, 10, 20, 30]),
    ],
)
@needs_c
def test_a_trace_delivers_as_its_semantics_say(
    schedule: Schedule, trace: str, semantics: str, left_ms: list[float]
) -> None:
    link = _recorded(trace, semantics)
    assert [left for _, left, _ in schedule(link, COMING)] == left_ms


@needs_c
def test_a_trace_that_ends_delivers_nothing_more(schedule: Schedule, trace: str) -> None:
    link = _recorded(trace, "ns2", ends=True)
    left_ms = [left for _, left, _ in schedule(link, COMING)]
    assert left_ms[:4] == [5, 5, 10, 20]
    assert left_ms[4] > 1e9


@pytest.mark.parametrize(
    ("semantics", "left_ms"), [("ns2", [5, 5, 10]), ("mahimahi", [5, 5, 5]), ("cellsim", [5, 5, 5])]
)
@needs_c
def test_small_packets_share_an_opportunity_where_bytes_count(
    schedule: Schedule, trace: str, semantics: str, left_ms: list[float]
) -> None:
    link = _recorded(trace, semantics)
    assert [left for _, left, _ in schedule(link, [(0.0, 700)] * 3)] == left_ms


@pytest.mark.parametrize("semantics", ["ns2", "mahimahi", "cellsim"])
@needs_c
def test_recorded_links_deliver_what_the_simulator_does(
    schedule: Schedule, semantics: str, tmp_path: Path
) -> None:
    times_ms = sorted(round(2000 * draw * draw) for draw in remy_simulator.uniforms(3, 0, 500, 1))
    path = tmp_path / "random.trace"
    path.write_text("".join(f"{time_ms}\n" for time_ms in times_ms))
    link = _recorded(str(path), semantics)
    window = RuleTable([0], [([], (0.0, 1e6, 0.0))])
    row = predict(window, link, Workload(1, seconds=10.0), jitter_ms=0.0, seed=1)
    # Behind the handshake. In Cellsim's semantics half of the RTT lies before the queue; the other
    # half is the way back.
    comes_ms = 150.0 if semantics == "cellsim" else 100.0
    busy = [left for _, left, _ in schedule(link, [(comes_ms, 1500)] * 4000) if left <= 9_900]
    assert row.total_mbps * 10 / 0.012 == pytest.approx(len(busy), rel=0.01)


@pytest.mark.parametrize(
    ("box", "gone_ms"),
    [
        ({"periodic": {"period_ms": 10}}, [10, 10, 20, 40]),
        ({"batches": {"packets": 2, "longest_wait_ms": 10}}, [6, 6, 25, 46]),
        ({"batches": {"packets": 3, "longest_wait_ms": 100}}, [15, 15, 15, 136]),
    ],
)
@needs_c
def test_a_jitter_box_holds_what_has_left_the_link(
    schedule: Schedule, box: dict[str, Any], gone_ms: list[float]
) -> None:
    # 1,500 bytes take 1 ms.
    link = Link(rtt_ms=100, links=[{"rate_mbps": 12, "jitter_box": box}])
    coming = [(3.0, 1500), (5.0, 1500), (14.0, 1500), (35.0, 1500)]
    assert [gone for _, _, gone in schedule(link, coming)] == gone_ms


@needs_c
def test_a_random_jitter_box_keeps_the_order(schedule: Schedule) -> None:
    box = {"random": {"longest_hold_ms": 20, "probability": 0.5}}
    link = Link(rtt_ms=100, links=[{"rate_mbps": 12, "jitter_box": box}])
    rows = schedule(link, [(float(number), 1500) for number in range(200)])
    held_ms = [gone - left for _, left, gone in rows]
    assert all(0 <= each <= 20 for each in held_ms)
    assert 0 in held_ms
    assert max(held_ms) > 10
    assert [gone for _, _, gone in rows] == sorted(gone for _, _, gone in rows)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"rate": 3}, "rate is not a known key; did you mean rate_mbps?"),
        ({"buffer": "infinite"}, "buffer is infinite, but a queue is limited"),
        ({"senders": ["cubic"]}, "senders is given, but senders are sockets of this machine"),
        ({"queue": "codel"}, "queue is given, but is not emulated"),
        ({"links": [{"rate_mbps": 3, "policer": {"rate_mbps": 1, "burst_packets": 3}}]}, "policer"),
        ({"links": [{"rate_mbps": 3}, {"rate_mbps": 4}]}, "has 2 links, but one is emulated"),
        ({"links": [{"rate_mbps": 3, "jitter_box": {"periodic": {}}}]}, "period_ms is missing"),
        ({"packet_bytes": 1000}, "packet_bytes is given, but must be 1500"),
        ({"measurement": {"delayed_ack_ms": 3}}, "only an exponential jitter"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_what_cannot_be_emulated_is_told(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        Link(**keys)
    assert problem in str(refused.value)


def test_a_link_is_said_by_a_network_s_keys() -> None:
    jitter = {"jitter": {"exponential_mean_ms": 2}}
    link = Link(rate_mbps=30, rtt_ms=20, buffer={"bdp": 2}, measurement=jitter)
    assert link.words(7) == ["30000000", "20000", "100", "0", "2000", "7"]
    assert (link.rate_mbps, link.rtt_ms, link.jitter_ms) == (30, 20, 2)
    assert Link().words(1) == ["15000000", "150000", "1000", "0", "0", "1"]


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Path]:
    def namespaces() -> str:
        listed = ["ip", "netns", "list"]
        return subprocess.run(listed, capture_output=True, text=True, check=True).stdout

    yield build_emulator(tmp_path)
    assert f"remy-{os.getpid()}-" not in namespaces()


@needs_kernel
def test_real_flows_keep_to_the_link(emulator: Path) -> None:
    run = measure_once(emulator, LINK, Workload(2, seconds=3.0), "reno", seed=1)
    assert len(run.shares_mbps) == 2
    assert 1 < run.total_mbps <= LINK.rate_mbps
    # The emulator's own time: of the empty link at least, and of a full queue at most.
    assert LINK.rtt_ms < run.mean_rtt_ms < LINK.rtt_ms + 102 * 1.2


@needs_kernel
def test_a_competitor_has_its_share(emulator: Path) -> None:
    load = Workload(1, seconds=3.0, competitor="cubic")
    run = measure_once(emulator, LINK, load, "reno", seed=1)
    assert len(run.shares_mbps) == 2
    assert run.own_mbps == run.shares_mbps[0]


@needs_kernel
def test_a_download_by_https_comes_whole(emulator: Path) -> None:
    load = Workload(1, download_bytes=500_000)
    run = measure_once(emulator, LINK, load, "reno", seed=1)
    assert run.seconds * run.total_mbps * 1e6 / 8 > 500_000
    assert 3 * LINK.rtt_ms / 1000 < run.seconds < 60


@contextmanager
def _loaded(table: RuleTable, folder: Path) -> Iterator[RunRecord]:
    assert write_ebpf(folder, ebpf_files(IntegerTable.of(table), f"remy_t{os.getpid()}"))
    with running_table(folder, Scope()) as record:
        yield record


@needs_kernel
def test_the_first_window_is_not_taken_for_what_a_program_was_slow_to_write(
    emulator: Path, tmp_path: Path
) -> None:
    left_out = []
    # On a busy machine the program is slow indeed, now and then; all of a first window is 29 ACKs.
    for attempt in range(5):
        with _loaded(six_scale_free_rules(), tmp_path / f"exported-{attempt}") as record:
            run = measure_once(emulator, LINK, Workload(1, seconds=2.0), record.name, seed=1)
            left_out.append(counters(record)["app_limited_acks"])
        assert run.total_mbps > LINK.rate_mbps / 2
        if left_out[-1] < 15:
            break
    assert min(left_out) < 15, left_out


@needs_kernel
def test_a_pace_that_slows_itself_down_keeps_a_packet_in_an_rtt(
    emulator: Path, tmp_path: Path
) -> None:
    nodes: list[tuple[list[tuple[int, float]], tuple[float, float, float]]] = [
        ([(2, 0.5)], (1.0, 1.0, 1.0)),
        ([], (0.0, 8.0, 0.05)),
        # What is measured next is four times as long, and so on.
        ([], (0.0, 100.0, 4.0)),
    ]
    table = RuleTable([0, 2, 3], nodes, rules=rule_table_pb2.RULES_SCALE_FREE)
    with _loaded(table, tmp_path / "exported") as record:
        run = measure_once(emulator, LINK, Workload(1, seconds=4.0), record.name, seed=1)
    packets = run.total_mbps * 1e6 * run.seconds / 12_000
    assert packets > run.seconds * 1000 / LINK.rtt_ms / 2


@needs_kernel
def test_a_trace_is_a_link(emulator: Path, tmp_path: Path) -> None:
    (tmp_path / "two-a-ms").write_text("1\n1\n2\n2\n")
    link = _recorded(str(tmp_path / "two-a-ms"), "ns2", rtt_ms=20)
    run = measure_once(emulator, link, Workload(1, seconds=3.0), "reno", seed=1)
    assert 1 < run.total_mbps <= 24.5


@needs_kernel
def test_losses_are_sent_again(emulator: Path) -> None:
    lossy = Link(**{**LINK.tree, "loss_probability": 0.05})
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
def test_who_is_ended_leaves_no_namespaces_to_the_next(
    emulator: Path, number: signal.Signals
) -> None:
    words = [sys.executable, "-c", _MEASURING, str(emulator)]
    with subprocess.Popen(words, start_new_session=True) as process:
        mine = f"remy-{process.pid}-*"
        deadline = time.monotonic() + 60
        while len(list(Path("/run/netns").glob(mine))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait() == (143 if number == signal.SIGTERM else -number)
    if number == signal.SIGKILL:
        measure_once(emulator, LINK, Workload(1, seconds=1.0), "reno", seed=1)
    assert not list(Path("/run/netns").glob(mine))


@needs_kernel
def test_an_algorithm_that_is_not_there_is_told(emulator: Path) -> None:
    with pytest.raises(measuring.MeasureError, match="flows of no_such failed: no_such: "):
        measure_once(emulator, LINK, Workload(1, seconds=1.0), "no_such", seed=1)
