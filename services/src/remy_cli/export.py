"""`remy-farm export`: writes RemyCCs as .dna files, C headers and Linux congestion control."""

from __future__ import annotations

from pathlib import Path

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
    print_table,
    rules_alone_flag,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.evaluate import SUMMARY_COLUMNS, summary_cells, summary_dict
from remy_farm.analysis import (
    ExportError,
    estimate_fields,
    format_estimate,
    plural,
)
from remy_farm.remycc import RemyCCError, check_remycc_name

DEADBAND = click.IntRange(0, 1_000_000)


@click.command(
    "export",
    epilog=examples(
        "remy-farm export --c design/remycc.json --out remy_table.h",
        "remy-farm export --ebpf design/remycc.json --name remy_one --out remy_one",
    ),
)
@option(
    "--dna FILE",
    "Export this scale-free RemyCC (.json) with absolute rules, as .dna or .json.",
    FILE,
)
@option("--c FILE", "Export this RemyCC as a C header.", FILE, name="for_c")
@option("--ebpf FILE", "Export this RemyCC as Linux congestion control.", FILE, name="for_ebpf")
@option("--name NAME", "Name of the algorithm in Linux: up to 15 letters, digits and _.")
@option(
    "--out -o PATH",
    "Output: a .dna or .json file, a header, or a directory for --ebpf.",
    click.Path(),
    required=True,
)
@option(
    "--spec SPEC.yaml",
    "Specification that it was designed for; by default spec.yaml in the RemyCC's directory.",
    FILE,
    name="spec_path",
)
@option(
    "--cells N",
    "With --dna: cells per octave of the measured packet interval.",
    click.IntRange(1, 16),
    default=2,
)
@option(
    "--climb-steps N",
    "With --dna: steps of a search that improves the exported rules' actions.",
    click.IntRange(0, 100_000),
    default=0,
)
@option(
    "--specimens N",
    "Number of networks on which the loss of score is measured.",
    SPECIMEN_COUNT,
    default=64,
)
@seed_option("Seed of these networks, as in evaluate.")
@option(
    "--deadband-us D",
    "Treat RTTs up to D us above the minimum as the minimum; for tables designed with exact "
    "clocks.",
    DEADBAND,
    default=0,
)
@rules_alone_flag
@time_unit_option
@threads_option
@json_option
def command(
    dna: str | None,
    for_c: str | None,
    for_ebpf: str | None,
    name: str | None,
    out: str,
    spec_path: str | None,
    cells: int,
    climb_steps: int,
    specimens: int,
    seed: int,
    deadband_us: int,
    rules_alone: bool,
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Export a RemyCC for other programs.

    --dna converts a scale-free RemyCC to absolute rules, which a .dna file can hold. Every rule is
    copied for each cell of the packet interval that senders measure on the specification's
    networks. Each copy acts like the original at one interval within its cell and at the median
    RTT. That interval is chosen on networks of another seed; the loss of score is then measured on
    the networks that evaluate draws. --climb-steps improves the actions of the exported rules,
    changing all copies of a rule together; each step runs 64 simulations of other networks.

    --c writes any RemyCC as one self-contained C header with 64-bit integer arithmetic, for
    transports in user space. --ebpf writes it as Linux congestion control: the source, a manifest,
    and the compiled object if clang is installed. See docs/how-to/kernel.md.

    These programs have no path model, so a RemyCC with one is refused unless --rules-alone is
    given: its rules were designed to run beside the path model, or were measured with it.
    """
    if sum(source is not None for source in (dna, for_c, for_ebpf)) != 1:
        raise click.UsageError("give exactly one of --dna, --c and --ebpf, with the RemyCC's file")
    if (for_ebpf is None) != (name is None):
        raise click.UsageError("--ebpf and --name must be given together")
    if dna is not None:
        _export_dna(
            dna,
            out,
            spec_path,
            cells,
            climb_steps,
            specimens,
            seed,
            threads,
            rules_alone=rules_alone,
            as_json=as_json,
        )
        return
    source = for_c or for_ebpf
    assert source is not None
    default_spec = Path(source).with_name("spec.yaml")
    has_spec = name is not None and (spec_path is not None or default_spec.exists())
    table = rf.load_table(Path(source), time_unit_ms=time_unit_ms)
    export = rf.export(
        table.without_path_model() if rules_alone else table,
        out,
        name=name,
        spec=rf.load_spec(spec_path or default_spec) if has_spec else None,
        deadband_us=deadband_us,
    )
    if as_json:
        print_json(export.to_dict())
        return
    click.echo(f"{plural(export.rules, 'rule')} in {out}.")
    if name is not None and export.object is None:
        click.echo("The source is not compiled, because clang is not installed.")


def _export_dna(
    source: str,
    out: str,
    spec_path: str | None,
    cells: int,
    climb_steps: int,
    specimens: int,
    seed: int,
    threads: int,
    *,
    rules_alone: bool,
    as_json: bool,
) -> None:
    default_spec = Path(source).with_name("spec.yaml")
    if spec_path is None and not default_spec.exists():
        raise click.UsageError(f"--spec is needed: {source} has no spec.yaml beside it")
    check_remycc_name(out)
    spec, source_table = rf.load_spec(spec_path or default_spec), rf.load_table(Path(source))
    if rules_alone:
        source_table = source_table.without_path_model()
    try:
        exported = source_table.absolute(
            spec,
            cells=cells,
            climb_steps=climb_steps,
            networks=specimens,
            seed=seed,
            threads=threads,
        )
    except ExportError as error:
        raise RemyCCError(f"{source} cannot be exported: {error}") from error
    absolute, loss = exported.table, exported.loss
    absolute.save(out)
    if as_json:
        print_json(
            {
                "rules": len(absolute),
                "scale_free": summary_dict(loss.scale_free),
                "exported": summary_dict(loss.exported),
                **estimate_fields(loss.difference, "score_difference_mean"),
                "seed": seed,
            }
        )
        return
    table = PlainTable("", "rules", "specimens", *SUMMARY_COLUMNS, left=1)
    table.add_row("scale-free", str(len(source_table)), *summary_cells(loss.scale_free))
    table.add_row("exported", str(len(absolute)), *summary_cells(loss.exported))
    print_table(table)
    click.echo(f"\nThe score changed by {format_estimate(loss.difference, signed=True)}.")
