"""Real sockets over an emulated link: what an algorithm of this machine's Linux comes to, beside
others and beside what the simulator predicts."""

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
# Least, first and largest, as tcp(7) has them.
_SOCKET_BUFFER_BYTES: Final = "4096 16777216 67108864"
_SENDER, _RECEIVER = "10.77.0.1", "10.77.0.2"
_BITS_PER_PACKET: Final = 12_000
#: Senders that run the first table of a request.
_THE_TABLE: Final = {"table": "the table"}
_MS_PER_SECOND: Final = 1000.0
_US_PER_MS: Final = 1000.0
_LARGEST_NUMBER: Final = 1e6
#: A run is disturbed if one packet in a hundred was later than this by the emulator's own doing.
MOST_LATE_US: Final = 500.0
#: Attempts for each repeat before a disturbed one is kept, and told.
_ATTEMPTS: Final = 3
#: Jitter that a virtual machine of today has, ms; what the prediction with jitter is made with.
USUAL_JITTER_MS: Final = 0.12
_PREDICTIONS: Final = 4
_DEADLINE_SECONDS: Final = 30.0
# A download may take so many times as long as always-on flows last.
_DOWNLOAD_PATIENCE: Final = 4
#: What algorithms of Linux are called in the simulator.
SIMULATED: Final = {"cubic": "cubic", "bbr": "bbr", "reno": "newreno"}


class MeasureError(FileError):
    """Something that keeps a link from being emulated; one sentence."""


@dataclass(frozen=True)
class Workload:
    """Always-on flows: how many, how long the first one lasts, when each next one starts, and
    whether packets leave one by one and each has an ACK, or as Linux does it by itself. After them
    starts one of another algorithm, the `competitor`. With `download_bytes` there is one HTTPS
    download in their place."""

    flows: int
    seconds: float = 30.0
    apart_seconds: float = 0.2
    offloads: bool = False
    delayed_acks: bool = False
    competitor: str | None = None
    download_bytes: int = 0

    @property
    def title(self) -> str:
        """What is measured, in a word or two."""
        if self.download_bytes:
            return f"HTTPS, {self.download_bytes / 1e6:g} MB"
        return "alike" if self.competitor is None else f"beside {self.competitor}"


@dataclass(frozen=True)
class Measured:
    """One run. Rates are packets times 1,500 bytes, `own_mbps` that of the flows of the algorithm
    that is measured; the RTT is by the emulator's clock."""

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
        """Whether the emulator was late too often for the figures to be the algorithm's."""
        return self.late_99_us > MOST_LATE_US

    @property
    def fairness(self) -> float:
        """Jain's index of the shares: 1 if all are equal."""
        return jain(self.shares_mbps)


@dataclass(frozen=True)
class Row:
    """An algorithm, or a prediction, with one load: medians over its runs. `own_mbps` is without
    what a competitor has, `seconds` how long a download took, or the flows lasted."""

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
    details: tuple[Measured, ...] = ()

    def tree(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness; 0 where nobody has anything."""
    squares = len(shares) * sum(share * share for share in shares)
    return sum(shares) ** 2 / squares if squares else 0.0


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


def _remove_namespaces() -> None:
    """Those of this process and of killed ones, which another measurement may remove first."""
    for found in Path("/run/netns").glob("remy-*-*"):
        owner = _NAMESPACE.fullmatch(found.name)
        if owner and (owner[1] == str(os.getpid()) or not Path("/proc", owner[1]).exists()):
            with suppress(RunError):
                ip("netns", "delete", found.name)


@contextmanager
def _namespaces() -> Iterator[tuple[str, str]]:
    """Two of our own, gone at the end, which SIGTERM is as well."""
    _remove_namespaces()
    senders, receivers = (f"remy-{os.getpid()}-{side}" for side in ("senders", "receivers"))
    ended = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        for name in (senders, receivers):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        yield senders, receivers
    finally:
        _remove_namespaces()
        signal.signal(signal.SIGTERM, ended)


def _line(stream: IO[str] | None, program: str) -> str:
    assert stream is not None
    line = stream.readline()
    if not line:
        raise MeasureError(f"{program} ended before it was ready")
    return line


def _set_up(senders: str, receivers: str, load: Workload) -> None:
    for name, address in ((senders, _SENDER), (receivers, _RECEIVER)):
        ip("-n", name, "address", "add", f"{address}/24", "dev", "remy0")
        ip("-n", name, "link", "set", "remy0", "mtu", "1500", "txqueuelen", "10000", "up")
        quick = [] if load.delayed_acks else ["quickack", "1"]
        subnet = ["10.77.0.0/24", "dev", "remy0", "src", address]
        ip("-n", name, "route", "replace", *subnet, *quick)
        if not load.offloads:
            ip("-n", name, "link", "set", "remy0", "gso_max_segs", "1")
        # Linux's own would hold up long, quick links: 64 kB, doubled each RTT, and at most 6 MB.
        for setting in ("tcp_rmem", "tcp_wmem"):
            write = f"echo {_SOCKET_BUFFER_BYTES} >/proc/sys/net/ipv4/{setting}"
            ip("netns", "exec", name, "sh", "-c", write)


def _certificate(folder: Path) -> tuple[str, str]:
    """A certificate for the senders' address, good for a day, and its key: paths of PEM files."""
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


def _ended(process: subprocess.Popen[str], seconds: float, algorithm: str) -> str:
    """What a program of flows.py said, which may take so long. Raises MeasureError."""
    try:
        said, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(f"flows of {algorithm} did not end in time") from error
    if process.returncode:
        last = (complaint.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        raise MeasureError(f"flows of {algorithm} failed: {last}")
    return said


def measure_once(
    emulator: Path, link: Link, load: Workload, algorithm: str, *, seed: int
) -> Measured:
    """One run in namespaces of its own. Raises MeasureError."""
    with _namespaces() as (senders, receivers), ExitStack() as stack:

        def start(*words: str) -> subprocess.Popen[str]:
            pipe = subprocess.PIPE
            process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        def inside(namespace: str, *words: str) -> subprocess.Popen[str]:
            flows = [sys.executable, str(SOURCES / "flows.py")]
            return start("ip", "netns", "exec", namespace, *flows, *words)

        emulating = start(str(emulator), senders, receivers, *link.words(seed))
        _line(emulating.stdout, "the link emulator")
        _set_up(senders, receivers, load)
        if load.download_bytes:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="remy-farm-")))
            certificate, key = _certificate(folder)
            words = (str(_HTTPS_PORT), algorithm, str(load.download_bytes))
            serving = inside(senders, "serve", *words, certificate, key)
            if not serving.stdout or not serving.stdout.readline():
                _ended(serving, _DEADLINE_SECONDS, algorithm)
            patience = load.seconds * _DOWNLOAD_PATIENCE
            words = (_SENDER, str(_HTTPS_PORT), certificate)
            loading = inside(receivers, "download", *words, str(patience))
            loaded = json.loads(_ended(loading, patience + _DEADLINE_SECONDS, algorithm))
            sent = json.loads(_ended(serving, _DEADLINE_SECONDS, algorithm))
            sent["flows"][0]["seconds"] = loaded["seconds"]
        else:
            receiving = inside(receivers, "receive", str(_PORT))
            _line(receiving.stdout, "the receiver")
            each = [algorithm] * load.flows
            if load.competitor is not None:
                each.append(load.competitor)
            times = (str(load.seconds), str(load.apart_seconds))
            sending = inside(senders, "send", _RECEIVER, str(_PORT), ",".join(each), *times)
            sent = json.loads(_ended(sending, load.seconds + _DEADLINE_SECONDS, algorithm))
            receiving.communicate(timeout=_DEADLINE_SECONDS)
        counted, _ = emulating.communicate(timeout=_DEADLINE_SECONDS)
    return _measured(sent, json.loads(counted), load.flows)


def _measured(sent: dict[str, Any], counted: dict[str, Any], own_flows: int) -> Measured:
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
    shares_mbps = tuple(
        seen["packets"] * _BITS_PER_PACKET / flow["seconds"] / 1e6 for flow, seen in pairs
    )
    return Measured(
        total_mbps=packets * _BITS_PER_PACKET / seconds / 1e6,
        mean_rtt_ms=rtts_ms / packets if packets else 0.0,
        shares_mbps=shares_mbps,
        retransmissions=sum(flow["retransmissions"] for flow, _ in pairs),
        drops=sum(seen["drops"] for _, seen in pairs),
        cpu_seconds_per_gigabyte=sent["cpu_seconds"] / gigabytes if gigabytes else 0.0,
        late_99_us=counted["late_us"]["0.99"],
        is_real_time=counted["real_time"],
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
    say: Callable[[str], None],
) -> Row:
    """Medians over `repeats` runs; one that was disturbed is repeated, and kept if all attempts
    were. Raises MeasureError."""
    kept: list[Measured] = []
    for repeat in range(repeats):
        attempts = [measure_once(emulator, link, load, algorithm, seed=seed + repeat)]
        while attempts[-1].is_disturbed and len(attempts) < _ATTEMPTS:
            late_us = attempts[-1].late_99_us
            what = f"{algorithm}, {load.flows} flows, {load.title}"
            say(f"{what}: disturbed ({late_us:.0f} us late), again")
            attempts.append(measure_once(emulator, link, load, algorithm, seed=seed + repeat))
        kept.append(min(attempts, key=lambda run: run.late_99_us))
    return Row(
        algorithm,
        load.title,
        load.flows,
        statistics.median(run.total_mbps for run in kept),
        statistics.median(run.own_mbps for run in kept),
        statistics.median(run.mean_rtt_ms for run in kept),
        statistics.median(run.fairness for run in kept),
        statistics.median(run.seconds for run in kept),
        len(kept),
        sum(run.is_disturbed for run in kept),
        tuple(kept),
    )


def predict(table: RuleTable, link: Link, load: Workload, *, jitter_ms: float, seed: int) -> Row:
    """What the simulator says of always-on flows that start when the measured ones do; a mean over
    seeds. A competitor's clocks are exact, and `jitter_ms` is then 0, as on TCP there is none."""
    senders: list[dict[str, Any]] = []
    for number in range(load.flows + (load.competitor is not None)):
        is_competitor = number == load.flows
        runs_it = {"protocol": SIMULATED[str(load.competitor)]} if is_competitor else _THE_TABLE
        # A connection has its first packet on the way one RTT after it was asked for.
        first_on_ms = number * load.apart_seconds * _MS_PER_SECOND + link.rtt_ms
        senders.append({**runs_it, "first_on_ms": first_on_ms})
    network = link.with_senders(senders, jitter_ms=jitter_ms)
    runs = []
    for number in range(_PREDICTIONS):
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
    totals, owns, rtts_ms, fairness = [], [], [], []
    for senders_of_run in runs:
        packets = [sender.packets_received for sender in senders_of_run]
        totals.append(sum(packets) * _BITS_PER_PACKET / load.seconds / 1e6)
        delays = [(sender.delay_ms or 0.0) * sender.packets_received for sender in senders_of_run]
        rtts_ms.append(sum(delays) / max(sum(packets), 1))
        shares = [sender.throughput_mbps or 0.0 for sender in senders_of_run]
        fairness.append(jain(shares))
        owns.append(sum(shares[: load.flows]))
    name = "simulator" if not jitter_ms else f"simulator, {jitter_ms:g} ms"
    return Row(
        name,
        load.title,
        load.flows,
        statistics.fmean(totals),
        statistics.fmean(owns),
        statistics.fmean(rtts_ms),
        statistics.fmean(fairness),
        load.seconds,
        len(runs),
        0,
    )


def draw(path: Path, link: Link, rows: Sequence[Row]) -> None:
    """Writes rates over RTTs of all rows, a line for each algorithm, as PNG."""
    drawn(link, rows).savefig(path, format="png", dpi=120, metadata={"Software": None})


def drawn(link: Link, rows: Sequence[Row]) -> Figure:
    """Draws rates over RTTs of all rows, a line for each algorithm."""
    # It takes half a second to load, which other commands do not wait for.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    alike = [row for row in rows if row.load == Workload(1).title]
    for algorithm in dict.fromkeys(row.algorithm for row in alike):
        mine = [row for row in alike if row.algorithm == algorithm]
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
    return figure
