"""`remy-farm simulate` and `protocols`."""

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
    json_option,
    option,
    print_json,
    print_pairs,
    print_table,
    seed_option,
    settings_option,
    time_unit_option,
)
from remy_cli.networks import described_network
from remy_cli.senders import QUEUE, SENDER, TRANSPORT
from remy_farm.analysis import FORMATS, count, number
from remy_farm.evaluation import (
    MOST_SENDERS,
    REMYCC,
    SenderKind,
    Simulation,
    Topology,
    Words,
    check_usual_body,
    simulate_topology,
    topology_of,
)
from remy_farm.files import write_file
from remy_farm.remycc import read_remycc
from remy_farm.specification import Tree
from remy_simulator import registry
from remy_simulator.registry import Registry

_MS_PER_SECOND = 1000.0

#: By flag that there was, the setting that takes its place.
_NEW_NAMES: Final = {
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
    """The command, which says what has become of a flag that it had before."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            now = _NEW_NAMES.get(error.option_name)
            if now is None:
                raise
            raise click.UsageError(f"{error.option_name} is --set {now} now", ctx) from error


@click.command("simulate", cls=_Simulate)
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
    "--network FILE",
    "A network's description in YAML (docs/reference/networks.md), to which the other options add.",
    FILE,
    name="network_path",
)
@settings_option("A key of the network, as buffer.bdp=1, ack_bytes=40 or measurement=realistic.")
@option("--rate-mbps X", "Link rate, Mbit/s; short for --set rate_mbps=X.", POSITIVE)
@option("--rtt-ms Y", "RTT without queueing and service, ms.", POSITIVE)
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
    show_default="0",
)
@option("--queue QUEUE", "Queue discipline, as codel,target_ms=5.", QUEUE, show_default="drop-tail")
@option(
    "--transport TRANSPORT",
    "What carries RemyCCs, as ns2 or tcp,minimum_rto_ms=1000, and what TCP is like.",
    TRANSPORT,
    show_default="datagram",
)
@option(
    "--on-ms A",
    "Mean of the exponentially distributed on time, ms.",
    POSITIVE,
    show_default="always on",
)
@option("--on-bytes A", "Mean of exponentially distributed bytes to send, in its place.", POSITIVE)
@option("--off-ms B", "Mean of the exponentially distributed off time, ms.", POSITIVE)
@option(
    "--starts-apart-ms D",
    "Senders are first on D ms apart, the first at once, and not after an off time.",
    NOT_NEGATIVE,
)
@option("--seconds S", "Time to simulate, s.", POSITIVE, required=True)
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
    network_path: str | None,
    settings: tuple[str, ...],
    starts_apart_ms: float | None,
    seconds: float,
    seed: int,
    record: str | None,
    record_every_ms: float,
    plot: str | None,
    time_unit_ms: float,
    as_json: bool,
    **short: Any,
) -> None:
    """Simulate RemyCCs and protocols on one network: senders share a link, or several (--network).

    Throughput is in Mbit/s of packets received, on transports other than datagram of packets in
    order; "equal share" throughput counts each instant divided by the senders then on.
    """
    _check_files(record, plot)
    run = _Run(seconds, seed, time_unit_ms, record, record_every_ms, plot, as_json)
    words = [*_in_turn(remyccs, senders), *sender]
    if short["on_ms"] is not None and short["on_bytes"] is not None:
        raise click.UsageError("say how long senders are on: --on-ms A, or --on-bytes A")
    tree, folder, source = described_network(network_path, settings, short, name="the network")
    if starts_apart_ms is not None and not words:
        raise click.UsageError("--starts-apart-ms is of senders that --sender or --remycc names")
    if words:
        tree = _with_senders(tree, words, starts_apart_ms)
    elif network_path is None and isinstance(tree, dict) and "senders" not in tree:
        raise click.UsageError("nobody sends: say --sender WHAT=N, or --remycc FILE --senders N")
    try:
        check_usual_body(words, short["transport"])
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    network = topology_of(tree, folder, source, plain=network_path is None)
    _simulate(network, run, shows_kinds=bool(sender) or network_path is not None)


def _keys_of(words: Words) -> dict[str, Any]:
    """The keys of one sender in words, whose file is from here and not from a network's folder."""
    keys = {**words.keys(), "name": words.name}
    if words.remycc is not None and Path(words.remycc).is_file():
        keys["table"] = str(Path(words.remycc).absolute())
    return keys


def _with_senders(tree: Tree, words: Sequence[Words], starts_apart_ms: float | None) -> Tree:
    """The network with these senders behind those that it has."""
    if not isinstance(tree, dict):
        return tree
    alone = [_keys_of(said) for said in words for _ in range(said.count)]
    each: list[Tree]
    if starts_apart_ms is None:
        each = [{**keys, "count": len([*alike])} for keys, alike in groupby(alone)]
    else:
        # A sender that begins at a time of its own is a group of its own.
        each = [
            {**keys, "first_on_ms": starts_apart_ms * place} for place, keys in enumerate(alone)
        ]
    there = tree.get("senders", [])
    return {**tree, "senders": [*there, *each] if isinstance(there, list) else there}


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


def _simulate(network: Topology, run: _Run, *, shows_kinds: bool) -> None:
    files = dict.fromkeys(each.remycc for each in network.words if each.remycc is not None)
    tables = {path: read_remycc(path, run.time_unit_ms).table for path in files}
    records = run.record is not None or run.plot is not None
    simulation = simulate_topology(
        network,
        tables,
        seconds=run.seconds,
        seed=run.seed,
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
                f"{kind}s": [
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
    click.echo("Titles and sources: docs/reference/protocols.md, or --json.")
