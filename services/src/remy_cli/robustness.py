"""Robustness of RemyCCs: certification for `--certify`, and `remy-farm attack`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import remy_farm as rf
from remy_cli.common import (
    FILE,
    SPECIMEN_COUNT,
    PlainTable,
    examples,
    json_option,
    option,
    print_json,
    print_note,
    print_status,
    print_table,
    quiet_option,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.failures import ExitCode, Failure
from remy_cli.reproduce import FOLDER, parse_entrant
from remy_cli.senders import SENDER, TRANSPORT
from remy_cli.views import progress_meter
from remy_farm.analysis import format_estimate
from remy_farm.evaluation import SenderSpec
from remy_farm.shipped import DATA
from remy_proto.v1 import evaluation_pb2

if TYPE_CHECKING:
    from remy_laboratory.studies import AttackResult, Certificate

ROUNDS = click.IntRange(1, 1000)
robustness_option = option(
    "--robustness DIR",
    "Directory with a file per requirement, for --certify.",
    FOLDER,
    default=DATA / "robustness",
    show_default="the installed ones",
    name="requirements",
)


require_option = option(
    "--require NAME",
    "Check only this requirement; may be given several times. safe-to-run names all of them.",
    name="required",
    multiple=True,
)


def certify_table(
    remycc_path: str,
    out: Path,
    requirements: Path,
    *,
    required: Sequence[str],
    time_unit_ms: float = 1.0,
    threads: int,
    quiet: bool,
) -> Certificate:
    """Checks a RemyCC file against requirements and writes its certificate into `out`.

    `required` are the requirements' names; an empty sequence means all of them.

    Raises FileError and SpecError.
    """
    from remy_laboratory.studies import certify_entrant

    entrant = parse_entrant(remycc_path, time_unit_ms)
    table = rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms)
    with progress_meter(1.0, quiet=quiet) as progress:
        progress.start_task("robustness")
        return certify_entrant(
            entrant,
            table,
            out,
            requirements,
            only=required,
            threads=threads,
            on_progress=progress.set_done,
        )


#: Subdirectory of a design for its certificates.
CERTIFICATE = "certificate"


def certify_design(
    design: rf.Design, requirements: Path, *, required: Sequence[str], threads: int, quiet: bool
) -> None:
    """Certifies all tables of a design in its subdirectory `certificate`.

    Raises Failure for the first refused table, after all certificates are written.
    """
    certificates = []
    for name, path in design.table_files().items():
        place = design.directory / CERTIFICATE / (name if len(design.tables) > 1 else "")
        certificates.append(
            certify_table(
                str(path), place, requirements, required=required, threads=threads, quiet=quiet
            )
        )
    refused = [each for each in certificates if not each.holds]
    if refused:
        raise Failure(refused[0].sentence(), ExitCode.REFUSED)
    for each in certificates:
        print_status(each.sentence())


def show_certificate(certificate: Certificate, out: Path, *, as_json: bool) -> None:
    """Prints a certificate for `inspect --certify`. Raises Failure if the table is refused."""
    from remy_laboratory.studies import certificate_dict, quantity_name, value_text

    if as_json:
        print_json(certificate_dict(certificate))
    else:
        table = PlainTable(
            "requirement", "quantity", "required", "worst", "networks", "beyond", left=3
        )
        for requirement, bound, worst, networks, beyond in certificate.rows():
            table.add_row(
                requirement.league.title,
                quantity_name(requirement, bound),
                bound.words,
                value_text(worst),
                str(networks),
                str(beyond),
            )
        print_table(table)
        print_status(f"the certificate is {out / 'certificate.html'}")
    if not certificate.holds:
        raise Failure(certificate.sentence(), ExitCode.REFUSED)
    if not as_json:
        click.echo(f"\n{certificate.sentence()}.")


@click.command(
    "attack",
    epilog=examples(
        "remy-farm attack design/remycc.json --spec space.yaml --out found.yaml",
        "remy-farm design spec.yaml --out hardened --harden found.yaml",
        "remy-farm attack hardened/remycc.json --spec space.yaml --on found.yaml",
    ),
)
@click.argument("remycc_path", metavar="TABLE", type=FILE)
@option("--spec SPACE.yaml", "Specification whose networks are searched.", FILE, required=True)
@option(
    "--against WHAT",
    "Protocol to compare with, as in simulate --sender; omniscient is an upper bound.",
    SENDER,
    default="cubic,variant=linux",
)
@option("--transport TRANSPORT", "Transport of the RemyCC, as in simulate, e.g. tcp.", TRANSPORT)
@option(
    "--networks N", "Number of networks to evaluate, over all rounds.", SPECIMEN_COUNT, default=512
)
@option(
    "--rounds N",
    "Number of rounds; each searches near the worst networks so far.",
    ROUNDS,
    default=8,
)
@option("--runs N", "Number of runs on each network.", SPECIMEN_COUNT, default=4)
@option("--find N", "Number of networks to report.", ROUNDS, default=4)
@option(
    "--fresh-runs N",
    "Number of runs, with fresh random draws, on each reported network.",
    SPECIMEN_COUNT,
    default=32,
)
@option("--out -o FILE.yaml", "Write the networks to this file, for design --harden.", FILE)
@option("--on FOUND.yaml", "Skip the search and measure TABLE on the networks in this file.", FILE)
@seed_option("Seed of the search and of all random draws.")
@time_unit_option
@threads_option
@quiet_option
@json_option
def attack_command(
    remycc_path: str,
    spec: str,
    against: SenderSpec,
    transport: evaluation_pb2.Choice | None,
    networks: int,
    rounds: int,
    runs: int,
    find: int,
    fresh_runs: int,
    out: str | None,
    on: str | None,
    seed: int,
    time_unit_ms: float,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the networks of a specification where TABLE scores worst against a protocol.

    The loss is the protocol's score minus the table's, by the specification's objective. Both run
    on all designed senders of the network, with the same random draws. The networks found are
    measured again with fresh draws; design --harden includes them in a design.
    """
    if against.remycc is not None or against.count != 1 or against.rtt_ms is not None:
        raise click.UsageError(
            f"--against {against.name} must be a protocol without a number of senders or an RTT"
        )
    if networks < rounds:
        raise click.UsageError(
            f"--networks {networks} is less than --rounds {rounds}; each round needs a network"
        )

    def on_round(number: int, worst: float) -> None:
        if not quiet and not as_json:
            print_status(f"round {number} of {rounds}: worst loss {worst:.4g}")

    attack = rf.attack(
        rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms).renamed(Path(remycc_path).name),
        rf.load_spec(spec),
        against=against.name,
        transport=transport,
        networks=networks,
        rounds=rounds,
        runs=runs,
        find=find,
        fresh_runs=fresh_runs,
        on=on,
        seed=seed,
        threads=threads,
        on_round=on_round,
    )
    if out is not None:
        attack.save(out)
    if as_json:
        print_json({**attack.to_dict(), "written": out})
    else:
        _print_attack(attack.result, attack.against, out)


def _print_attack(result: AttackResult, rival: str, out: str | None) -> None:
    table = PlainTable("network", "loss", "score", f"score of {rival}", left=1)
    for each in result.networks:
        table.add_row(
            each.name,
            format_estimate(each.loss),
            format_estimate(each.score),
            format_estimate(each.rival_score),
        )
    print_table(table)
    note = "A negative loss means that the table is better. The draws differ from the search's."
    if result.spread is not None:
        note += f" Mean loss in the first round: {format_estimate(result.spread)}."
    print_note(note)
    if out is not None:
        print_status(f"the networks are in {out}")
