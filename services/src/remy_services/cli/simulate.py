"""`remy-farm simulate`, `evaluate`, `convert`, `validate` and `completion`."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click
from click.shell_completion import get_completion_class

import remy_simulator
from remy_farm.completion import complete
from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_services.analysis.wording import count, estimate_tree, number, with_error
from remy_services.cli import failures
from remy_services.cli.common import (
    FILE,
    NOT_NEGATIVE,
    POSITIVE,
    SPECIMEN_COUNT,
    FiniteRange,
    PlainTable,
    json_option,
    local_evaluator,
    option,
    print_json,
    print_pairs,
    print_table,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_services.evaluation.measures import (
    SenderMeasures,
    SpecimenMeasures,
    Summary,
    Trial,
    link_rate_packets_per_ms,
    measure_senders,
    measure_specimen,
    try_table,
)
from remy_services.remycc import (
    read_remycc,
    write_remycc,
)
from remy_services.specification import SpecError, load_spec, to_yaml
from remy_services.specification.networks import typical_measurement
from remy_services.specification.reading import fill, words_for
from remy_simulator import columns


@click.command("evaluate")
@option("--remycc FILE", "RemyCC, .dna or .json.", FILE, name="remycc_path", required=True)
@option(
    "--spec SPEC.yaml",
    "Specification: networks, traffic, objective and simulated time.",
    FILE,
    name="spec_path",
    required=True,
)
@option("--specimens N", "Networks to draw.", SPECIMEN_COUNT, required=True)
@seed_option("Names the networks and all other random draws.")
@time_unit_option
@threads_option
@json_option
def evaluate_command(
    remycc_path: str,
    spec_path: str,
    specimens: int,
    seed: int,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Score a RemyCC on networks drawn from a specification.

    The same seed draws the same networks whatever the RemyCC: two RemyCCs compare best with equal
    seeds.
    """
    spec = load_spec(spec_path)
    table = read_remycc(remycc_path, time_unit_ms).table
    started = time.process_time()
    with local_evaluator(threads) as evaluator:
        trial = try_table(spec, table, seed=seed, specimens=specimens, evaluate=evaluator.evaluate)
    cpu_seconds = time.process_time() - started
    if as_json:
        print_json(_tree(trial, seed, cpu_seconds))
    else:
        _print_evaluation(trial, cpu_seconds)


def _tree(trial: Trial, seed: int, cpu_seconds: float) -> dict[str, Any]:
    return {
        **summary_tree(trial.summary()),
        "packets_received": trial.packets_received,
        "seed": seed,
        "by_senders": [
            {"senders": senders, **summary_tree(summary)}
            for senders, summary in trial.by_senders().items()
        ],
        "cpu_seconds": cpu_seconds,
        "digest": trial.digest,
    }


def summary_tree(summary: Summary) -> dict[str, Any]:
    """How a table did on specimens."""
    scored = summary.score.count if summary.score else 0
    return {
        **estimate_tree(summary.score),
        "specimens": summary.specimens,
        "specimens_left_out": summary.specimens - scored,
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
    }


def _print_evaluation(trial: Trial, cpu_seconds: float) -> None:
    table = PlainTable("senders", "specimens", *SUMMARY_HEAD)
    groups = trial.by_senders()
    if len(groups) > 1:
        for senders, summary in groups.items():
            table.add_row(str(senders), *summary_cells(summary))
    table.add_row("all", *summary_cells(trial.summary()), style="bold")
    print_table(table)
    click.echo()
    print_pairs(
        [
            ("packets received", count(trial.packets_received)),
            ("CPU time", f"{cpu_seconds:.3g} s"),
            ("digest", trial.digest),
        ]
    )
    click.echo(
        "The score is the mean over specimens with its standard error; the others are medians."
    )


SUMMARY_HEAD = ("score", "throughput / link rate", "delay / RTT")


def summary_cells(summary: Summary) -> tuple[str, str, str, str]:
    """The same for people: specimens, and what stands under SUMMARY_HEAD."""
    return (
        str(summary.specimens),
        with_error(summary.score),
        number(summary.throughput_over_link_rate),
        number(summary.delay_over_rtt),
    )


_MS_PER_SECOND = 1000.0


@click.command("simulate")
@option(
    "--remycc FILE",
    "RemyCC, .dna or .json; given several times, the senders run them in turn.",
    FILE,
    name="remyccs",
    multiple=True,
    required=True,
)
@option("--senders N", "Senders that share the link.", click.IntRange(1, 10_000), required=True)
@option("--link-mbps X", "Link rate, Mbit/s.", POSITIVE, required=True)
@option("--rtt-ms Y", "RTT without queueing and service, ms.", POSITIVE, required=True)
@option("--on-ms A", "Mean of the exponentially distributed on time, ms.", POSITIVE, required=True)
@option(
    "--off-ms B", "Mean of the exponentially distributed off time, ms.", POSITIVE, required=True
)
@option(
    "--buffer-packets K",
    "Packets that the queue holds beyond the one in service.",
    click.IntRange(0, 1_000_000),
    show_default="infinite",
)
@option(
    "--loss P",
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
    "--measurement WORD",
    "As in a specification, with bunches of 2; the options above go before it.",
    click.Choice(list(words_for(spec_pb2.MeasurementModel.DESCRIPTOR))),
    name="preset",
)
@option("--seconds S", "Time to simulate, s.", POSITIVE, required=True)
@seed_option("Names the random draws.")
@time_unit_option
@json_option
def simulate_command(
    remyccs: tuple[str, ...],
    senders: int,
    link_mbps: float,
    rtt_ms: float,
    on_ms: float,
    off_ms: float,
    buffer_packets: int | None,
    loss: float,
    jitter_ms: float | None,
    jitter_percentile_99_ms: float | None,
    timestamp_resolution_ms: float | None,
    bunch_packets: int | None,
    delayed_ack_ms: float | None,
    preset: str | None,
    seconds: float,
    seed: int,
    time_unit_ms: float,
    as_json: bool,
) -> None:
    """Simulate RemyCCs on one network: SENDERS senders share a link.

    Senders switch on and off at exponentially distributed times. Throughput is in Mbit/s of packets
    of 1500 bytes; "equal share" throughput counts each instant divided by the senders then on.
    """
    model = spec_pb2.MeasurementModel()
    fill(model, preset or {})
    measurement = typical_measurement(complete(model))
    for name, value in (
        ("exponential_jitter_mean_ms", jitter_ms),
        ("timestamp_resolution_ms", timestamp_resolution_ms),
        ("bunch_packets", bunch_packets),
        ("delayed_ack_ms", delayed_ack_ms),
    ):
        if value is not None:
            setattr(measurement, name, value)
    if jitter_percentile_99_ms is not None:
        if not 0 < (jitter_ms or 0) <= jitter_percentile_99_ms:
            raise click.UsageError(
                "--jitter-percentile-99-ms needs a --jitter-ms up to it, above 0"
            )
        measurement.log_normal_jitter.median_ms = jitter_ms or 0
        measurement.log_normal_jitter.percentile_99_ms = jitter_percentile_99_ms
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=link_rate_packets_per_ms(link_mbps),
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss_probability=loss,
        measurement=measurement,
        senders=[
            evaluation_pb2.SenderGroup(
                count=1,
                table=sender % len(remyccs),
                traffic=evaluation_pb2.Traffic(
                    exponential_time=evaluation_pb2.Traffic.ExponentialTime(mean_ms=on_ms),
                    mean_off_ms=off_ms,
                ),
            )
            for sender in range(senders)
        ],
    )
    request = evaluation_pb2.EvaluationRequest(
        tables=[read_remycc(path, time_unit_ms).to_message() for path in remyccs],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[specimen],
        duration_ms=seconds * _MS_PER_SECOND,
        seed=seed,
    )
    started = time.process_time()
    with _interrupts_end_the_process():
        outcome = remy_simulator.evaluate_columns(request)
    cpu_seconds = time.process_time() - started
    results = measure_senders(*columns.specimen_outcomes(request, outcome))
    means = measure_specimen(specimen, results)
    if as_json:
        print_json(
            {
                "senders": [asdict(sender) for sender in results],
                "throughput_over_link_rate": means.throughput_over_link_rate,
                "delay_over_rtt": means.delay_over_rtt,
                "normalized_score_per_sender": means.normalized_score_per_sender,
                "senders_left_out": means.senders_left_out,
                "packets_received": sum(sender.packets_received for sender in results),
                "simulated_seconds": seconds,
                "seed": seed,
                "cpu_seconds": cpu_seconds,
                "digest": columns.digest(request, outcome),
            }
        )
    else:
        _print_simulation(results, means, cpu_seconds)


@contextmanager
def _interrupts_end_the_process() -> Iterator[None]:
    """Python would keep Ctrl-C to itself until the whole simulation is over."""
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _print_simulation(
    results: list[SenderMeasures], means: SpecimenMeasures, cpu_seconds: float
) -> None:
    table = PlainTable(
        "sender", "Mbit/s", "equal share Mbit/s", "delay ms", "received", "lost", "on s"
    )
    for index, sender in enumerate(results):
        table.add_row(
            str(index),
            number(sender.throughput_mbps),
            number(sender.throughput_equal_share_mbps),
            number(sender.delay_ms),
            str(sender.packets_received),
            str(sender.packets_lost),
            number(sender.on_ms / _MS_PER_SECOND),
        )
    print_table(table)
    click.echo()
    packets = sum(sender.packets_received for sender in results)
    pairs = [
        ("throughput / link rate", number(means.throughput_over_link_rate)),
        ("delay / RTT", number(means.delay_over_rtt)),
        ("normalized score per sender", number(means.normalized_score_per_sender)),
        ("packets received", count(packets)),
        ("CPU time", f"{cpu_seconds:.3g} s"),
    ]
    if means.senders_left_out:
        pairs.append(("senders that received nothing", f"{means.senders_left_out}, left out"))
    print_pairs(pairs)


@click.command("convert")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@time_unit_option
def convert_command(source: str, target: str, time_unit_ms: float) -> None:
    """Convert the RemyCC in IN to OUT; the endings .dna and .json say which format is which.

    OUT is in milliseconds. It is replaced in one step, or left as it was.
    """
    write_remycc(target, read_remycc(source, time_unit_ms))


@click.command("validate")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@click.pass_context
def validate_command(context: click.Context, spec_path: str) -> None:
    """Check a specification, and print it complete with its defaults.

    What is wrong with it goes to standard error, one line each.
    """
    try:
        spec = load_spec(spec_path)
    except SpecError as error:
        for violation in error.violations:
            failures.complain(f"{error.source}: {violation}")
        context.exit(failures.ExitCode.BAD_INPUT)
    click.echo(f"# {spec_path} is valid; with all defaults it reads:")
    click.echo(to_yaml(spec), nl=False)


_VARIABLE = "_REMY_FARM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that has a shell complete what is typed after remy-farm.

    As a line in ~/.bashrc: eval "$(remy-farm completion bash)"
    """
    program = context.find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(program, {}, "remy-farm", _VARIABLE).source())
