"""Measures Linux congestion control with real sockets over an emulated link.

Also simulates the measured workloads, to predict the results.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import remy_simulator
from remy_farm.evaluation.measures import measure_senders
from remy_farm.files import FileError
from remy_farm.remycc import RemyCC
from remy_laboratory.kernel.differential import c_compiler
from remy_laboratory.kernel.emulated import Link
from remy_laboratory.kernel.fixed_point import SOURCES
from remy_laboratory.kernel.running import RunError, ip
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable, columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMESPACE: Final = re.compile(r"remy-(\d+)-(?:senders|receivers)")
_PORT: Final = 5001
_HTTPS_PORT: Final = 5443
# Minimum, default and maximum, as in tcp(7).
_SOCKET_BUFFER_BYTES: Final = "4096 16777216 67108864"
_SENDER, _RECEIVER = "10.77.0.1", "10.77.0.2"
_BITS_PER_PACKET: Final = 12_000
#: A sender that runs the first table of an evaluation request.
_TABLE_SENDER: Final = {"table": "the table"}
_MS_PER_SECOND: Final = 1000.0
_US_PER_MS: Final = 1000.0
#: A run is disturbed if the emulator delayed more than one packet in a hundred by this time itself.
MAX_LATE_US: Final = 500.0
#: Attempts for each run before a disturbed run is kept and reported.
_ATTEMPTS: Final = 3
#: Typical RTT jitter of a virtual machine, ms, used for the prediction with jitter.
TYPICAL_JITTER_MS: Final = 0.12
# Number of seeds over which a prediction is averaged.
_PREDICTION_SEEDS: Final = 4
_TIMEOUT_SECONDS: Final = 30.0
# A download may take this many times as long as always-on flows last.
_DOWNLOAD_TIMEOUT_FACTOR: Final = 4
#: Names in the simulator of algorithms of Linux.
SIMULATED: Final = {"cubic": "cubic", "bbr": "bbr", "reno": "newreno"}


class MeasureError(FileError):
    """The link cannot be emulated; the text is one sentence."""


@dataclass(frozen=True)
class Workload:
    """A workload: always-on flows, or one HTTPS download if `download_bytes` is positive.

    The first flow lasts `seconds`, and the flows start `apart_seconds` apart. Without `offloads`,
    packets are sent one by one; without `delayed_acks`, each packet is acknowledged. A flow of the
    algorithm `competitor` starts last, unless it is None.
    """

    flows: int
    seconds: float = 30.0
    apart_seconds: float = 0.2
    offloads: bool = False
    delayed_acks: bool = False
    competitor: str | None = None
    download_bytes: int = 0

    @property
    def title(self) -> str:
        """A short name of the workload."""
        if self.download_bytes:
            return f"HTTPS, {self.download_bytes / 1e6:g} MB"
        return "alike" if self.competitor is None else f"beside {self.competitor}"


@dataclass(frozen=True)
class RunResult:
    """The result of one run.

    Rates count 1,500 bytes per packet. `own_mbps` is the rate of the measured algorithm's flows,
    without a competitor. The RTT is measured by the emulator.
    """

    total_mbps: float
    mean_rtt_ms: float
    shares_mbps: tuple[float, ...]
    retransmissions: int
    drops: int
    cpu_seconds_per_gigabyte: float
    late_99_us: float
    is_real_time: bool
    own_mbps: float = 0.0
    seconds: float = 0.0

    @property
    def is_disturbed(self) -> bool:
        """Whether the emulator fell behind too often for the run to be valid."""
        return self.late_99_us > MAX_LATE_US

    @property
    def fairness(self) -> float:
        """Jain's fairness index of the flows' rates; 1 if all are equal."""
        return jain(self.shares_mbps)


@dataclass(frozen=True)
class Row:
    """Medians over the runs of an algorithm, or a prediction, with one workload.

    `own_mbps` leaves out the competitor. `seconds` is the duration of the download or of the flows.
    """

    algorithm: str
    load: str
    flows: int
    total_mbps: float
    own_mbps: float
    mean_rtt_ms: float
    fairness: float
    seconds: float
    runs: int
    disturbed: int
    details: tuple[RunResult, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a JSON object."""
        return asdict(self)


def jain(shares: Sequence[float]) -> float:
    """Returns Jain's fairness index; 0 if all shares are 0."""
    squares = len(shares) * sum(share * share for share in shares)
    return sum(shares) ** 2 / squares if squares else 0.0


def build_emulator(folder: Path) -> Path:
    """Compiles kernel/link_emulator.c. Raises MeasureError or ReplayError."""
    program = folder / "link_emulator"
    command = [*c_compiler(), "-std=gnu11", "-O2", str(SOURCES / "link_emulator.c")]
    result = subprocess.run(
        [*command, "-o", str(program), "-lm"], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise MeasureError(f"the link emulator does not compile: {result.stderr.strip()}")
    return program


def _remove_namespaces() -> None:
    """Removes the namespaces of this process and of killed measurements.

    Another measurement may remove the latter at the same time.
    """
    for path in Path("/run/netns").glob("remy-*-*"):
        owner = _NAMESPACE.fullmatch(path.name)
        if owner and (owner[1] == str(os.getpid()) or not Path("/proc", owner[1]).exists()):
            with suppress(RunError):
                ip("netns", "delete", path.name)


@contextmanager
def _namespaces() -> Iterator[tuple[str, str]]:
    """Creates two network namespaces and removes them at the end, also after SIGTERM."""
    _remove_namespaces()
    senders, receivers = (f"remy-{os.getpid()}-{side}" for side in ("senders", "receivers"))
    previous_handler = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        for name in (senders, receivers):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        yield senders, receivers
    finally:
        _remove_namespaces()
        signal.signal(signal.SIGTERM, previous_handler)


def _read_line(stream: IO[str] | None, program: str) -> str:
    """Returns a program's next line of output. Raises MeasureError if it has exited."""
    assert stream is not None
    line = stream.readline()
    if not line:
        raise MeasureError(f"{program} exited before it was ready")
    return line


def _configure_namespaces(senders: str, receivers: str, load: Workload) -> None:
    """Sets addresses, routes, segmentation and socket buffers in both namespaces."""
    for name, address in ((senders, _SENDER), (receivers, _RECEIVER)):
        ip("-n", name, "address", "add", f"{address}/24", "dev", "remy0")
        ip("-n", name, "link", "set", "remy0", "mtu", "1500", "txqueuelen", "10000", "up")
        quick = [] if load.delayed_acks else ["quickack", "1"]
        subnet = ["10.77.0.0/24", "dev", "remy0", "src", address]
        ip("-n", name, "route", "replace", *subnet, *quick)
        if not load.offloads:
            ip("-n", name, "link", "set", "remy0", "gso_max_segs", "1")
        # Linux's default buffers would limit fast links with long RTTs.
        for setting in ("tcp_rmem", "tcp_wmem"):
            write = f"echo {_SOCKET_BUFFER_BYTES} >/proc/sys/net/ipv4/{setting}"
            ip("netns", "exec", name, "sh", "-c", write)


def _create_certificate(folder: Path) -> tuple[str, str]:
    """Creates a certificate for the senders' address, valid for a day; returns its PEM file and
    its key's."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _SENDER)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address(_SENDER))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(files[0]), str(files[1])


def _wait_for_output(process: subprocess.Popen[str], seconds: float, algorithm: str) -> str:
    """Waits for a flows.py process and returns its output. Raises MeasureError after a timeout."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(f"flows of {algorithm} did not end within {seconds:g} s") from error
    if process.returncode:
        last = (errors.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        raise MeasureError(f"flows of {algorithm} failed: {last}")
    return output


def measure_once(
    emulator: Path, link: Link, load: Workload, algorithm: str, *, seed: int
) -> RunResult:
    """Measures one run in new network namespaces. Raises MeasureError."""
    with _namespaces() as (senders, receivers), ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[str]:
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        def start_flows(namespace: str, *arguments: str) -> subprocess.Popen[str]:
            flows = [sys.executable, str(SOURCES / "flows.py")]
            return start("ip", "netns", "exec", namespace, *flows, *arguments)

        emulator_process = start(str(emulator), senders, receivers, *link.emulator_arguments(seed))
        _read_line(emulator_process.stdout, "the link emulator")
        _configure_namespaces(senders, receivers, load)
        if load.download_bytes:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="remy-farm-")))
            certificate, key = _create_certificate(folder)
            arguments = (str(_HTTPS_PORT), algorithm, str(load.download_bytes))
            server = start_flows(senders, "serve", *arguments, certificate, key)
            if not server.stdout or not server.stdout.readline():
                _wait_for_output(server, _TIMEOUT_SECONDS, algorithm)
            timeout = load.seconds * _DOWNLOAD_TIMEOUT_FACTOR
            arguments = (_SENDER, str(_HTTPS_PORT), certificate)
            client = start_flows(receivers, "download", *arguments, str(timeout))
            download = json.loads(_wait_for_output(client, timeout + _TIMEOUT_SECONDS, algorithm))
            sent = json.loads(_wait_for_output(server, _TIMEOUT_SECONDS, algorithm))
            sent["flows"][0]["seconds"] = download["seconds"]
        else:
            receiver = start_flows(receivers, "receive", str(_PORT))
            _read_line(receiver.stdout, "the receiver")
            algorithms = [algorithm] * load.flows
            if load.competitor is not None:
                algorithms.append(load.competitor)
            times = (str(load.seconds), str(load.apart_seconds))
            target = (_RECEIVER, str(_PORT))
            sender = start_flows(senders, "send", *target, ",".join(algorithms), *times)
            sent = json.loads(_wait_for_output(sender, load.seconds + _TIMEOUT_SECONDS, algorithm))
            receiver.communicate(timeout=_TIMEOUT_SECONDS)
        emulated, _ = emulator_process.communicate(timeout=_TIMEOUT_SECONDS)
    return _run_result(sent, json.loads(emulated), load.flows)


def _run_result(sent: dict[str, Any], emulated: dict[str, Any], own_flows: int) -> RunResult:
    """Combines what the senders and the emulator report, by the flows' port."""
    by_port = {flow["port"]: flow for flow in emulated["flows"]}
    pairs = [
        (flow, by_port[flow["port"]])
        for flow in sorted(sent["flows"], key=lambda flow: float(flow["began_seconds"]))
        if flow["port"] in by_port
    ]
    packets = sum(counts["packets"] for _, counts in pairs)
    seconds = max((flow["began_seconds"] + flow["seconds"] for flow, _ in pairs), default=1.0)
    rtts_ms = sum(counts["mean_rtt_ms"] * counts["packets"] for _, counts in pairs)
    gigabytes = sum(counts["bytes"] for _, counts in pairs) / 1e9
    shares_mbps = tuple(
        counts["packets"] * _BITS_PER_PACKET / flow["seconds"] / 1e6 for flow, counts in pairs
    )
    return RunResult(
        total_mbps=packets * _BITS_PER_PACKET / seconds / 1e6,
        mean_rtt_ms=rtts_ms / packets if packets else 0.0,
        shares_mbps=shares_mbps,
        retransmissions=sum(flow["retransmissions"] for flow, _ in pairs),
        drops=sum(counts["drops"] for _, counts in pairs),
        cpu_seconds_per_gigabyte=sent["cpu_seconds"] / gigabytes if gigabytes else 0.0,
        late_99_us=emulated["late_us"]["0.99"],
        is_real_time=emulated["real_time"],
        own_mbps=sum(shares_mbps[:own_flows]),
        seconds=seconds,
    )


def measure(
    emulator: Path,
    link: Link,
    load: Workload,
    algorithm: str,
    *,
    repeats: int,
    seed: int,
    on_message: Callable[[str], None],
) -> Row:
    """Measures `repeats` runs and returns their medians. Raises MeasureError.

    A disturbed run is repeated up to three times; then the least disturbed attempt is kept.
    """
    runs: list[RunResult] = []
    for repeat in range(repeats):
        attempts = [measure_once(emulator, link, load, algorithm, seed=seed + repeat)]
        while attempts[-1].is_disturbed and len(attempts) < _ATTEMPTS:
            late_us = attempts[-1].late_99_us
            label = f"{algorithm}, {load.flows} flows, {load.title}"
            on_message(f"{label}: disturbed ({late_us:.0f} us late), repeating the run")
            attempts.append(measure_once(emulator, link, load, algorithm, seed=seed + repeat))
        runs.append(min(attempts, key=lambda run: run.late_99_us))
    return Row(
        algorithm,
        load.title,
        load.flows,
        statistics.median(run.total_mbps for run in runs),
        statistics.median(run.own_mbps for run in runs),
        statistics.median(run.mean_rtt_ms for run in runs),
        statistics.median(run.fairness for run in runs),
        statistics.median(run.seconds for run in runs),
        len(runs),
        sum(run.is_disturbed for run in runs),
        tuple(runs),
    )


def predict(table: RuleTable, link: Link, load: Workload, *, jitter_ms: float, seed: int) -> Row:
    """Simulates always-on flows that start when the measured flows do, and averages over seeds.

    With a competitor, `jitter_ms` must be 0, as TCP in the simulator has no jitter.
    """
    senders: list[dict[str, Any]] = []
    for number in range(load.flows + (load.competitor is not None)):
        is_competitor = number == load.flows
        program = {"protocol": SIMULATED[str(load.competitor)]} if is_competitor else _TABLE_SENDER
        # A connection sends its first packet one RTT after its SYN.
        first_on_ms = number * load.apart_seconds * _MS_PER_SECOND + link.rtt_ms
        senders.append({**program, "first_on_ms": first_on_ms})
    network = link.with_senders(senders, jitter_ms=jitter_ms)
    runs = []
    for number in range(_PREDICTION_SEEDS):
        request = evaluation_pb2.EvaluationRequest(
            tables=[RemyCC(table).to_message()],
            candidates=[evaluation_pb2.Candidate()],
            specimens=[network.specimen],
            duration_ms=load.seconds * _MS_PER_SECOND,
            seed=remy_simulator.mix(seed, number),
            traces=network.traces,
        )
        outcome = remy_simulator.evaluate_columns(request)
        (result,) = columns.specimen_outcomes(request, outcome)
        runs.append(measure_senders(result))
    totals_mbps, own_mbps, rtts_ms, fairness = [], [], [], []
    for results in runs:
        packets = [result.packets_received for result in results]
        totals_mbps.append(sum(packets) * _BITS_PER_PACKET / load.seconds / 1e6)
        delays = [(result.delay_ms or 0.0) * result.packets_received for result in results]
        rtts_ms.append(sum(delays) / max(sum(packets), 1))
        shares = [result.throughput_mbps or 0.0 for result in results]
        fairness.append(jain(shares))
        own_mbps.append(sum(shares[: load.flows]))
    name = "simulator" if not jitter_ms else f"simulator, {jitter_ms:g} ms"
    return Row(
        name,
        load.title,
        load.flows,
        statistics.fmean(totals_mbps),
        statistics.fmean(own_mbps),
        statistics.fmean(rtts_ms),
        statistics.fmean(fairness),
        load.seconds,
        len(runs),
        0,
    )


def save_plot(path: Path, link: Link, rows: Sequence[Row]) -> None:
    """Writes the plot of `draw_figure` as PNG."""
    draw_figure(link, rows).savefig(path, format="png", dpi=120, metadata={"Software": None})


def draw_figure(link: Link, rows: Sequence[Row]) -> Figure:
    """Plots throughput over RTT for the rows with equal flows, with a line per algorithm."""
    # Imported here because matplotlib takes half a second to import.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    equal_flows = [row for row in rows if row.load == Workload(1).title]
    for algorithm in dict.fromkeys(row.algorithm for row in equal_flows):
        algorithm_rows = [row for row in equal_flows if row.algorithm == algorithm]
        is_predicted = not algorithm_rows[0].details
        axes.plot(
            [row.mean_rtt_ms for row in algorithm_rows],
            [row.total_mbps for row in algorithm_rows],
            "x:" if is_predicted else "o-",
            label=algorithm,
        )
        for row in algorithm_rows:
            axes.annotate(str(row.flows), (row.mean_rtt_ms, row.total_mbps), fontsize=7)
    axes.axhline(link.rate_mbps, color="grey", linewidth=0.5)
    axes.axvline(link.rtt_ms, color="grey", linewidth=0.5)
    axes.set(xscale="log", xlabel="mean RTT, ms", ylabel="all flows, Mbit/s", ylim=(0, None))
    axes.legend(fontsize=8)
    return figure
