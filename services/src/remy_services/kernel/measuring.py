"""Real sockets over an emulated link: what an algorithm of this machine's Linux comes to, beside
others and beside what the simulator predicts."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.measures import link_rate_packets_per_ms, measure_senders
from remy_services.files import FileError
from remy_services.kernel.differential import c_compiler
from remy_services.kernel.fixed_point import SOURCES
from remy_services.remycc import RemyCC
from remy_simulator import RuleTable, columns

_PORT: Final = 5001
_SENDER, _RECEIVER = "10.77.0.1", "10.77.0.2"
_BITS_PER_PACKET: Final = 12_000
_MS_PER_SECOND: Final = 1000.0
#: A run is disturbed if one packet in a hundred was later than this by the emulator's own doing.
MOST_LATE_US: Final = 500.0
#: Attempts for each repeat before a disturbed one is kept, and told.
_ATTEMPTS: Final = 3
#: Jitter that a virtual machine of today has, ms; what the prediction with jitter is made with.
USUAL_JITTER_MS: Final = 0.12
_PREDICTIONS: Final = 4
_DEADLINE_SECONDS: Final = 30.0


class MeasureError(FileError):
    """Something that keeps a link from being emulated; one sentence."""


@dataclass(frozen=True)
class Link:
    """An emulated link: its rate, the RTT of an empty queue, how many packets wait at most, and
    what disturbs it. `loss` is a probability, `jitter_ms` a mean."""

    rate_mbps: float
    rtt_ms: float
    queue_packets: int = 1000
    loss: float = 0.0
    jitter_ms: float = 0.0


@dataclass(frozen=True)
class Workload:
    """Always-on flows: how many, how long the first one lasts, when each next one starts, and
    whether packets leave one by one and each has an ACK, or as Linux does it by itself."""

    flows: int
    seconds: float = 30.0
    apart_seconds: float = 0.2
    offloads: bool = False
    delayed_acks: bool = False


@dataclass(frozen=True)
class Measured:
    """One run. Rates are packets times 1,500 bytes; the RTT is by the emulator's clock."""

    total_mbps: float
    mean_rtt_ms: float
    shares_mbps: tuple[float, ...]
    retransmissions: int
    drops: int
    cpu_seconds_per_gigabyte: float
    late_99_us: float
    is_real_time: bool

    @property
    def is_disturbed(self) -> bool:
        """Whether the emulator was late too often for the figures to be the algorithm's."""
        return self.late_99_us > MOST_LATE_US

    @property
    def fairness(self) -> float:
        """Jain's index of the shares: 1 if all are equal."""
        return jain(self.shares_mbps)


@dataclass(frozen=True)
class Row:
    """An algorithm, or a prediction, with one number of flows: medians over its runs."""

    algorithm: str
    flows: int
    total_mbps: float
    mean_rtt_ms: float
    fairness: float
    runs: int
    disturbed: int
    details: tuple[Measured, ...] = ()

    def tree(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness; 0 where nobody has anything."""
    squares = len(shares) * sum(share * share for share in shares)
    return sum(shares) ** 2 / squares if squares else 0.0


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasureError(f"'ip {' '.join(words)}' failed: {done.stderr.strip()}")


def build_emulator(folder: Path) -> Path:
    """Compiles kernel/link_emulator.c. Raises MeasureError or ReplayError."""
    program = folder / "link_emulator"
    words = [*c_compiler(), "-std=gnu11", "-O2", str(SOURCES / "link_emulator.c")]
    done = subprocess.run(
        [*words, "-o", str(program), "-lm"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MeasureError(f"the link emulator does not compile: {done.stderr.strip()}")
    return program


@contextmanager
def _namespaces() -> Iterator[tuple[str, str]]:
    """Two of our own, gone at the end."""
    names = tuple(f"remy-{os.getpid()}-{side}" for side in ("senders", "receivers"))
    with ExitStack() as stack:
        for name in names:
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
            _ip("-n", name, "link", "set", "lo", "up")
        yield names[0], names[1]


def _line(stream: IO[str] | None, program: str) -> str:
    assert stream is not None
    line = stream.readline()
    if not line:
        raise MeasureError(f"{program} ended before it was ready")
    return line


def _set_up(senders: str, receivers: str, load: Workload) -> None:
    for name, address in ((senders, _SENDER), (receivers, _RECEIVER)):
        _ip("-n", name, "address", "add", f"{address}/24", "dev", "remy0")
        _ip("-n", name, "link", "set", "remy0", "mtu", "1500", "txqueuelen", "10000", "up")
        quick = [] if load.delayed_acks else ["quickack", "1"]
        subnet = ["10.77.0.0/24", "dev", "remy0", "src", address]
        _ip("-n", name, "route", "replace", *subnet, *quick)
        if not load.offloads:
            _ip("-n", name, "link", "set", "remy0", "gso_max_segs", "1")


def measure_once(
    emulator: Path, link: Link, load: Workload, algorithm: str, *, seed: int
) -> Measured:
    """One run in namespaces of its own. Raises MeasureError."""
    flows = str(SOURCES / "flows.py")
    with _namespaces() as (senders, receivers), ExitStack() as stack:
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.DEVNULL,
            "text": True,
        }

        def start(*words: str) -> subprocess.Popen[str]:
            process = stack.enter_context(subprocess.Popen(words, **pipes))
            stack.callback(process.kill)
            return process

        numbers = (
            link.rate_mbps * 1e6,
            link.rtt_ms * 1000,
            link.queue_packets,
            link.loss,
            link.jitter_ms * 1000,
            seed,
        )
        emulating = start(str(emulator), senders, receivers, *(f"{each:.12g}" for each in numbers))
        _line(emulating.stdout, "the link emulator")
        _set_up(senders, receivers, load)
        inside = ("ip", "netns", "exec")
        receiving = start(*inside, receivers, sys.executable, flows, "receive", str(_PORT))
        _line(receiving.stdout, "the receiver")
        words = (_RECEIVER, str(_PORT), algorithm, str(load.flows))
        times = (str(load.seconds), str(load.apart_seconds))
        sending = start(*inside, senders, sys.executable, flows, "send", *words, *times)
        try:
            sent, _ = sending.communicate(timeout=load.seconds + _DEADLINE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise MeasureError(f"flows of {algorithm} did not end in time") from error
        if sending.returncode:
            raise MeasureError(f"sockets with the algorithm {algorithm!r} cannot be had here")
        counted, _ = emulating.communicate(timeout=_DEADLINE_SECONDS)
        receiving.communicate(timeout=_DEADLINE_SECONDS)
    return _measured(json.loads(sent), json.loads(counted))


def _measured(sent: dict[str, Any], counted: dict[str, Any]) -> Measured:
    by_port = {flow["port"]: flow for flow in counted["flows"]}
    pairs = [
        (flow, by_port[flow["port"]])
        for flow in sorted(sent["flows"], key=lambda flow: float(flow["began_seconds"]))
        if flow["port"] in by_port
    ]
    packets = sum(seen["packets"] for _, seen in pairs)
    seconds = max((flow["began_seconds"] + flow["seconds"] for flow, _ in pairs), default=1.0)
    rtts_ms = sum(seen["mean_rtt_ms"] * seen["packets"] for _, seen in pairs)
    gigabytes = sum(seen["bytes"] for _, seen in pairs) / 1e9
    return Measured(
        total_mbps=packets * _BITS_PER_PACKET / seconds / 1e6,
        mean_rtt_ms=rtts_ms / packets if packets else 0.0,
        shares_mbps=tuple(
            seen["packets"] * _BITS_PER_PACKET / flow["seconds"] / 1e6 for flow, seen in pairs
        ),
        retransmissions=sum(flow["retransmissions"] for flow, _ in pairs),
        drops=sum(seen["drops"] for _, seen in pairs),
        cpu_seconds_per_gigabyte=sent["cpu_seconds"] / gigabytes if gigabytes else 0.0,
        late_99_us=counted["late_us"]["0.99"],
        is_real_time=counted["real_time"],
    )


def measure(
    emulator: Path,
    link: Link,
    load: Workload,
    algorithm: str,
    *,
    repeats: int,
    seed: int,
    say: Callable[[str], None],
) -> Row:
    """Medians over `repeats` runs; one that was disturbed is repeated, and kept if all attempts
    were. Raises MeasureError."""
    kept: list[Measured] = []
    rejected = 0
    for repeat in range(repeats):
        attempts = [
            measure_once(emulator, link, load, algorithm, seed=seed + repeat),
        ]
        while attempts[-1].is_disturbed and len(attempts) < _ATTEMPTS:
            rejected += 1
            late_us = attempts[-1].late_99_us
            say(f"{algorithm}, {load.flows} flows: disturbed ({late_us:.0f} us late), again")
            attempts.append(measure_once(emulator, link, load, algorithm, seed=seed + repeat))
        kept.append(min(attempts, key=lambda run: run.late_99_us))
    return Row(
        algorithm,
        load.flows,
        statistics.median(run.total_mbps for run in kept),
        statistics.median(run.mean_rtt_ms for run in kept),
        statistics.median(run.fairness for run in kept),
        len(kept),
        sum(run.is_disturbed for run in kept),
        tuple(kept),
    )


def predict(table: RuleTable, link: Link, load: Workload, *, jitter_ms: float, seed: int) -> Row:
    """What the simulator says: senders that start at random within the same time, and stay on."""
    rows = []
    for number in range(_PREDICTIONS):
        specimen = evaluation_pb2.Specimen(
            link_rate_packets_per_ms=link_rate_packets_per_ms(link.rate_mbps),
            rtt_ms=link.rtt_ms,
            buffer_packets=link.queue_packets,
            loss_probability=link.loss,
        )
        if jitter_ms:
            specimen.measurement.exponential_jitter_mean_ms = jitter_ms
        group = specimen.senders.add(count=load.flows, table=0)
        group.traffic.exponential_time.mean_ms = 1e9
        apart_ms = max(load.apart_seconds * (load.flows - 1) / 2, 0.001) * _MS_PER_SECOND
        group.traffic.mean_off_ms = apart_ms
        request = evaluation_pb2.EvaluationRequest(
            tables=[RemyCC(table).to_message()],
            candidates=[evaluation_pb2.Candidate()],
            specimens=[specimen],
            duration_ms=load.seconds * _MS_PER_SECOND,
            seed=remy_simulator.mix(seed, number),
        )
        outcome = remy_simulator.evaluate_columns(request)
        rows.append(measure_senders(*columns.specimen_outcomes(request, outcome)))
    totals, rtts_ms, fairness = [], [], []
    for senders in rows:
        packets = [sender.packets_received for sender in senders]
        totals.append(sum(packets) * _BITS_PER_PACKET / load.seconds / 1e6)
        delays = [(sender.delay_ms or 0.0) * sender.packets_received for sender in senders]
        rtts_ms.append(sum(delays) / max(sum(packets), 1))
        fairness.append(jain([sender.throughput_mbps or 0.0 for sender in senders]))
    name = "simulator" if not jitter_ms else f"simulator, {jitter_ms:g} ms"
    return Row(
        name,
        load.flows,
        statistics.fmean(totals),
        statistics.fmean(rtts_ms),
        statistics.fmean(fairness),
        len(rows),
        0,
    )


def draw(path: Path, link: Link, rows: Sequence[Row]) -> None:
    """Rates over RTTs of all rows, a line for each algorithm, as PNG."""
    # It takes half a second to load, which other commands do not wait for.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for algorithm in dict.fromkeys(row.algorithm for row in rows):
        mine = [row for row in rows if row.algorithm == algorithm]
        is_predicted = not mine[0].details
        axes.plot(
            [row.mean_rtt_ms for row in mine],
            [row.total_mbps for row in mine],
            "x:" if is_predicted else "o-",
            label=algorithm,
        )
        for row in mine:
            axes.annotate(str(row.flows), (row.mean_rtt_ms, row.total_mbps), fontsize=7)
    axes.axhline(link.rate_mbps, color="grey", linewidth=0.5)
    axes.axvline(link.rtt_ms, color="grey", linewidth=0.5)
    axes.set(xscale="log", xlabel="mean RTT, ms", ylabel="all flows, Mbit/s", ylim=(0, None))
    axes.legend(fontsize=8)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})
