"""`remy-farm kernel`: RemyCCs as congestion control of this machine's Linux."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

import remy_farm as rf
from remy_cli.common import (
    FILE,
    NOT_NEGATIVE,
    POSITIVE,
    POSITIVE_INT,
    SPECIMEN_COUNT,
    FiniteRange,
    PlainTable,
    json_option,
    option,
    print_json,
    print_note,
    print_pairs,
    print_table,
    say,
    seed_option,
    settings_option,
    switch,
    threads_option,
    time_unit_option,
)
from remy_cli.export import DEADBAND
from remy_cli.failures import ExitCode, complain
from remy_cli.networks import described_network
from remy_farm.analysis import count
from remy_farm.files import make_folder, write_file
from remy_laboratory.kernel import (
    NOISE_RTT_MS,
    Differences,
    Link,
    Row,
    RunRecord,
    Scope,
    Workload,
    build_emulator,
    clean_up,
    counters,
    draw_noise,
    held_signals,
    measure_noise,
    running_table,
    states,
    stop,
)

deadband_option = option(
    "--deadband-us D",
    "RTTs up to this above the smallest count as it; for tables designed with exact clocks.",
    DEADBAND,
    default=0,
)


@click.group("kernel")
def command() -> None:
    """Check, verify and run RemyCCs as congestion control of Linux (docs/how-to/kernel.md)."""


@command.command("check")
@click.argument("remycc_path", metavar="FILE", type=FILE)
@option(
    "--spec SPEC.yaml",
    "What it was designed for; spec.yaml beside the RemyCC unless given.",
    FILE,
    name="spec_path",
)
@deadband_option
@option("--specimens N", "Networks to measure scores with jitter on.", SPECIMEN_COUNT, default=16)
@seed_option("Names these networks, as evaluate does.")
@switch("--force", "Exit with 0 whatever is refused.")
@time_unit_option
@threads_option
@json_option
@click.pass_context
def check_command(
    context: click.Context,
    remycc_path: str,
    spec_path: str | None,
    deadband_us: int,
    specimens: int,
    seed: int,
    force: bool,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Say what can be known of the RemyCC in FILE before this machine's Linux loads it.

    A sentence for each thing that was looked at; the exit code is 6 if the RemyCC is refused.
    """
    kept = Path(remycc_path).with_name("spec.yaml")
    found = rf.check_on_kernel(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms),
        rf.load_spec(spec_path or kept) if spec_path or kept.exists() else None,
        deadband_us=deadband_us,
        networks=specimens,
        seed=seed,
        threads=threads,
    )
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(repr(found))
    if found.is_refused and not force:
        context.exit(ExitCode.REFUSED)


@command.command("verify")
@click.argument("remycc_path", metavar="FILE", type=FILE)
@option("--vectors N", "ACKs and look-ups to compare.", POSITIVE_INT, default=100_000)
@seed_option("Names the ACKs.")
@switch("--in-kernel", "Run the arithmetic in this kernel too; needs root and clang.")
@time_unit_option
@json_option
@click.pass_context
def verify_command(
    context: click.Context,
    remycc_path: str,
    vectors: int,
    seed: int,
    in_kernel: bool,
    time_unit_ms: float,
    as_json: bool,
) -> None:
    """Compare the exported arithmetic of the RemyCC in FILE with the simulator's.

    A plain C build replays ACKs and look-ups at every threshold; with --in-kernel the compiled
    eBPF does so too, without being anybody's congestion control. The exit code is 6 if any rule
    differs but in ties, or a window or pace by more than docs/how-to/kernel.md says.
    """
    found = rf.verify_on_kernel(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms),
        vectors=vectors,
        in_kernel=in_kernel,
        seed=seed,
    )
    if as_json:
        print_json(found.to_dict())
    else:
        for place, differences in found.differences.items():
            _print_differences(place, differences)
    if not found.is_same:
        complain(f"{remycc_path}: the exported arithmetic is not the simulator's")
        context.exit(ExitCode.REFUSED)


@command.command("run")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@option("--netns NAME", "Make it the default of this network namespace, or use its routes.")
@option("--route PREFIX", "Have the route to PREFIX use it; with --netns, in that namespace.")
@switch("--default", "Make it the default of this machine.", name="is_default")
@switch("--for-all", "Let unprivileged sockets ask for it by name.")
@option(
    "--pin PATH",
    "Keep it at PATH, on a mounted bpffs, and end; 'kernel stop' takes it away.",
    click.Path(),
)
def run_command(
    folder: str,
    netns: str | None,
    route: str | None,
    is_default: bool,
    for_all: bool,
    pin: str | None,
) -> None:
    """Have this machine's Linux run the RemyCC that 'export --ebpf' wrote to DIR, until ended.

    Sockets may ask for it by name (TCP_CONGESTION); nobody else uses it but for --netns, --route or
    --default. When the command ends, what was the default is so again, and the name is gone;
    connections that use it keep it. What a killed run leaves is undone by the next run, status or
    stop. Needs root.
    """
    if is_default and (netns or route):
        raise click.UsageError("--default is of this machine; leave out --netns and --route")
    scope = Scope(netns, route, is_default or (netns is not None and route is None))
    where = Path(pin) if pin is not None else None
    # From here on a signal waits until there is something to undo, and is heard then.
    with (
        held_signals() as wait_for_a_signal,
        running_table(Path(folder), scope, for_all=for_all, pin=where) as state,
    ):
        say(f"{state.name} runs; {_users(state)}.")
        if where is None:
            wait_for_a_signal()


def _users(state: RunRecord) -> str:
    if state.route is not None:
        return f"the route to {state.route} uses it"
    if state.is_default:
        place = "this machine" if state.netns is None else f"the namespace {state.netns}"
        return f"new sockets of {place} use it, in place of {state.default_before}"
    return "sockets use it that ask for it by name"


@command.command("status")
@json_option
def status_command(as_json: bool) -> None:
    """Show the RemyCCs that run in this machine's Linux, and how often each rule was used."""
    undone = clean_up()
    found = [(state, counters(state)) for state in states()]
    if as_json:
        print_json(
            {
                "undone": undone,
                "running": [{**asdict(state), **numbers} for state, numbers in found],
            }
        )
        return
    for name in undone:
        say(f"{name} had been killed; what it left is undone.")
    for state, numbers in found:
        uses = numbers.pop("uses_by_rule")
        print_pairs(
            [
                ("algorithm", state.name),
                ("used", _users(state)),
                *((name.replace("_", " "), count(number)) for name, number in numbers.items()),
            ]
        )
        rows = PlainTable("rule", "uses")
        for rule in sorted(range(len(uses)), key=lambda rule: -uses[rule]):
            if uses[rule]:
                rows.add_row(str(rule), str(uses[rule]))
        print_table(rows)
    if not found:
        click.echo("No RemyCC runs in this machine's Linux.")


@command.command("stop")
@click.argument("name")
def stop_command(name: str) -> None:
    """End a run, or take away what it pinned."""
    stop(name)


@command.command("measure")
@click.argument("remycc_path", metavar="[FILE]", type=FILE, required=False)
@switch("--noise", "Measure how RTTs vary on an empty link, in place of a RemyCC.")
@option(
    "--algorithm NAME",
    "Of this kernel, measured beside; several times.",
    name="beside",
    multiple=True,
)
@option(
    "--network FILE",
    "A network of one link in YAML (docs/reference/networks.md), to which the other options add.",
    FILE,
    name="network_path",
)
@settings_option("A key of the network, as buffer.bdp=1 or loss_probability=0.01.")
@option("--rate-mbps X", "Rate of the link.", POSITIVE, show_default="15")
@option("--rtt-ms Y", "RTT of the empty link; 150 unless given, with --noise 20.", POSITIVE)
@option(
    "--buffer-packets K",
    "Packets that wait at most.",
    click.IntRange(1, 10_000),
    show_default="1000",
)
@option(
    "--loss-probability P",
    "Share of packets lost behind the link.",
    FiniteRange(0, 0.999),
    show_default="0",
)
@option("--flows N", "Always-on flows; several times.", click.IntRange(1, 64), multiple=True)
@option(
    "--competitor NAME",
    "The algorithm of one flow more, once with one flow; or none.",
    default="cubic",
)
@option(
    "--download-mb M",
    "What one HTTPS download brings; 0: none.",
    FiniteRange(0, 10_000),
    default=10.0,
)
@option("--seconds S", "For which the first flow lasts.", POSITIVE, default=30.0)
@option("--apart-seconds S", "After which each next flow starts.", NOT_NEGATIVE, default=0.2)
@option("--repeats N", "Runs of each.", click.IntRange(1, 100), default=3)
@switch("--offloads", "Leave segmentation to Linux; else packets leave one by one.")
@switch("--delayed-acks", "Leave ACKs to Linux; else each packet has one.")
@deadband_option
@seed_option("Names losses and jitter.")
@option("--out -o DIR", "A folder for the figures as JSON and as a picture.", click.Path())
@time_unit_option
@json_option
def measure_command(
    remycc_path: str | None,
    noise: bool,
    beside: tuple[str, ...],
    network_path: str | None,
    settings: tuple[str, ...],
    flows: tuple[int, ...],
    competitor: str,
    download_mb: float,
    seconds: float,
    apart_seconds: float,
    repeats: int,
    offloads: bool,
    delayed_acks: bool,
    deadband_us: int,
    seed: int,
    out: str | None,
    time_unit_ms: float,
    as_json: bool,
    **short: Any,
) -> None:
    """Measure the RemyCC in FILE with real sockets of this machine's Linux over an emulated link.

    Beside it run the algorithms that are named, each once beside a competitor and once for an HTTPS
    download too, and the simulator says what it predicts with exact clocks and with a usual jitter.
    A run in which the emulator was late is made again, and told if it never went well. With
    --noise, the `measurement` of a specification is written instead, with a histogram of how much
    longer than the least RTTs are. Needs root, a C compiler and clang; nothing outside of its own
    network namespaces changes.
    """
    if noise == (remycc_path is not None):
        raise click.UsageError("one of FILE and --noise says what is measured")
    if remycc_path is None:
        described = [name for name, value in short.items() if value is not None]
        if network_path or settings or described not in ([], ["rtt_ms"]):
            raise click.UsageError("--noise has a link of its own, of which --rtt-ms is said alone")
        with TemporaryDirectory(prefix="remy-farm-") as temporary:
            found = measure_noise(
                build_emulator(Path(temporary)),
                Path(temporary) / "exported",
                rtt_ms=short["rtt_ms"] or NOISE_RTT_MS,
                seconds=seconds,
                repeats=repeats,
                offloads=offloads,
                delayed_acks=delayed_acks,
                seed=seed,
                say=say,
            )
        if out is not None:
            where = Path(out)
            make_folder(where)
            write_file(where / "noise.json", json.dumps(found.tree(), indent=2) + "\n")
            draw_noise(where / "noise.png", found)
        if as_json:
            print_json(found.tree())
            return
        click.echo(found.block(), nl=False)
        if found.disturbed:
            say(f"{found.disturbed} of {found.runs} runs were disturbed; the machine is busy.")
        return
    tree, folder, source = described_network(network_path, settings, short, name="the link")
    if not isinstance(tree, dict):
        raise click.UsageError(f"{source} must be a mapping of a network's keys")
    link = Link(folder=folder, source=source, **tree)
    measured = rf.measure_on_kernel(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms),
        link,
        beside=beside,
        flows=flows or (1, 2, 4, 8),
        competitor=None if competitor == "none" else competitor,
        download_mb=download_mb,
        load=Workload(1, seconds, apart_seconds, offloads, delayed_acks),
        repeats=repeats,
        deadband_us=deadband_us,
        seed=seed,
        say=say,
    )
    if out is not None:
        measured.save(out)
    if as_json:
        print_json(measured.to_dict())
        return
    _print_measured(measured.measured, offloads=offloads, delayed_acks=delayed_acks)


def _print_measured(rows: Sequence[Row], *, offloads: bool, delayed_acks: bool) -> None:
    shown = PlainTable(
        *("algorithm", "load", "flows", "Mbit/s", "own", "RTT ms", "Jain", "seconds", "again"),
        *("CPU s/GB", "late us", "runs"),
        left=2,
    )
    for row in rows:

        def middle(name: str, form: str, row: Row = row) -> str:
            values = [getattr(run, name) for run in row.details]
            return format(statistics.median(values), form) if values else ""

        shown.add_row(
            row.algorithm,
            row.load,
            str(row.flows),
            f"{row.total_mbps:.2f}",
            f"{row.own_mbps:.2f}",
            f"{row.mean_rtt_ms:.1f}",
            f"{row.fairness:.3f}",
            f"{row.seconds:.1f}",
            middle("retransmissions", ".0f"),
            middle("cpu_seconds_per_gigabyte", ".1f"),
            middle("late_99_us", ".0f"),
            str(row.runs) + (f", {row.disturbed} disturbed" if row.disturbed else ""),
        )
    print_table(shown)
    print_note(
        "Medians of the runs; rates are packets times 1,500 bytes over the time of the first flow, "
        "'own' those without the competitor's, each over its flow's time; RTTs are means over "
        "packets. 'late' is what the emulator was late by itself for one packet in a hundred; with "
        "more than 500 us a run is disturbed. "
        f"Segmentation is {'as Linux does it' if offloads else 'off'}, and ACKs come "
        f"{'as Linux sends them' if delayed_acks else 'for each packet'}."
    )


def _print_differences(place: str, found: Differences) -> None:
    print_pairs(
        [
            ("arithmetic of", "plain C" if place == "c" else "this kernel"),
            ("compared", f"{count(found.records)} ACKs and look-ups"),
            ("other rules", count(found.rules_different)),
            ("ties", count(found.ties)),
            ("other windows", count(found.windows_different)),
            ("by packets", count(found.largest_window_difference)),
            ("paces apart by", f"{found.largest_interval_share:.2g}"),
            ("rules not looked up", _listed(found.rules_not_looked_up)),
            ("rules not used by ACKs", _listed(found.rules_not_used_by_acks)),
        ]
    )


def _listed(rules: tuple[int, ...]) -> str:
    return ", ".join(map(str, rules)) or "none"
