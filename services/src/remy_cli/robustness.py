"""Whether a table is robust: the gate of `--certify`, and `remy-farm attack`, which looks for where
it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import remy_farm as rf
from remy_cli.common import (
    FILE,
    SPECIMEN_COUNT,
    PlainTable,
    json_option,
    option,
    print_json,
    print_note,
    print_table,
    quiet_option,
    say,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.failures import ExitCode, Failure
from remy_cli.reproduce import FOLDER, entrant_of
from remy_cli.senders import SENDER, TRANSPORT
from remy_cli.views import meter
from remy_farm.analysis import several, with_error
from remy_farm.evaluation import Words
from remy_farm.shipped import DATA
from remy_proto.v1 import evaluation_pb2

if TYPE_CHECKING:
    from remy_laboratory.studies import AttackResult, Certificate

ROUNDS = click.IntRange(1, 1000)
robustness_option = option(
    "--robustness DIR",
    "Requirements for --certify, a file each.",
    FOLDER,
    default=DATA / "robustness",
    show_default="those installed with it",
    name="requirements",
)


def certify_table(
    remycc_path: str,
    out: Path,
    requirements: Path,
    *,
    time_unit_ms: float = 1.0,
    threads: int,
    quiet: bool,
) -> Certificate:
    """Has the RemyCC in a file meet all requirements, and writes its certificate into `out`.

    Raises FileError and SpecError.
    """
    from remy_laboratory.studies import certify_entrant

    entrant = entrant_of(remycc_path, time_unit_ms)
    table = rf.load_table(Path(remycc_path), time_unit_ms=time_unit_ms)
    with meter(1.0, quiet=quiet) as shown:
        shown.work("robustness")
        return certify_entrant(
            entrant, table, out, requirements, threads=threads, on_done=shown.advance
        )


#: Of a design with --certify: a folder.
CERTIFICATE = "certificate"


def certify_design(design: rf.Design, requirements: Path, *, threads: int, quiet: bool) -> None:
    """Certifies the tables of a design, each in the folder beside its files.

    Raises Failure for the first table that is refused, once all have their certificates.
    """
    certificates = []
    for name, path in design.table_files().items():
        place = design.directory / CERTIFICATE / (name if len(design.tables) > 1 else "")
        certificates.append(
            certify_table(str(path), place, requirements, threads=threads, quiet=quiet)
        )
    refused = [each for each in certificates if not each.holds]
    if refused:
        raise Failure(refused[0].sentence(), ExitCode.REFUSED)
    for each in certificates:
        say(each.sentence())


def show_certificate(certificate: Certificate, out: Path, *, as_json: bool) -> None:
    """What `inspect --certify` prints. Raises Failure where the table is refused."""
    from remy_laboratory.studies import certificate_tree

    if as_json:
        print_json(certificate_tree(certificate))
    else:
        table = PlainTable("requirement", "least", "at least", "networks", "below", left=1)
        for requirement, result in certificate.results:
            scores = [certificate.score(place) for place in result.places]
            table.add_row(
                requirement.league.title,
                f"{min(scores):.3g}",
                f"{requirement.at_least:g}",
                str(len(scores)),
                str(sum(score < requirement.at_least for score in scores)),
            )
        print_table(table)
        say(f"the certificate is {out / 'certificate.html'}")
    if not certificate.holds:
        raise Failure(certificate.sentence(), ExitCode.REFUSED)
    if not as_json:
        click.echo(f"\n{certificate.sentence()}.")


@click.command("attack")
@click.argument("remycc_path", metavar="TABLE", type=FILE)
@option("--spec SPACE.yaml", "Specification whose networks are searched.", FILE, required=True)
@option(
    "--against WHAT",
    "A protocol in words as in simulate --sender; omniscient is the bound.",
    SENDER,
    default="cubic,variant=linux",
)
@option(
    "--transport TRANSPORT", "What carries the table, as in simulate; for instance tcp.", TRANSPORT
)
@option("--networks N", "Networks to try in all rounds.", SPECIMEN_COUNT, default=512)
@option("--rounds N", "Rounds, each around the worst networks so far.", ROUNDS, default=8)
@option("--runs N", "Runs of each network.", SPECIMEN_COUNT, default=4)
@option("--find N", "Networks to report.", ROUNDS, default=4)
@option("--fresh-runs N", "Runs of each of these, on fresh draws.", SPECIMEN_COUNT, default=32)
@option("--out -o FILE.yaml", "Write them for design --harden.", FILE)
@option("--on FOUND.yaml", "Search nothing, but measure TABLE on the networks of this file.", FILE)
@seed_option("Names the search and all draws.")
@time_unit_option
@threads_option
@quiet_option
@json_option
def attack_command(
    remycc_path: str,
    spec: str,
    against: Words,
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
    """Find the networks of a specification where TABLE loses most against a protocol.

    A loss is the protocol's score less the table's, in the specification's objective, where either
    runs on all of the network's designed senders with the same draws. What was found is measured
    again on fresh draws; design --harden designs for it.
    """
    if against.remycc is not None or against.count != 1 or against.rtt_ms is not None:
        raise click.UsageError(f"--against {against.name} must be a protocol, and nothing else")
    if networks < rounds:
        raise click.UsageError(f"--networks {networks} are too few for {several(rounds, 'round')}")

    def on_round(number: int, worst: float) -> None:
        if not quiet and not as_json:
            say(f"round {number} of {rounds}: worst loss {worst:.4g}")

    found = rf.attack(
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
        found.save(out)
    if as_json:
        print_json({**found.to_dict(), "written": out})
    else:
        _print_attack(found.result, found.against, out)


def _print_attack(result: AttackResult, rival: str, out: str | None) -> None:
    table = PlainTable("network", "loss", "score", f"score of {rival}", left=1)
    for each in result.found:
        table.add_row(
            each.words, with_error(each.loss), with_error(each.score), with_error(each.rival_score)
        )
    print_table(table)
    note = "Below zero the table is better. The draws are those of no search."
    if result.spread is not None:
        note += f" Mean loss over the networks of the first round: {with_error(result.spread)}."
    print_note(note)
    if out is not None:
        say(f"the networks are in {out}")
