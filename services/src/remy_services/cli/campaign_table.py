"""The members of a campaign side by side, for people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from remy_services.campaign import MemberRecord
from remy_services.campaign.page import EXPLANATION, HEAD, cells
from remy_services.cli.output import plain_table, print_table


def print_members(records: Sequence[MemberRecord]) -> None:
    """A row for each member, and what its figures are."""
    table = plain_table(*HEAD, left=2)
    for number, record in enumerate(records, start=1):
        table.add_row(*cells(number, record))
    print_table(table)
    click.echo(f"\n{EXPLANATION}")
