"""`remy-farm design --sweep`: a design for each combination of settings, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from remy_services.campaign import CampaignRecord, Member, MemberRecord, compare_member
from remy_services.campaign.page import render
from remy_services.cli.campaign_table import print_members
from remy_services.cli.design_result import finish_design, reason_name
from remy_services.cli.design_views import shown_progress
from remy_services.cli.output import print_json
from remy_services.embedded import DesignResult, DesignRun, OutDirectory
from remy_services.evaluation import LocalEvaluator
from remy_services.files import FileError, write_file
from remy_services.report.wording import several
from remy_services.spec import content_digest

CAMPAIGN_JSON = "campaign.json"
CAMPAIGN_HTML = "campaign.html"
CAMPAIGN_PNG = "campaign.png"


def design_campaign(
    members: Sequence[Member],
    out: Path,
    *,
    threads: int,
    resume: bool,
    quiet: bool,
    as_json: bool,
) -> bool:
    """Designs the members that are not finished, each in its own folder of `out`, and compares all.

    False if it was interrupted. Raises what DesignRun raises.
    """
    path = out / CAMPAIGN_JSON
    if path.exists() and not resume:
        raise FileError(f"{out} already holds a campaign; resume it, or choose another directory")
    campaign = CampaignRecord.read(path)
    for number, member in enumerate(members, start=1):
        folder = out / member.name
        digest = content_digest(member.spec)
        is_finished = (
            campaign.finished(member.name, digest) is not None
            and OutDirectory(folder).remycc_json.exists()
        )
        if not quiet:
            state = ": finished already" if is_finished else ""
            _say(f"{member.name}, {number} of {several(len(members), 'design')}{state}")
        if is_finished:
            continue
        with shown_progress(quiet=quiet) as observer:
            result = DesignRun(member.spec, folder, threads=threads, resume=resume).run(observer)
        if result.reason is None:
            return False
        try:
            finish_design(result.spec, str(folder), result, threads=threads, quiet=quiet)
            campaign.add(_record(member, digest, result, threads))
        except KeyboardInterrupt:
            return False
        campaign.write(path)
    records = campaign.of([member.name for member in members])
    _write_page(members[0].spec.name, records, out)
    if as_json:
        print_json(CampaignRecord({record.name: record for record in records}).tree())
    else:
        print_members(records)
        click.echo(
            f"\nIn {out}: {CAMPAIGN_HTML}, {CAMPAIGN_PNG}, {CAMPAIGN_JSON}, a folder each design"
        )
    return True


def _record(member: Member, digest: str, result: DesignResult, threads: int) -> MemberRecord:
    assert result.reason is not None
    with closing(LocalEvaluator(threads)) as evaluator:
        comparison = compare_member(result.spec, result.table, evaluate=evaluator.evaluate)
    return MemberRecord(
        name=member.name,
        settings=dict(member.settings),
        spec_digest=digest,
        reason=reason_name(result.reason),
        steps=result.steps,
        epochs=len(result.epochs),
        rules=result.table.rule_count,
        cpu_seconds=result.cpu_seconds,
        wall_seconds=result.wall_seconds,
        comparison=comparison,
    )


def _write_page(name: str, records: Sequence[MemberRecord], out: Path) -> None:
    # matplotlib takes longer to import than a short command takes to run.
    from remy_services.campaign.picture import plot_members

    picture = plot_members(records)
    write_file(out / CAMPAIGN_PNG, picture)
    write_file(out / CAMPAIGN_HTML, render(name, records, picture_png=picture))


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)
