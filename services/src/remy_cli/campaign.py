"""Runs a campaign of designs on this machine, for `remy-farm design --sweep`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from remy_cli.common import print_json, print_status
from remy_cli.design_progress import DesignProgress
from remy_cli.views import print_members, progress_view
from remy_farm.analysis import (
    CAMPAIGN_HTML,
    CAMPAIGN_JSON,
    CAMPAIGN_PNG,
    CampaignObserver,
    Member,
    members_dict,
    plural,
    run_campaign,
)
from remy_farm.driver import DesignObserver

#: Status line while a finished design is evaluated.
COMPARISON_STATUS = "comparing the first table with the last on fresh specimens"


class _CampaignProgress(CampaignObserver):
    """Shows the progress of a campaign whose designs run one after another."""

    def __init__(self, members: int, *, quiet: bool) -> None:
        self._members = members
        self._quiet = quiet

    @contextmanager
    def member(
        self, member: Member, position: int, *, is_finished: bool
    ) -> Iterator[DesignObserver]:
        if not self._quiet:
            state = ": already finished" if is_finished else ""
            print_status(f"{member.name}, {position} of {plural(self._members, 'design')}{state}")
        if is_finished:
            yield DesignObserver()
            return
        with progress_view(quiet=self._quiet) as view:
            yield DesignProgress(member.spec.name, view)

    def comparing(self, member: Member) -> None:
        if not self._quiet:
            print_status(COMPARISON_STATUS)


def design_campaign(
    members: Sequence[Member], out: Path, *, threads: int, resume: bool, quiet: bool, as_json: bool
) -> bool:
    """Runs a campaign and prints its comparison. Returns False if it was interrupted."""
    observer = _CampaignProgress(len(members), quiet=quiet)
    records = run_campaign(members, out, threads=threads, resume=resume, observer=observer)
    if records is None:
        return False
    if as_json:
        print_json(members_dict(records))
    else:
        print_members(records)
        click.echo(
            f"\nIn {out}: {CAMPAIGN_HTML}, {CAMPAIGN_PNG}, {CAMPAIGN_JSON}, and a directory per "
            "design"
        )
    return True
