"""Whether a table is robust: the gate of `inspect --certify` and `design --certify`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remy_services.cli.common import (
    PlainTable,
    local_evaluator,
    option,
    print_json,
    print_table,
    say,
)
from remy_services.cli.failures import ExitCode, Failure
from remy_services.cli.reproduce import CELLS, FOLDER, entrant_of, make_folder, meter
from remy_services.files import write_file

if TYPE_CHECKING:
    from remy_services.studies.robustness import Certificate

robustness_option = option(
    "--robustness DIR",
    "Requirements for --certify, a file each.",
    FOLDER,
    default="examples/robustness",
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

    Raises UsageError where there is none, FileError and SpecError.
    """
    from remy_services.remycc import read_remycc
    from remy_services.studies.cells import CellRunner, CellStore
    from remy_services.studies.robustness import certificate_files, certify, read_requirements

    asked = read_requirements(requirements)
    if not asked:
        raise click.UsageError(
            f"--robustness {requirements} has no requirements: files that end in .yaml"
        )
    entrant = entrant_of(remycc_path, time_unit_ms)
    table = read_remycc(remycc_path, time_unit_ms).to_message()
    make_folder(out)
    with local_evaluator(threads) as evaluator, closing(CellStore(out / CELLS)) as store:
        runner = CellRunner(evaluator.evaluate, store)
        with meter(1.0, quiet=quiet) as shown:
            shown.work("robustness")
            certificate = certify(asked, entrant, table, runner, shown.advance)
    for name, text in certificate_files(certificate).items():
        make_folder((out / name).parent)
        write_file(out / name, text)
    return certificate


def show_certificate(certificate: Certificate, out: Path, *, as_json: bool) -> None:
    """What `inspect --certify` prints. Raises Failure where the table is refused."""
    from remy_services.studies.robustness import certificate_tree

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
