"""`remy-farm kernel`: checks, verifies, runs and measures RemyCCs in this machine's Linux."""

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
    examples,
    flag,
    json_option,
    option,
    print_json,
    print_note,
    print_pairs,
    print_status,
    print_table,
    seed_option,
    settings_option,
    threads_option,
    time_unit_option,
)
from remy_cli.export import DEADBAND
from remy_cli.failures import ExitCode, print_error
from remy_cli.networks import network_from_options
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
    hold_signals,
    measure_noise,
    run_counters,
    run_records,
    running_table,
    save_noise_plot,
    stop_run,
)

deadband_option = option(
    "--deadband-us D",
    "Treat RTTs up to D us above the minimum as the minimum; for tables designed with exact "
    "clocks.",
    DEADBAND,
    default=0,
)


@click.group("kernel")
def command() -> None:
    """Check, verify, run and measure RemyCCs in this machine's Linux.

    See docs/how-to/kernel.md.
    """


@command.command("check", short_help="Check whether a RemyCC is safe to run in Linux.")
@click.argument("remycc_path", metavar="FILE", type=FILE)
@option(
    "--spec SPEC.yaml",
    "Specification that it was designed for; by default spec.yaml in the RemyCC's directory.",
    FILE,
    name="spec_path",
)
@deadband_option
@option(
    "--specimens N",
    "Number of networks for measuring scores with jitter.",
    SPECIMEN_COUNT,
    default=16,
)
@seed_option("Seed of these networks, as in evaluate.")
@flag("--force", "Exit with 0 even if the RemyCC is refused.")
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
    """Check whether the RemyCC in FILE is safe to run in this machine's Linux.

    Prints a sentence per check. Exits with 6 if the RemyCC is refused.
    """
    default_spec = Path(remycc_path).with_name("spec.yaml")
    checks = rf.check_on_kernel(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms),
        rf.load_spec(spec_path or default_spec) if spec_path or default_spec.exists() else None,
        deadband_us=deadband_us,
        networks=specimens,
        seed=seed,
        threads=threads,
    )
    if as_json:
        print_json(checks.to_dict())
    else:
        click.echo(repr(checks))
    if checks.is_refused and not force:
        context.exit(ExitCode.REFUSED)


@command.command("verify", short_help="Compare exported arithmetic with the simulator's.")
@click.argument("remycc_path", metavar="FILE", type=FILE)
@option("--vectors N", "Number of ACKs and look-ups to compare.", POSITIVE_INT, default=100_000)
@seed_option("Seed of the ACKs.")
@flag("--in-kernel", "Also run the arithmetic in this kernel; needs root and clang.")
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

    A plain C build replays ACKs, and look-ups at every threshold. With --in-kernel the compiled
    eBPF program replays them too, without being used by any connection. Exits with 6 if any rule
    differs other than by a tie, or if a window or pacing interval differs by more than
    docs/how-to/kernel.md allows.
    """
    result = rf.verify_on_kernel(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms),
        vectors=vectors,
        in_kernel=in_kernel,
        seed=seed,
    )
    if as_json:
        print_json(result.to_dict())
    else:
        for target, differences in result.differences.items():
            _print_differences(target, differences)
    if not result.is_same:
        print_error(f"{remycc_path}: the exported arithmetic differs from the simulator's")
        context.exit(ExitCode.REFUSED)


@command.command(
    "run",
    short_help="Run an exported RemyCC until Ctrl-C.",
    epilog=examples("remy-farm kernel run remy_one --netns lab"),
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@option(
    "--netns NAME",
    "Make it the default in this network namespace; with --route, use it for a route there.",
)
@option("--route PREFIX", "Use it for the route to PREFIX; with --netns, in that namespace.")
@flag("--default", "Make it this machine's default.", name="is_default")
@flag("--for-all", "Allow unprivileged sockets to select it by name.")
@option(
    "--pin PATH",
    "Pin it at PATH on a mounted bpffs and exit; 'kernel stop' removes it.",
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
    """Run the RemyCC that 'export --ebpf' wrote to DIR in this machine's Linux, until Ctrl-C.

    Sockets select it by name (TCP_CONGESTION). Other sockets use it only with --netns, --route or
    --default. When the command ends, the previous default is restored and the name is removed;
    existing connections keep using the RemyCC. If the command is killed, the next run, status or
    stop cleans up. Needs root.
    """
    if is_default and (netns or route):
        raise click.UsageError(
            "--default applies to the whole machine; leave out --netns and --route"
        )
    scope = Scope(netns, route, is_default or (netns is not None and route is None))
    pin_path = Path(pin) if pin is not None else None
    # Signals are held until the RemyCC is loaded, so that the with block can undo the change.
    with (
        hold_signals() as wait_for_a_signal,
        running_table(Path(folder), scope, for_all=for_all, pin=pin_path) as state,
    ):
        print_status(f"{state.name} runs; {_scope_sentence(state)}.")
        if pin_path is None:
            wait_for_a_signal()


def _scope_sentence(state: RunRecord) -> str:
    if state.route is not None:
        return f"the route to {state.route} uses it"
    if state.is_default:
        scope = "this machine" if state.netns is None else f"the namespace {state.netns}"
        return f"new sockets in {scope} use it instead of {state.default_before}"
    return "sockets that select it by name use it"


@command.command("status", short_help="Show the running RemyCCs and their rule use.")
@json_option
def status_command(as_json: bool) -> None:
    """Show the RemyCCs that run in this machine's Linux, and how often each rule was used."""
    cleaned_up = clean_up()
    running = [(state, run_counters(state)) for state in run_records()]
    if as_json:
        print_json(
            {
                "undone": cleaned_up,
                "running": [{**asdict(state), **numbers} for state, numbers in running],
            }
        )
        return
    for name in cleaned_up:
        print_status(f"{name} had been killed; its changes are undone.")
    for state, numbers in running:
        uses = numbers.pop("uses_by_rule")
        print_pairs(
            [
                ("algorithm", state.name),
                ("used", _scope_sentence(state)),
                *((name.replace("_", " "), count(number)) for name, number in numbers.items()),
            ]
        )
        rows = PlainTable("rule", "uses")
        for rule in sorted(range(len(uses)), key=lambda rule: -uses[rule]):
            if uses[rule]:
                rows.add_row(str(rule), str(uses[rule]))
        print_table(rows)
    if not running:
        click.echo("No RemyCC runs in this machine's Linux.")


@command.command("stop", short_help="Stop a running RemyCC or remove a pinned one.")
@click.argument("name")
def stop_command(name: str) -> None:
    """Stop a running RemyCC, or remove a pinned one."""
    stop_run(name)


@command.command(
    "measure",
    short_help="Measure a RemyCC with real sockets.",
    epilog=examples(
        "remy-farm kernel measure design/remycc.json --algorithm cubic --out measured",
        "remy-farm kernel measure --noise --rtt-ms 20",
    ),
)
@click.argument("remycc_path", metavar="[FILE]", type=FILE, required=False)
@flag("--noise", "Measure the noise of RTTs on an empty link, instead of a RemyCC.")
@option(
    "--algorithm NAME",
    "Also measure this algorithm of the kernel; may be given several times.",
    name="algorithms",
    multiple=True,
)
@option(
    "--network FILE",
    "YAML description of a network with one link (docs/reference/networks.md); other options "
    "override or extend it.",
    FILE,
    name="network_path",
)
@settings_option("Set a key of the network, e.g. buffer.bdp=1 or loss_probability=0.01.")
@option("--rate-mbps X", "Rate of the link, Mbit/s.", POSITIVE, show_default="15")
@option("--rtt-ms Y", "RTT of the empty link, ms; default 150, or 20 with --noise.", POSITIVE)
@option(
    "--buffer-packets K",
    "Buffer size, in packets.",
    click.IntRange(1, 10_000),
    show_default="1000",
)
@option(
    "--loss-probability P",
    "Probability that a packet is lost after the link.",
    FiniteRange(0, 0.999),
    show_default="0",
)
@option(
    "--flows N",
    "Number of always-on flows; may be given several times.",
    click.IntRange(1, 64),
    multiple=True,
)
@option(
    "--competitor NAME",
    "Algorithm of an additional competing flow in one run with one flow; or none.",
    default="cubic",
)
@option(
    "--download-mb M",
    "Size of an HTTPS download, MB; 0 for no download.",
    FiniteRange(0, 10_000),
    default=10.0,
)
@option("--seconds S", "Duration of the first flow, s.", POSITIVE, default=30.0)
@option(
    "--apart-seconds S",
    "Time between the starts of consecutive flows, s.",
    NOT_NEGATIVE,
    default=0.2,
)
@option("--repeats N", "Runs of each measurement.", click.IntRange(1, 100), default=3)
@flag("--offloads", "Let Linux use segmentation offloads; by default packets are sent one by one.")
@flag("--delayed-acks", "Let Linux delay ACKs; by default every packet is acknowledged.")
@deadband_option
@seed_option("Seed of losses and jitter.")
@option("--out -o DIR", "Directory for the results, as JSON and as a plot.", click.Path())
@time_unit_option
@json_option
def measure_command(
    remycc_path: str | None,
    noise: bool,
    algorithms: tuple[str, ...],
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

    Each --algorithm is measured in the same way. Every algorithm also runs once with a competing
    flow and once for an HTTPS download. The simulator's predictions are added, with exact clocks
    and with typical jitter. A run in which the emulator fell behind is repeated; the table shows
    how many runs were disturbed every time.

    With --noise, prints the `measurement` keys of a specification instead, and writes a histogram
    of RTTs above the minimum. Needs root, a C compiler and clang; only its own network namespaces
    are changed.
    """
    if noise == (remycc_path is not None):
        raise click.UsageError("give either FILE or --noise")
    if remycc_path is None:
        given_flags = [name for name, value in short.items() if value is not None]
        if network_path or settings or given_flags not in ([], ["rtt_ms"]):
            raise click.UsageError("--noise uses its own link, for which only --rtt-ms can be set")
        with TemporaryDirectory(prefix="remy-farm-") as temporary:
            noise_result = measure_noise(
                build_emulator(Path(temporary)),
                Path(temporary) / "exported",
                rtt_ms=short["rtt_ms"] or NOISE_RTT_MS,
                seconds=seconds,
                repeats=repeats,
                offloads=offloads,
                delayed_acks=delayed_acks,
                seed=seed,
                on_message=print_status,
            )
        if out is not None:
            directory = Path(out)
            make_folder(directory)
            write_file(
                directory / "noise.json", json.dumps(noise_result.to_dict(), indent=2) + "\n"
            )
            save_noise_plot(directory / "noise.png", noise_result)
        if as_json:
            print_json(noise_result.to_dict())
            return
        click.echo(noise_result.measurement_yaml(), nl=False)
        if disturbed := noise_result.disturbed:
            print_status(f"{disturbed} of {noise_result.runs} runs were disturbed by other load.")
        return
    keys, directory, source = network_from_options(network_path, settings, short, name="the link")
    if not isinstance(keys, dict):
        raise click.UsageError(f"{source} must be a mapping of a network's keys")
    link = Link(folder=directory, source=source, **keys)
    measured = rf.measure_on_kernel(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms),
        link,
        algorithms=algorithms,
        flows=flows or (1, 2, 4, 8),
        competitor=None if competitor == "none" else competitor,
        download_mb=download_mb,
        load=Workload(1, seconds, apart_seconds, offloads, delayed_acks),
        repeats=repeats,
        deadband_us=deadband_us,
        seed=seed,
        on_message=print_status,
    )
    if out is not None:
        measured.save(out)
    if as_json:
        print_json(measured.to_dict())
        return
    _print_measured(measured.measured, offloads=offloads, delayed_acks=delayed_acks)


def _print_measured(rows: Sequence[Row], *, offloads: bool, delayed_acks: bool) -> None:
    table = PlainTable(
        *(
            "algorithm",
            "load",
            "flows",
            "Mbit/s",
            "own",
            "RTT ms",
            "Jain",
            "seconds",
            "retransmitted",
        ),
        *("CPU s/GB", "late us", "runs"),
        left=2,
    )
    for row in rows:

        def median(name: str, format_spec: str, row: Row = row) -> str:
            values = [getattr(run, name) for run in row.details]
            return format(statistics.median(values), format_spec) if values else ""

        table.add_row(
            row.algorithm,
            row.load,
            str(row.flows),
            f"{row.total_mbps:.2f}",
            f"{row.own_mbps:.2f}",
            f"{row.mean_rtt_ms:.1f}",
            f"{row.fairness:.3f}",
            f"{row.seconds:.1f}",
            median("retransmissions", ".0f"),
            median("cpu_seconds_per_gigabyte", ".1f"),
            median("late_99_us", ".0f"),
            str(row.runs) + (f", {row.disturbed} disturbed" if row.disturbed else ""),
        )
    print_table(table)
    print_note(
        "Medians of the runs. Mbit/s counts packets of 1,500 bytes over the first flow's duration; "
        "'own' leaves out the competitor and counts each flow over its own duration. RTTs are "
        "means over packets. 'late' is the 99th percentile of the emulator's own delay of "
        "packets; a run with more than 500 us is disturbed. "
        f"Segmentation offloads are {'on' if offloads else 'off'}, and ACKs are "
        f"{'delayed as Linux does' if delayed_acks else 'sent for each packet'}."
    )


def _print_differences(target: str, differences: Differences) -> None:
    print_pairs(
        [
            ("arithmetic of", "plain C" if target == "c" else "this kernel"),
            ("compared", f"{count(differences.records)} ACKs and look-ups"),
            ("different rules", count(differences.rules_different)),
            ("ties", count(differences.ties)),
            ("different windows", count(differences.windows_different)),
            ("largest difference, packets", count(differences.largest_window_difference)),
            ("largest pacing error", f"{differences.largest_interval_share:.2g}"),
            ("rules not looked up", _rule_list(differences.rules_not_looked_up)),
            ("rules not used by ACKs", _rule_list(differences.rules_not_used_by_acks)),
        ]
    )


def _rule_list(rules: tuple[int, ...]) -> str:
    return ", ".join(map(str, rules)) or "none"
