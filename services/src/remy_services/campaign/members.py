"""The designs of a campaign: every combination of the values of its sweeps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import spec_pb2
from remy_services.campaign.sweep import Sweep, labels, value_name
from remy_services.spec import SpecError, Violation, spec_of_tree, vary
from remy_services.spec.text import Tree

_MOST_MEMBERS = 10_000
# Leaves room for the names of files beside it.
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Member:
    """One design of a campaign."""

    #: Also of its folder, as in "delta=0.1,seed=2".
    name: str
    #: (path, value) by sweep.
    settings: tuple[tuple[str, Tree], ...]
    spec: spec_pb2.DesignSpec


def members_of(
    tree: Tree, sweeps: Sequence[Sweep], *, source: str = "the specification"
) -> list[Member]:
    """The Cartesian product of the sweeps of a specification; the last one changes fastest.

    All specifications are checked before any is designed. Raises SpecError, whose source is
    `source` with the member's settings.
    """
    _check(sweeps)
    names = labels(tuple(sweeps))
    members = []
    for values in itertools.product(*(sweep.values for sweep in sweeps)):
        shown = [value_name(value) for value in values]
        name = ",".join(f"{label}={value}" for label, value in zip(names, shown, strict=True))
        settings = tuple((sweep.path, value) for sweep, value in zip(sweeps, values, strict=True))
        varied = tree
        for path, value in settings:
            varied = vary(varied, path, value, source=source)
        members.append(Member(name, settings, spec_of_tree(varied, f"{source} with {name}")))
    return _with_usable_names(members)


def _check(sweeps: Sequence[Sweep]) -> None:
    paths = [sweep.path for sweep in sweeps]
    for index, path in enumerate(paths):
        for other in paths[:index]:
            shorter, longer = sorted((path, other), key=len)
            if f"{longer}.".startswith(f"{shorter}."):
                problem = f"sets what {other} sets, too; sweep either of them"
                raise SpecError("--sweep", [Violation(path, problem)])
    count = math.prod(len(sweep.values) for sweep in sweeps)
    if count > _MOST_MEMBERS:
        problem = f"has {count} combinations of values; at most {_MOST_MEMBERS} are allowed"
        raise SpecError("--sweep", [Violation("", problem)])


def _with_usable_names(members: list[Member]) -> list[Member]:
    """Numbers, where a name would be too long for a folder."""
    if all(len(member.name) <= _LONGEST_NAME for member in members):
        return members
    return [
        Member(f"member-{number}", member.settings, member.spec)
        for number, member in enumerate(members, start=1)
    ]
