"""`remy-farm export`: RemyCCs for other programs."""

from __future__ import annotations

from pathlib import Path

import click

import remy_farm as rf
from remy_cli.common import (
    FILE,
    SPECIMEN_COUNT,
    PlainTable,
    json_option,
    option,
    print_json,
    print_table,
    seed_option,
    threads_option,
    time_unit_option,
)
from remy_cli.evaluate import SUMMARY_HEAD, summary_cells, summary_tree
from remy_farm.analysis import (
    ExportError,
    estimate_tree,
    several,
    with_error,
)
from remy_farm.remycc import RemyCCError, check_remycc_name

DEADBAND = click.IntRange(0, 1_000_000)


@click.command("export")
@option("--dna FILE", "The scale-free RemyCC to write as absolute rules, a .json file.", FILE)
@option("--c FILE", "The RemyCC to write as a C header.", FILE, name="for_c")
@option("--ebpf FILE", "The RemyCC to write as congestion control of Linux.", FILE, name="for_ebpf")
@option("--name NAME", "What Linux is to call it: up to 15 letters, digits and _.")
@option(
    "--out -o PATH",
    "The .dna or .json file, the header, or the folder of --ebpf.",
    click.Path(),
    required=True,
)
@option(
    "--spec SPEC.yaml",
    "What it was designed for; spec.yaml beside the RemyCC unless given.",
    FILE,
    name="spec_path",
)
@option(
    "--cells N", "Cells of the measured interval to an octave.", click.IntRange(1, 16), default=2
)
@option(
    "--climb-steps N",
    "Steps of a climb of the exported rules, the copies of one together.",
    click.IntRange(0, 100_000),
    default=0,
)
@option("--specimens N", "Networks to measure the loss on.", SPECIMEN_COUNT, default=64)
@seed_option("Names these networks, as evaluate does.")
@option(
    "--deadband-us D",
    "RTTs up to this above the smallest count as it; for tables designed with exact clocks.",
    DEADBAND,
    default=0,
)
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
    time_unit_ms: float,
    threads: int,
    as_json: bool,
) -> None:
    """Write a RemyCC for other programs.

    --dna: a scale-free RemyCC as one with absolute rules, which a .dna file can hold. Its rules are
    repeated for each cell of the interval between packets that senders measure on the
    specification's networks; each copy acts like the original somewhere in its cell, at the
    median RTT. Where is chosen on networks of another seed; what the export costs in score is
    measured on those that evaluate draws. With --climb-steps the copies of a rule are moved
    together towards what scores best as an export; a step has 64 simulations of other networks.

    --c: any RemyCC as one C header, which needs no other and computes in 64-bit integers; for
    transports in user space. --ebpf: the same as congestion control of Linux: source, a manifest,
    and the compiled object if clang is there. docs/how-to/kernel.md says how they are used.
    """
    if sum(source is not None for source in (dna, for_c, for_ebpf)) != 1:
        raise click.UsageError("one of --dna, --c and --ebpf names the RemyCC")
    if (for_ebpf is None) != (name is None):
        raise click.UsageError("--ebpf and --name go together")
    if dna is not None:
        _export_dna(dna, out, spec_path, cells, climb_steps, specimens, seed, threads, as_json)
        return
    source = for_c or for_ebpf
    assert source is not None
    kept = Path(source).with_name("spec.yaml")
    is_known = name is not None and (spec_path is not None or kept.exists())
    written = rf.export(
        rf.load_table(Path(source), time_unit_ms=time_unit_ms),
        out,
        name=name,
        spec=rf.load_spec(spec_path or kept) if is_known else None,
        deadband_us=deadband_us,
    )
    if as_json:
        print_json(written.to_dict())
        return
    click.echo(f"{several(written.rules, 'rule')} in {out}.")
    if name is not None and written.object is None:
        click.echo("There is no clang, so that it is not compiled yet.")


def _export_dna(
    source: str,
    out: str,
    spec_path: str | None,
    cells: int,
    climb_steps: int,
    specimens: int,
    seed: int,
    threads: int,
    as_json: bool,
) -> None:
    kept = Path(source).with_name("spec.yaml")
    if spec_path is None and not kept.exists():
        raise click.UsageError(f"--spec is needed: {source} has no spec.yaml beside it")
    check_remycc_name(out)
    spec, own = rf.load_spec(spec_path or kept), rf.load_table(Path(source))
    try:
        exported = own.absolute(
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
                "scale_free": summary_tree(loss.scale_free),
                "exported": summary_tree(loss.exported),
                **estimate_tree(loss.difference, "score_difference_mean"),
                "seed": seed,
            }
        )
        return
    table = PlainTable("", "rules", "specimens", *SUMMARY_HEAD, left=1)
    table.add_row("scale-free", str(len(own)), *summary_cells(loss.scale_free))
    table.add_row("exported", str(len(absolute)), *summary_cells(loss.exported))
    print_table(table)
    click.echo(f"\nThe score changed by {with_error(loss.difference, signed=True)}.")
