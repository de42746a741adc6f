"""`remy-farm simulate`: RemyCCs on one network."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.cli.options import FILE, FiniteRange, json_option, seed_option
from remy_services.cli.output import plain_table, print_json, print_pairs, print_table
from remy_services.remycc import read_remycc
from remy_services.report.measures import (
    SenderMeasures,
    SpecimenMeasures,
    link_rate_packets_per_ms,
    measure_senders,
    measure_specimen,
)
from remy_services.report.wording import count, number

_POSITIVE = FiniteRange(min=0, min_open=True)
_MS_PER_SECOND = 1000.0


@click.command("simulate")
@click.option(
    "--remycc",
    "remyccs",
    type=FILE,
    multiple=True,
    required=True,
    metavar="FILE",
    help="RemyCC, .dna or .json; given several times, the senders run them in turn.",
)
@click.option(
    "--senders",
    type=click.IntRange(1, 10_000),
    required=True,
    metavar="N",
    help="Senders that share the link.",
)
@click.option("--link-mbps", type=_POSITIVE, required=True, metavar="X", help="Link rate, Mbit/s.")
@click.option(
    "--rtt-ms",
    type=_POSITIVE,
    required=True,
    metavar="Y",
    help="RTT without queueing and service, ms.",
)
@click.option(
    "--on-ms",
    type=_POSITIVE,
    required=True,
    metavar="A",
    help="Mean of the exponentially distributed on time, ms.",
)
@click.option(
    "--off-ms",
    type=_POSITIVE,
    required=True,
    metavar="B",
    help="Mean of the exponentially distributed off time, ms.",
)
@click.option(
    "--buffer-packets",
    type=click.IntRange(0, 1_000_000),
    metavar="K",
    help="Packets that the queue holds beyond the one in service.  [default: infinite]",
)
@click.option(
    "--loss",
    type=FiniteRange(min=0, max=0.999),
    default=0.0,
    show_default=True,
    metavar="P",
    help="Probability that the link loses a packet.",
)
@click.option(
    "--jitter-ms",
    type=FiniteRange(min=0),
    default=0.0,
    show_default=True,
    metavar="J",
    help="Mean of the exponentially distributed time by which senders see ACKs late, ms.",
)
@click.option(
    "--timestamp-resolution-ms",
    type=FiniteRange(min=0),
    default=0.0,
    show_default=True,
    metavar="R",
    help="Senders see times rounded down to multiples of this, ms.",
)
@click.option("--seconds", type=_POSITIVE, required=True, metavar="S", help="Time to simulate, s.")
@seed_option(default=1, text="Names the random draws.")
@json_option()
def command(
    remyccs: tuple[str, ...],
    senders: int,
    link_mbps: float,
    rtt_ms: float,
    on_ms: float,
    off_ms: float,
    buffer_packets: int | None,
    loss: float,
    jitter_ms: float,
    timestamp_resolution_ms: float,
    seconds: float,
    seed: int,
    as_json: bool,
) -> None:
    """Simulate RemyCCs on one network: SENDERS senders share a link.

    Senders switch on and off at exponentially distributed times. Throughput is in Mbit/s of packets
    of 1500 bytes; "equal share" throughput counts each instant divided by the senders then on.
    """
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=link_rate_packets_per_ms(link_mbps),
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss_probability=loss,
        measurement=evaluation_pb2.Measurement(
            exponential_jitter_mean_ms=jitter_ms,
            timestamp_resolution_ms=timestamp_resolution_ms,
        ),
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
        tables=[read_remycc(path).to_message() for path in remyccs],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[specimen],
        duration_ms=seconds * _MS_PER_SECOND,
        seed=seed,
    )
    started = time.process_time()
    with _interrupts_end_the_process():
        outcome = remy_simulator.evaluate(request)
    cpu_seconds = time.process_time() - started
    results = measure_senders(outcome.outcomes[0])
    means = measure_specimen(specimen, results)
    if as_json:
        _print_json(results, means, remy_simulator.digest(outcome), seconds, seed, cpu_seconds)
    else:
        _print_for_people(results, means, cpu_seconds)


@contextmanager
def _interrupts_end_the_process() -> Iterator[None]:
    """Python would keep Ctrl-C to itself until the whole simulation is over."""
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _print_json(
    results: list[SenderMeasures],
    means: SpecimenMeasures,
    digest: str,
    seconds: float,
    seed: int,
    cpu_seconds: float,
) -> None:
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
            "digest": digest,
        }
    )


def _print_for_people(
    results: list[SenderMeasures], means: SpecimenMeasures, cpu_seconds: float
) -> None:
    table = plain_table(
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
