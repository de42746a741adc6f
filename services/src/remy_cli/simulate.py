"""`remy-farm simulate` and `protocols`."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from click.core import ParameterSource

from remy_cli.common import (
    FILE,
    NOT_NEGATIVE,
    POSITIVE,
    FiniteRange,
    PlainTable,
    json_option,
    option,
    print_json,
    print_pairs,
    print_table,
    seed_option,
    time_unit_option,
)
from remy_cli.senders import BODY, QUEUE, SENDER
from remy_farm.analysis import FORMATS, count, number
from remy_farm.evaluation import (
    MOST_SENDERS,
    REMYCC,
    SEMANTICS,
    USUAL_PACKET_BYTES,
    SenderKind,
    Simulation,
    Topology,
    Words,
    bottleneck,
    check_usual_body,
    follow_trace,
    link_rate_packets_per_ms,
    read_topology,
    simulate_topology,
)
from remy_farm.files import write_file
from remy_farm.remycc import read_remycc
from remy_farm.specification import fill, typical_measurement, words_for
from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry

_MS_PER_SECOND = 1000.0


@click.command("simulate")
@option(
    "--sender WHAT[=N]",
    "N senders of a protocol, as cubic=3 or bbr,variant=v3=2, or of a RemyCC, as remycc:FILE=1; "
    "`remy-farm protocols` says what there is.",
    SENDER,
    multiple=True,
)
@option(
    "--remycc FILE",
    "Short for --sender remycc:FILE; given several times, --senders run them in turn.",
    FILE,
    name="remyccs",
    multiple=True,
)
@option("--senders N", "How many run what --remycc names.", click.IntRange(1, MOST_SENDERS))
@option(
    "--transport TRANSPORT",
    "What carries RemyCCs, as ns2 or tcp,minimum_rto_ms=1000, and what TCP is like.",
    BODY,
    show_default="datagram",
)
@option("--queue QUEUE", "Queue discipline, as codel,target_ms=5.", QUEUE, show_default="drop-tail")
@option(
    "--network FILE",
    "Links, routes and senders in YAML (docs/networks.md), in place of what describes one link.",
    FILE,
    name="network_path",
)
@option("--rate-mbps X", "Link rate, Mbit/s.", POSITIVE)
@option(
    "--trace FILE",
    "In place of a rate: when the link can deliver, a whole number of ms on every line.",
    FILE,
    name="trace_path",
)
@option(
    "--trace-semantics WORD",
    "What a line is worth: a packet of any size, or bytes (docs/networks.md).",
    click.Choice(SEMANTICS),
    default="ns2",
)
@option("--trace-ends", "Nothing is delivered behind its end; else it begins again.", is_flag=True)
@option("--rtt-ms Y", "RTT without queueing and service, ms.", POSITIVE)
@option("--on-ms A", "Mean of the exponentially distributed on time, ms.", POSITIVE)
@option("--on-bytes A", "Mean of exponentially distributed bytes to send, in its place.", POSITIVE)
@option("--off-ms B", "Mean of the exponentially distributed off time, ms.", POSITIVE)
@option(
    "--starts-apart-ms D",
    "Senders are first on D ms apart, the first at once, and not after an off time.",
    NOT_NEGATIVE,
)
@option(
    "--packet-bytes N",
    "Of a packet on the wire.",
    click.IntRange(1, 1_000_000),
    default=USUAL_PACKET_BYTES,
)
@option(
    "--ack-bytes N",
    "Of an ACK, on a link and queue back like the one there.",
    click.IntRange(0, 1_000_000),
    show_default="ACKs take no time",
)
@option(
    "--buffer-packets K",
    "Packets that the queue holds beyond the one in service.",
    click.IntRange(0, 1_000_000),
    show_default="infinite",
)
@option(
    "--loss-probability P",
    "Probability that the link loses a packet.",
    FiniteRange(min=0, max=0.999),
    default=0.0,
)
@option(
    "--jitter-ms J",
    "Mean of the exponentially distributed time by which senders see ACKs late, ms.",
    NOT_NEGATIVE,
)
@option(
    "--jitter-percentile-99-ms Q",
    "99th percentile of that time, ms: it is log-normally distributed, and J is its median.",
    POSITIVE,
)
@option(
    "--timestamp-resolution-ms R",
    "Senders see times rounded down to multiples of this, ms.",
    NOT_NEGATIVE,
)
@option("--bunch-packets N", "Packets that leave a sender together.", click.IntRange(1, 1000))
@option(
    "--delayed-ack-ms D",
    "An ACK for every second packet, or for one that has waited so long, ms; at 0 for each.",
    NOT_NEGATIVE,
)
@option(
    "--rtt-offset-ms O",
    "RTTs that a sender measures, but its first, are too long by an offset of its own, up to this.",
    NOT_NEGATIVE,
)
@option(
    "--reordering-probability P",
    "A packet comes late, and others overtake it.",
    FiniteRange(min=0, max=1),
)
@option("--reordering-delay-ms L", "How much later it comes, ms.", NOT_NEGATIVE)
@option(
    "--measurement WORD",
    "As in a specification, with bunches of 2; the options above go before it.",
    click.Choice(list(words_for(spec_pb2.MeasurementModel.DESCRIPTOR))),
    name="preset",
)
@option("--seconds S", "Time to simulate, s.", POSITIVE)
@seed_option("Names the random draws.")
@option(
    "--record FILE", "Write window, rate, RTT, queue and drops over time, .csv or .parquet.", FILE
)
@option("--record-every-ms D", "Time between two rows.", POSITIVE, default=10.0)
@option("--plot FILE.png", "Draw queue and windows over time, and throughput against delay.", FILE)
@time_unit_option
@json_option
def simulate_command(
    sender: tuple[Words, ...],
    remyccs: tuple[str, ...],
    senders: int | None,
    transport: evaluation_pb2.Choice | None,
    queue: evaluation_pb2.Choice | None,
    network_path: str | None,
    rate_mbps: float | None,
    trace_path: str | None,
    trace_semantics: str,
    trace_ends: bool,
    rtt_ms: float | None,
    on_ms: float | None,
    on_bytes: float | None,
    off_ms: float | None,
    starts_apart_ms: float | None,
    packet_bytes: int,
    ack_bytes: int | None,
    buffer_packets: int | None,
    loss_probability: float,
    jitter_ms: float | None,
    jitter_percentile_99_ms: float | None,
    timestamp_resolution_ms: float | None,
    bunch_packets: int | None,
    delayed_ack_ms: float | None,
    rtt_offset_ms: float | None,
    reordering_probability: float | None,
    reordering_delay_ms: float | None,
    preset: str | None,
    seconds: float | None,
    seed: int,
    record: str | None,
    record_every_ms: float,
    plot: str | None,
    time_unit_ms: float,
    as_json: bool,
) -> None:
    """Simulate RemyCCs and protocols on one network: senders share a link, or several (--network).

    Senders switch on and off at exponentially distributed times. Throughput is in Mbit/s of packets
    received, on transports other than datagram of packets in order; "equal share" throughput counts
    each instant divided by the senders then on.
    """
    _check_files(record, plot)
    needed = [] if network_path is not None else ["rtt_ms", "off_ms"]
    if network_path is None and trace_path is None:
        needed.append("rate_mbps")
    _require(click.get_current_context(), [*needed, "seconds"])
    run = _Run(seconds or 0.0, seed, time_unit_ms, record, record_every_ms, plot, as_json)
    if network_path is not None:
        _refuse_beside_network(click.get_current_context())
        network = read_topology(network_path)
        _simulate(network, None, run, shows_kinds=True)
        return
    if trace_path is not None and not (rate_mbps is None and ack_bytes is None):
        raise click.UsageError(
            "--trace FILE says when the link delivers; leave out --rate-mbps and --ack-bytes, or "
            "describe the way back in --network FILE"
        )
    if (on_ms is None) == (on_bytes is None):
        raise click.UsageError("say how long senders are on: --on-ms A, or --on-bytes A")
    model = spec_pb2.MeasurementModel()
    fill(model, preset or {})
    measurement = typical_measurement(complete(model))
    for name, value in (
        ("exponential_jitter_mean_ms", jitter_ms),
        ("timestamp_resolution_ms", timestamp_resolution_ms),
        ("bunch_packets", bunch_packets),
        ("delayed_ack_ms", delayed_ack_ms),
        ("rtt_offset_maximum_ms", rtt_offset_ms),
        ("reordering_probability", reordering_probability),
        ("reordering_delay_ms", reordering_delay_ms),
    ):
        if value is not None:
            setattr(measurement, name, value)
    if (reordering_probability is None) != (reordering_delay_ms is None):
        raise click.UsageError("--reordering-probability and --reordering-delay-ms go together")
    if jitter_percentile_99_ms is not None:
        if not 0 < (jitter_ms or 0) <= jitter_percentile_99_ms:
            raise click.UsageError(
                "--jitter-percentile-99-ms needs a --jitter-ms up to it, above 0"
            )
        measurement.log_normal_jitter.median_ms = jitter_ms or 0
        measurement.log_normal_jitter.percentile_99_ms = jitter_percentile_99_ms
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=link_rate_packets_per_ms(rate_mbps or 0.0, packet_bytes),
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss_probability=loss_probability,
        measurement=measurement,
        bottleneck=bottleneck(queue, packet_bytes, ack_bytes or 0),
    )
    traffic = evaluation_pb2.Traffic(mean_off_ms=off_ms or 0.0)
    if on_ms is not None:
        traffic.exponential_time.mean_ms = on_ms
    else:
        traffic.exponential_bytes.mean_bytes = on_bytes or 0.0
    words = [*_in_turn(remyccs, senders), *sender]
    if not words:
        raise click.UsageError("nobody sends: say --sender WHAT=N, or --remycc FILE --senders N")
    try:
        check_usual_body(words, transport)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    in_order = [each for words_ in words for each in [words_] * words_.count]
    for each in in_order:
        group = specimen.senders.add(count=1, traffic=traffic)
        group.MergeFrom(each.group(transport))
        if starts_apart_ms is not None:
            group.first_on_ms = starts_apart_ms * (len(specimen.senders) - 1)
    traces = []
    if trace_path is not None:
        try:
            traces = [follow_trace(specimen, trace_path, trace_semantics, ends=trace_ends)]
        except ValueError as problem:
            raise click.UsageError(str(problem)) from problem
    one_link = Topology(specimen, words, [], traces)
    _simulate(one_link, transport, run, shows_kinds=bool(sender))


#: Parameters of the command that describe a network of one link.
_ONE_LINK = (
    *(
        "sender",
        "remyccs",
        "senders",
        "transport",
        "queue",
        "rate_mbps",
        "rtt_ms",
        "on_ms",
        "on_bytes",
    ),
    *(
        "trace_path",
        "trace_semantics",
        "trace_ends",
        "off_ms",
        "starts_apart_ms",
        "packet_bytes",
        "ack_bytes",
        "buffer_packets",
        "loss_probability",
    ),
    *("jitter_ms", "jitter_percentile_99_ms", "timestamp_resolution_ms", "bunch_packets"),
    *("delayed_ack_ms", "rtt_offset_ms", "reordering_probability", "reordering_delay_ms", "preset"),
)


def _require(context: click.Context, names: Sequence[str]) -> None:
    for parameter in context.command.params:
        if parameter.name in names and context.params[parameter.name] is None:
            raise click.MissingParameter(ctx=context, param=parameter)


def _refuse_beside_network(context: click.Context) -> None:
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in _ONE_LINK
        and context.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise click.UsageError(
            f"--network FILE describes the whole network; leave out {', '.join(given)}"
        )


@dataclass(frozen=True)
class _Run:
    """What is to be done with a network."""

    seconds: float
    seed: int
    time_unit_ms: float
    record: str | None
    record_every_ms: float
    plot: str | None
    as_json: bool


def _simulate(
    network: Topology, body: evaluation_pb2.Choice | None, run: _Run, *, shows_kinds: bool
) -> None:
    files = dict.fromkeys(each.remycc for each in network.words if each.remycc is not None)
    tables = {path: read_remycc(path, run.time_unit_ms).table for path in files}
    records = run.record is not None or run.plot is not None
    with _interrupts_end_the_process():
        simulation = simulate_topology(
            network,
            tables,
            seconds=run.seconds,
            seed=run.seed,
            body=body,
            record_every_ms=run.record_every_ms if records else None,
        )
    if records:
        _write_recording(simulation, network.links, run)
    if run.as_json:
        print_json(simulation.tree(shows_kinds=shows_kinds))
    else:
        _print_simulation(simulation)


def _in_turn(remyccs: Sequence[str], senders: int | None) -> list[Words]:
    if not remyccs:
        if senders is not None:
            raise click.UsageError("--senders counts those of --remycc, which is not given")
        return []
    if senders is None:
        raise click.UsageError("Missing option '--senders': how many run what --remycc names")
    words = [Words(f"{REMYCC}{path}", 1, path, None, None) for path in remyccs]
    return [words[sender % len(words)] for sender in range(senders)]


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


@contextmanager
def _interrupts_end_the_process() -> Iterator[None]:
    """Python would keep Ctrl-C to itself until the whole simulation is over."""
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _print_simulation(simulation: Simulation) -> None:
    names, kinds = simulation.kind_names, simulation.kinds
    results, means, links = simulation.senders, simulation.means, simulation.links
    general = any(kind.transport is not None for kind in kinds)
    table = PlainTable(
        "sender",
        *(["kind"] if general else []),
        *("Mbit/s", "equal share Mbit/s", "delay ms", "received", "lost", "on s"),
        left=2 if general else 0,
    )
    for index, sender in enumerate(results):
        table.add_row(
            str(index),
            *([names[index]] if general else []),
            number(sender.throughput_mbps),
            number(sender.throughput_equal_share_mbps),
            number(sender.delay_ms),
            str(sender.packets_received),
            str(sender.packets_lost),
            number(sender.on_ms / _MS_PER_SECOND),
        )
    print_table(table)
    click.echo()
    if general:
        print_table(_table_of_kinds(kinds))
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
        ("normalized score per sender", number(means.normalized_score_per_sender)),
        ("packets received", count(packets)),
        ("CPU time", f"{simulation.cpu_seconds:.3g} s"),
    ]
    if means.senders_left_out:
        pairs.append(("senders that received nothing", f"{means.senders_left_out}, left out"))
    print_pairs(pairs)


def _table_of_kinds(kinds: Sequence[SenderKind]) -> PlainTable:
    table = PlainTable(
        *("kind", "senders", "Mbit/s", "of", "delay ms", "sent again", "timeouts", "marks"),
        *("flows", "completion ms", "median", "99 %"),
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
            str(transport.retransmissions),
            str(transport.timeouts),
            str(transport.marks),
            str(transport.flows_completed),
            number(transport.completion_ms_mean),
            number(transport.completion_ms_median),
            number(transport.completion_ms_percentile_99),
        )
    return table


@click.command("protocols")
@json_option
def protocols_command(as_json: bool) -> None:
    """List what senders can run, what carries it, and the queues they can meet in.

    Each with its variants (the usual one first), their sources, and parameters with their usual
    value and range: names for simulate --sender, --transport and --queue.
    """
    if as_json:
        print_json(
            {
                {"body": "bodies"}.get(kind, f"{kind}s"): [
                    asdict(entry) | {"traits": sorted(entry.traits)}
                    for entry in registry.entries(kind).values()
                ]
                for kind in Registry
            }
        )
        return
    for kind in Registry:
        table = PlainTable(kind.value, "variant", "parameter", "usual", "from", "to", left=3)
        for entry in registry.entries(kind).values():
            for place, variant in enumerate(entry.variants):
                named = (entry.name if place == 0 else "", variant.name)
                if not variant.parameters:
                    table.add_row(*named, "", "", "", "")
                for each in variant.parameters:
                    numbers = (each.usual, each.minimum, each.maximum)
                    table.add_row(*named, each.name, *(f"{value:.15g}" for value in numbers))
                    named = ("", "")
        print_table(table)
        click.echo()
    click.echo("Titles and sources: docs/protocols.md, or --json.")
