"""`remy-farm simulate` and `protocols`: simulates one network, and lists protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click

from remy_cli.common import (
    FILE,
    NOT_NEGATIVE,
    POSITIVE,
    FiniteRange,
    PlainTable,
    examples,
    json_option,
    option,
    print_json,
    print_pairs,
    print_table,
    seed_option,
    settings_option,
    time_unit_option,
)
from remy_cli.measures import PERCENT_HEADS, rtt_cells
from remy_cli.networks import network_from_options
from remy_cli.senders import QUEUE, SENDER, TRANSPORT
from remy_farm.analysis import (
    FORMATS,
    MAX_PACKET_BYTES,
    capture_of_simulation,
    count,
    number,
    percentage,
)
from remy_farm.evaluation import (
    MAX_SENDERS,
    REMYCC,
    SenderKind,
    SenderSpec,
    Simulation,
    Topology,
    check_default_transport,
    check_sender,
    simulate_topology,
    topology_of,
)
from remy_farm.files import write_file
from remy_farm.remycc import read_remycc
from remy_farm.specification import Tree
from remy_simulator import registry
from remy_simulator.registry import Registry

_MS_PER_SECOND = 1000.0

#: Maps a flag of earlier versions to the setting that replaces it.
_REPLACED_FLAGS: Final = {
    "--trace": "links=[{trace: {path: FILE, semantics: ns2}}]",
    "--trace-semantics": "links=[{trace: {path: FILE, semantics: WORD}}]",
    "--trace-ends": "links=[{trace: {path: FILE, ends: true}}]",
    "--packet-bytes": "packet_bytes=N",
    "--ack-bytes": "ack_bytes=N",
    "--jitter-ms": "measurement.jitter.exponential_mean_ms=X",
    "--jitter-percentile-99-ms": "measurement.jitter.log_normal.percentile_99_ms=X",
    "--timestamp-resolution-ms": "measurement.timestamp_resolution_ms=X",
    "--bunch-packets": "measurement.bunch_packets=N",
    "--delayed-ack-ms": "measurement.delayed_ack_ms=X",
    "--rtt-offset-ms": "measurement.rtt_offset_maximum_ms=X",
    "--reordering-probability": "measurement.reordering.probability=P",
    "--reordering-delay-ms": "measurement.reordering.delay_ms=X",
    "--measurement": "measurement=realistic",
}


class _Simulate(click.Command):
    """A command whose error for a removed flag names the setting that replaces the flag."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            replacement = _REPLACED_FLAGS.get(error.option_name)
            if replacement is None:
                raise
            raise click.UsageError(
                f"{error.option_name} is replaced by --set {replacement}", ctx
            ) from error


@click.command(
    "simulate",
    cls=_Simulate,
    epilog=examples(
        "remy-farm simulate --sender cubic=2 --rate-mbps 15 --rtt-ms 50 --seconds 60",
        "remy-farm simulate --network network.yaml --seconds 60 --plot run.png",
    ),
)
@option(
    "--sender WHAT[=N]",
    "N senders of a protocol, e.g. cubic=3 or bbr,variant=v3=2, or of a RemyCC, e.g. "
    "remycc:FILE=1. See `remy-farm protocols` for the protocols.",
    SENDER,
    multiple=True,
)
@option(
    "--remycc FILE",
    "Run this RemyCC on the --senders senders; several RemyCCs are assigned to them in rotation.",
    FILE,
    name="remyccs",
    multiple=True,
)
@option("--senders N", "Number of senders that run --remycc.", click.IntRange(1, MAX_SENDERS))
@option(
    "--network FILE",
    "YAML description of the network (docs/reference/networks.md); other options override or "
    "extend it.",
    FILE,
    name="network_path",
)
@settings_option(
    "Set a key of the network, e.g. buffer.bdp=1, ack_bytes=40 or measurement=realistic."
)
@option("--rate-mbps X", "Link rate, Mbit/s; short for --set rate_mbps=X.", POSITIVE)
@option("--rtt-ms Y", "RTT without queueing and transmission time, ms.", POSITIVE)
@option(
    "--buffer-packets K",
    "Buffer size in packets, not counting the packet in transmission.",
    click.IntRange(0, 1_000_000),
    show_default="infinite",
)
@option(
    "--loss-probability P",
    "Probability that the link loses a packet.",
    FiniteRange(min=0, max=0.999),
    show_default="0",
)
@option(
    "--queue QUEUE", "Queue discipline, e.g. codel,target_ms=5.", QUEUE, show_default="drop-tail"
)
@option(
    "--transport TRANSPORT",
    "Transport of RemyCCs, e.g. ns2 or tcp,minimum_rto_ms=1000; if TCP, its settings apply to "
    "protocols too.",
    TRANSPORT,
    show_default="datagram",
)
@option(
    "--on-ms A",
    "Mean duration of an on period, exponentially distributed, ms.",
    POSITIVE,
    show_default="always on",
)
@option(
    "--on-bytes A",
    "Mean bytes per on period, exponentially distributed; replaces --on-ms.",
    POSITIVE,
)
@option("--off-ms B", "Mean off time, exponentially distributed, ms.", POSITIVE)
@option(
    "--starts-apart-ms D",
    "Start the senders D ms apart, the first at time 0, instead of after an off time.",
    NOT_NEGATIVE,
)
@option("--seconds S", "Simulated time, s.", POSITIVE, required=True)
@seed_option("Seed of all random draws.")
@option(
    "--record FILE",
    "Write windows, rates, RTTs, queue and drops over time to a .csv or .parquet file.",
    FILE,
)
@option("--record-every-ms D", "Time between two rows, ms.", POSITIVE, default=10.0)
@option("--plot FILE.png", "Plot queue and windows over time, and throughput against delay.", FILE)
@option(
    "--pcapng FILE",
    "Write the packets that a sender sends and the ACKs that it receives as a pcapng file, which "
    "Wireshark reads.",
    FILE,
)
@option(
    "--qlog FILE",
    "Write the packets, ACKs, losses and windows of a sender as a qlog file, which qvis reads.",
    FILE,
)
@option(
    "--capture-sender N",
    "Index of the sender that --pcapng and --qlog show.",
    click.IntRange(0, MAX_SENDERS - 1),
    default=0,
)
@time_unit_option
@json_option
def simulate_command(
    sender: tuple[SenderSpec, ...],
    remyccs: tuple[str, ...],
    senders: int | None,
    network_path: str | None,
    settings: tuple[str, ...],
    starts_apart_ms: float | None,
    seconds: float,
    seed: int,
    record: str | None,
    record_every_ms: float,
    plot: str | None,
    pcapng: str | None,
    qlog: str | None,
    capture_sender: int,
    time_unit_ms: float,
    as_json: bool,
    **short: Any,
) -> None:
    """Simulate RemyCCs and protocols on one network.

    The senders share one link; --network can describe several links.

    Throughput is in Mbit/s. The datagram transport counts every received packet; the other
    transports count packets that are delivered in order. "Equal share" throughput weighs each
    instant of a sender's time on with 1 / (senders that are on), so that an equal share of the link
    always counts as the link rate.
    """
    _check_files(record, plot)
    run = _Run(
        seconds,
        seed,
        time_unit_ms,
        record,
        record_every_ms,
        plot,
        pcapng,
        qlog,
        capture_sender,
        as_json,
    )
    specs = [*_rotate_remyccs(remyccs, senders), *sender]
    if short["on_ms"] is not None and short["on_bytes"] is not None:
        raise click.UsageError("--on-ms and --on-bytes exclude each other")
    tree, folder, source = network_from_options(network_path, settings, short, name="the network")
    if starts_apart_ms is not None and not specs:
        raise click.UsageError("--starts-apart-ms needs senders from --sender or --remycc")
    if specs:
        tree = _add_senders(tree, specs, starts_apart_ms)
    elif network_path is None and isinstance(tree, dict) and "senders" not in tree:
        raise click.UsageError(
            "there are no senders: add --sender WHAT=N, or --remycc FILE --senders N"
        )
    try:
        check_default_transport(specs, short["transport"])
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    network = topology_of(tree, folder, source, plain=network_path is None)
    _simulate(network, run, shows_kinds=bool(sender) or network_path is not None)


def _sender_keys(spec: SenderSpec) -> dict[str, Any]:
    """Returns a sender's network keys, with its RemyCC file as an absolute path.

    File names in a network file are relative to that file's directory; those of options are not.
    """
    keys = {**spec.network_keys(), "name": spec.name}
    if spec.remycc is not None and Path(spec.remycc).is_file():
        keys["table"] = str(Path(spec.remycc).absolute())
    return keys


def _add_senders(tree: Tree, specs: Sequence[SenderSpec], starts_apart_ms: float | None) -> Tree:
    """Appends these senders to those of the network."""
    if not isinstance(tree, dict):
        return tree
    single_senders = [_sender_keys(spec) for spec in specs for _ in range(spec.count)]
    groups: list[Tree]
    if starts_apart_ms is None:
        groups = [{**keys, "count": len([*equal])} for keys, equal in groupby(single_senders)]
    else:
        # Senders with different start times need separate groups.
        groups = [
            {**keys, "first_on_ms": starts_apart_ms * index}
            for index, keys in enumerate(single_senders)
        ]
    existing = tree.get("senders", [])
    return {**tree, "senders": [*existing, *groups] if isinstance(existing, list) else existing}


@dataclass(frozen=True)
class _Run:
    """Options of one simulation run, apart from the network."""

    seconds: float
    seed: int
    time_unit_ms: float
    record: str | None
    record_every_ms: float
    plot: str | None
    pcapng: str | None
    qlog: str | None
    capture_sender: int
    as_json: bool


def _simulate(network: Topology, run: _Run, *, shows_kinds: bool) -> None:
    files = dict.fromkeys(each.remycc for each in network.sender_specs if each.remycc is not None)
    tables = {path: read_remycc(path, run.time_unit_ms).table for path in files}
    records = run.record is not None or run.plot is not None
    captures = run.pcapng is not None or run.qlog is not None
    if captures:
        _check_capture(network, run)
    simulation = simulate_topology(
        network,
        tables,
        seconds=run.seconds,
        seed=run.seed,
        record_every_ms=run.record_every_ms if records else None,
        capture_sender=run.capture_sender if captures else None,
    )
    if records:
        _write_recording(simulation, network.links, run)
    if captures:
        _write_capture(simulation, run)
    if run.as_json:
        print_json(simulation.tree(shows_kinds=shows_kinds))
    else:
        _print_simulation(simulation)


def _rotate_remyccs(remyccs: Sequence[str], senders: int | None) -> list[SenderSpec]:
    if not remyccs:
        if senders is not None:
            raise click.UsageError("--senders needs --remycc")
        return []
    if senders is None:
        raise click.UsageError("--remycc needs --senders, the number of senders that run it")
    specs = [SenderSpec(f"{REMYCC}{path}", 1, path, None, None) for path in remyccs]
    return [specs[sender % len(specs)] for sender in range(senders)]


def _check_files(record: str | None, plot: str | None) -> None:
    if record is not None and Path(record).suffix.lower() not in FORMATS:
        raise click.UsageError(f"{record} must be a name that ends in {', '.join(FORMATS)}")
    if plot is not None and Path(plot).suffix.lower() != ".png":
        raise click.UsageError(f"{plot} must be a name that ends in .png")


def _write_recording(simulation: Simulation, links: Sequence[str], run: _Run) -> None:
    from remy_farm.analysis import (
        plot_recording,
        recording_of_simulation,
        sender_points,
    )

    rows = recording_of_simulation(simulation, links or [""])
    if run.record is not None:
        to_file = FORMATS[Path(run.record).suffix.lower()]
        write_file(run.record, to_file(rows.columns(), rows.rows()))
    if run.plot is not None:
        points = sender_points(simulation)
        write_file(run.plot, plot_recording(rows, points))


def _check_capture(network: Topology, run: _Run) -> None:
    try:
        check_sender(network, run.capture_sender)
    except ValueError as problem:
        raise click.UsageError(f"--capture-sender {run.capture_sender}: {problem}") from problem
    bytes_a_packet = network.specimen.bottleneck.packet_bytes
    if run.pcapng is not None and bytes_a_packet > MAX_PACKET_BYTES:
        raise click.UsageError(
            f"--pcapng writes IPv4 packets of at most {MAX_PACKET_BYTES} bytes, but the network's "
            f"packet_bytes is {bytes_a_packet:g}"
        )


def _write_capture(simulation: Simulation, run: _Run) -> None:
    capture = capture_of_simulation(simulation)
    if run.pcapng is not None:
        write_file(run.pcapng, capture.to_pcapng())
    if run.qlog is not None:
        write_file(run.qlog, capture.to_qlog())


def _print_simulation(simulation: Simulation) -> None:
    names, kinds = simulation.kind_names, simulation.kinds
    results, means, links = simulation.senders, simulation.means, simulation.links
    has_transports = any(kind.transport is not None for kind in kinds)
    table = PlainTable(
        "sender",
        *(["kind"] if has_transports else []),
        *("Mbit/s", "equal share Mbit/s", "delay ms", *PERCENT_HEADS),
        *("received", "lost", "loss", "retransmitted", "on s"),
        left=2 if has_transports else 0,
    )
    for index, sender in enumerate(results):
        table.add_row(
            str(index),
            *([names[index]] if has_transports else []),
            number(sender.throughput_mbps),
            number(sender.throughput_equal_share_mbps),
            number(sender.delay_ms),
            *rtt_cells(sender),
            str(sender.packets_received),
            str(sender.packets_lost),
            percentage(sender.loss),
            str(sender.packets_retransmitted),
            number(sender.on_ms / _MS_PER_SECOND),
        )
    print_table(table)
    click.echo()
    if has_transports:
        print_table(_kinds_table(kinds))
        click.echo()
    if links:
        table = PlainTable(*links[0], left=1)
        for link in links:
            table.add_row(*map(str, link.values()))
        print_table(table)
        click.echo()
    packets = sum(sender.packets_received for sender in results)
    pairs = [
        ("throughput / link rate", number(means.throughput_over_link_rate)),
        ("delay / RTT", number(means.delay_over_rtt)),
        ("loss", percentage(means.loss)),
        ("normalized score per sender", number(means.normalized_score_per_sender)),
        ("packets received", count(packets)),
        ("CPU time", f"{simulation.cpu_seconds:.3g} s"),
    ]
    if means.senders_left_out:
        pairs.append(("senders without packets", f"{means.senders_left_out}, excluded"))
    print_pairs(pairs)


def _kinds_table(kinds: Sequence[SenderKind]) -> PlainTable:
    table = PlainTable(
        *("kind", "senders", "Mbit/s", "of", "delay ms", *PERCENT_HEADS, "loss", "retransmitted"),
        *("timeouts", "marks", "flows", "completion ms", "median", "95 %", "99 %"),
        left=1,
    )
    for kind in kinds:
        transport = kind.transport
        assert transport is not None
        table.add_row(
            kind.name,
            str(len(kind.senders)),
            number(kind.throughput_mbps),
            kind.throughput_of.replace("packets_", "").replace("_", " "),
            number(kind.delay_ms),
            *rtt_cells(kind),
            percentage(kind.loss),
            str(transport.retransmissions),
            str(transport.timeouts),
            str(transport.marks),
            str(transport.flows_completed),
            number(transport.completion_ms_mean),
            number(transport.completion_ms_median),
            number(kind.completion_p95_ms),
            number(transport.completion_ms_percentile_99),
        )
    return table


@click.command("protocols")
@json_option
def protocols_command(as_json: bool) -> None:
    """List the protocols, transports and queues for simulate --sender, --transport and --queue.

    Each is listed with its variants, the default first, and their parameters with default and
    range. --json adds titles and sources.
    """
    if as_json:
        print_json(
            {
                f"{kind}s": [
                    asdict(entry) | {"traits": sorted(entry.traits)}
                    for entry in registry.entries(kind).values()
                ]
                for kind in Registry
            }
        )
        return
    for kind in Registry:
        table = PlainTable(
            kind.value, "variant", "parameter", "default", "minimum", "maximum", left=3
        )
        for entry in registry.entries(kind).values():
            for index, variant in enumerate(entry.variants):
                names = (entry.name if index == 0 else "", variant.name)
                if not variant.parameters:
                    table.add_row(*names, "", "", "", "")
                for each in variant.parameters:
                    numbers = (each.default, each.minimum, each.maximum)
                    table.add_row(*names, each.name, *(f"{value:.15g}" for value in numbers))
                    names = ("", "")
        print_table(table)
        click.echo()
    click.echo("For titles and sources, see docs/reference/protocols.md or --json.")
