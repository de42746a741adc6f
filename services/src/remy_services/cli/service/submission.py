"""What a specification's file and its sweeps ask a coordinator for."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.spec import load_spec, load_tree

_LONGEST_NAME = 200
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def submissions(
    path: str, *, sweeps: Sequence[str], name: str | None, priority: int, weight: float | None
) -> list[messages.SubmitJobRequest]:
    """A request for each combination of the sweeps' values; one if there are none.

    The requests of a sweep share a campaign's name that no other sweep has. Raises SpecError or
    FileError.
    """
    if not sweeps:
        spec = load_spec(path)
        return [
            messages.SubmitJobRequest(spec=spec, name=name or "", priority=priority, weight=weight)
        ]
    # Campaigns are also compared, and what compares takes long to import.
    from remy_services.campaign import members_of, parse_sweep

    members = members_of(load_tree(path), [parse_sweep(each) for each in sweeps], source=path)
    base = name or members[0].spec.name
    campaign = f"{base[: _LONGEST_NAME - 7]}-{secrets.token_hex(3)}"
    return [
        messages.SubmitJobRequest(
            spec=member.spec,
            name=_member_name(base, member.name, number),
            priority=priority,
            weight=weight,
            campaign=campaign,
            client_request_id=f"{campaign}/{number}",
        )
        for number, member in enumerate(members, start=1)
    ]


def _member_name(base: str, settings: str, number: int) -> str:
    """As in "demo_delta-0.1_seed-2"; numbered where that is too long."""
    words = [_NOT_IN_NAMES.sub("-", setting) for setting in settings.split(",")]
    name = "_".join([base, *words])
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{base[: _LONGEST_NAME - 6]}_{number}"
