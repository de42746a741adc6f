"""Runs a campaign in a directory: designs its members one after another and compares them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Final

from remy_farm.analysis.campaign import (
    CampaignRecord,
    Member,
    MemberRecord,
    compare_member,
    render,
)
from remy_farm.analysis.design_report import report_design
from remy_farm.analysis.wording import enum_name
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import DesignObserver
from remy_farm.driver.run import DesignResult, DesignRun
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.files import FileError, write_file
from remy_farm.specification import content_digest
from remy_proto.v1 import progress_pb2

CAMPAIGN_JSON: Final = "campaign.json"
CAMPAIGN_HTML: Final = "campaign.html"
CAMPAIGN_PNG: Final = "campaign.png"


class CampaignObserver:
    """Base class of observers of a campaign; it shows nothing."""

    def member(
        self, member: Member, position: int, *, is_finished: bool
    ) -> AbstractContextManager[DesignObserver]:
        """Is called for each member in turn; returns the context and observer of its design.

        `position` counts from 1. A finished member is skipped.
        """
        return nullcontext(DesignObserver())

    def comparing(self, member: Member) -> None:
        """Is called when a member's design is finished, before it is compared."""


def run_campaign(
    members: Sequence[Member],
    out: Path,
    *,
    threads: int,
    resume: bool,
    observer: CampaignObserver | None = None,
) -> list[MemberRecord] | None:
    """Designs the members that are not finished, each in its own folder of `out`.

    Returns the records of all members, or None if it was interrupted. Raises FileError and the
    errors of `DesignRun`.
    """
    observer = observer or CampaignObserver()
    path = out / CAMPAIGN_JSON
    _check(out, resume=resume)
    campaign = CampaignRecord.read(path)
    for position, member in enumerate(members, start=1):
        folder = OutDirectory(out / member.name)
        digest = content_digest(member.spec)
        is_finished = (
            folder.remycc_json.exists() and campaign.finished(member.name, digest) is not None
        )
        with observer.member(member, position, is_finished=is_finished) as design_observer:
            if is_finished:
                continue
            resumes = resume and folder.has_run
            run = DesignRun(member.spec, folder.path, threads=threads, resume=resumes)
            result = run.run(design_observer)
        if result.reason is None:
            return None
        observer.comparing(member)
        try:
            campaign.add(_record(member, digest, folder, result, threads))
        except KeyboardInterrupt:
            return None
        campaign.write(path)
    records = campaign.records_of([member.name for member in members])
    _write_page(members[0].spec.name, records, out)
    return records


def _check(out: Path, *, resume: bool) -> None:
    """Raises FileError unless a campaign can start in `out`, or be resumed with `resume`."""
    if (out / CAMPAIGN_JSON).exists() and not resume:
        raise FileError(f"{out} already holds a campaign; resume it, or choose another directory")
    is_empty = not out.is_dir() or not any(out.iterdir())
    if resume and is_empty:
        raise FileError(f"{out} holds no campaign to resume; omit --resume to start one")
    if not (resume or is_empty):
        raise FileError(
            f"{out} holds other files, or a campaign without its first design; resume it, or "
            f"choose a directory that is new or empty"
        )


def _record(
    member: Member, digest: str, folder: OutDirectory, result: DesignResult, threads: int
) -> MemberRecord:
    with closing(LocalEvaluator(threads)) as evaluator:
        report_design(folder, result, evaluate=evaluator.evaluate)
        comparison = compare_member(
            result.spec, [*result.tables.values()], evaluate=evaluator.evaluate
        )
    return MemberRecord(
        name=member.name,
        settings=dict(member.settings),
        spec_digest=digest,
        reason=enum_name(progress_pb2.StopReason.DESCRIPTOR, result.reason or 0) or "",
        steps=result.steps,
        epochs=len(result.epochs),
        rules=result.table.rule_count,
        cpu_seconds=result.cpu_seconds,
        wall_seconds=result.wall_seconds,
        comparison=comparison,
    )


def _write_page(name: str, records: Sequence[MemberRecord], out: Path) -> None:
    # matplotlib takes longer to import than a short command takes to run.
    from remy_farm.analysis.plots import plot_members

    picture = plot_members(records)
    write_file(out / CAMPAIGN_PNG, picture)
    write_file(out / CAMPAIGN_HTML, render(name, records, picture_png=picture))
