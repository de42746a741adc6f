"""Sweeping: one specification with some settings varied, a design for each combination."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from remy_farm.analysis import wording
from remy_farm.analysis.campaign import (
    MEMBER_HEAD,
    CampaignRecord,
    Member,
    MemberRecord,
    SweptSetting,
    labels,
    member_cells,
    members_of,
    undominated,
)
from remy_farm.analysis.campaign_run import CAMPAIGN_JSON, CampaignObserver, run_campaign
from remy_farm.analysis.wording import several
from remy_farm.api.designing import Design, DesignTeller, PassingFolder, load_design
from remy_farm.api.progress import progress_line
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like
from remy_farm.api.spec import Spec, plain
from remy_farm.driver.progress import DesignObserver
from remy_farm.driver.run import with_length
from remy_farm.files import FileError
from remy_simulator.cpus import allowed_cpus


class Sweep(Tabular):
    """The designs of a sweep that are finished, compared on networks that none was searched on."""

    def __init__(
        self, records: Sequence[MemberRecord], directory: Path, kept: PassingFolder | None = None
    ) -> None:
        """The members in a directory; `kept` lives as long as that is needed."""
        #: A record of each member, in order.
        self.records = list(records)
        #: Where the members are, in a folder each.
        self.directory = directory
        self._kept = kept

    @property
    def names(self) -> list[str]:
        """The members' names, as "delta=0.1"."""
        return [record.name for record in self.records]

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, name: str) -> Design:
        """A member's design by its name. Raises KeyError."""
        if name not in self.names:
            raise KeyError(name)
        return load_design(self.directory / name, kept=self._kept)

    def pareto_front(self) -> list[str]:
        """Names of the members of which no other has as much throughput at as little delay, both in
        medians (TCP ex Machina, section 5.2: tables that differ in delta)."""
        points = [_point(record) for record in self.records]
        best = undominated(points)
        return [record.name for record, is_best in zip(self.records, best, strict=True) if is_best]

    def rows(self) -> Rows:
        """A row for each member: its settings, and its table on fresh networks."""
        front = set(self.pareto_front())
        paths = [*self.records[0].settings] if self.records else []
        names = labels(tuple(SweptSetting(path, ()) for path in paths))
        return rows_like([_row(record, paths, names, front) for record in self.records])

    def plot(self) -> Plot:
        """Draws throughput against delay: a point for each member, and the Pareto front."""
        from remy_farm.analysis.plots import draw_members

        return Plot(draw_members(self.records))

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        shown = [
            member_cells(number, record) for number, record in enumerate(self.records, start=1)
        ]
        return MEMBER_HEAD[1:], [row[1:] for row in shown]

    def __repr__(self) -> str:
        head, rows = self._head_and_cells()
        title = f"{several(len(self), 'design')} in {self.directory}"
        return "\n".join([title, *wording.aligned(head, rows)])

    def _repr_html_(self) -> str:
        head, rows = self._head_and_cells()
        return wording.table(several(len(self), "design"), head, rows)


def _point(record: MemberRecord) -> tuple[float, float] | None:
    comparison = record.comparison
    if comparison.delay_over_rtt is None or comparison.throughput_over_link_rate is None:
        return None
    return comparison.delay_over_rtt, comparison.throughput_over_link_rate


def _row(
    record: MemberRecord, paths: Sequence[str], names: Sequence[str], front: set[str]
) -> dict[str, Any]:
    comparison = record.comparison
    score, normalized = comparison.score, comparison.normalized_score
    settings = {
        name: _plain(record.settings[path]) for name, path in zip(names, paths, strict=True)
    }
    return {
        "name": record.name,
        **settings,
        "score_mean": None if score is None else score.mean,
        "score_standard_error": None if score is None else score.standard_error,
        "normalized_score_mean": None if normalized is None else normalized.mean,
        "throughput_over_link_rate_median": comparison.throughput_over_link_rate,
        "delay_over_rtt_median": comparison.delay_over_rtt,
        "is_on_pareto_front": record.name in front,
        "rules": record.rules,
        "steps": record.steps,
        "cpu_seconds": record.cpu_seconds,
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)


class _Progress(CampaignObserver):
    """Shows a line of progress for each member."""

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = wanted

    @contextmanager
    def member(
        self, member: Member, position: int, *, is_finished: bool
    ) -> Iterator[DesignObserver]:
        line = None if is_finished else progress_line(member.name, self._wanted)
        teller = DesignTeller(member.spec, None, line)
        try:
            yield teller
        finally:
            teller.close()


def sweep(
    spec: Spec,
    settings: Mapping[str, Iterable[Any]],
    *,
    seconds: float | None = None,
    steps: int | None = None,
    directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Sweep:
    """Designs for each combination of some settings' values, and compares what comes out.

    Args:
        spec: What all have in common.
        settings: Values by path, as in `{"objective.delta": [0.1, 1, 10]}`; the last changes
            fastest.
        seconds: How much CPU time the simulations of each may take, s; see `design`.
        steps: The length of each schedule in its place.
        directory: Where the designs are kept, a folder each; those that are finished there are
            passed over. None: a folder that goes with the result.
        threads: Threads to simulate with; the CPUs allowed unless given.
        progress: Whether a line on standard error shows how far it is; where that is a terminal or
            a notebook unless given.

    Returns:
        The designs, side by side.

    Raises:
        SpecError: A path leads nowhere, or a value may not be there.
        FileError: The directory holds something else, or cannot be written.
        KeyboardInterrupt: It was interrupted; with a directory, the same call goes on.
    """
    swept = [SweptSetting(path, tuple(plain([*values]))) for path, values in settings.items()]
    members = [
        replace(member, spec=with_length(member.spec, seconds=seconds, steps=steps))
        for member in members_of(spec.tree, swept, source=spec.source, folder=spec.folder)
    ]
    kept = None
    if directory is None:
        kept = PassingFolder()
        directory = kept.path
    out = Path(directory)
    records = run_campaign(
        members,
        out,
        threads=threads or allowed_cpus(),
        resume=out.is_dir() and any(out.iterdir()),
        observer=_Progress(progress),
    )
    if records is None:
        raise KeyboardInterrupt
    return Sweep(records, out, kept)


def load_sweep(directory: str | os.PathLike[str]) -> Sweep:
    """The finished designs of a sweep, as `sweep` or `remy-farm design --sweep` has left them.

    Raises FileError.
    """
    path = Path(directory) / CAMPAIGN_JSON
    if not path.exists():
        raise FileError(f"{path.parent} holds no sweep ({path.name} is missing)")
    return Sweep(CampaignRecord.read(path).all(), path.parent)
