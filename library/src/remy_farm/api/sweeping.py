"""Sweeps: a design for each combination of values of some settings of a specification."""

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
from remy_farm.analysis.wording import plural
from remy_farm.api.designing import Design, ProgressReporter, TemporaryFolder, load_design
from remy_farm.api.progress import progress_line
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like
from remy_farm.api.spec import Spec, plain
from remy_farm.driver.progress import DesignObserver
from remy_farm.driver.run import with_length
from remy_farm.evaluation.measures import packets_row
from remy_farm.files import FileError
from remy_simulator.cpus import allowed_cpus


class Sweep(Tabular):
    """The finished designs of a sweep, compared on networks that their searches did not use."""

    def __init__(
        self, records: Sequence[MemberRecord], directory: Path, kept: TemporaryFolder | None = None
    ) -> None:
        """`kept` keeps a temporary directory from being removed."""
        #: Records of the members, in order.
        self.records = list(records)
        #: Directory with a folder per member.
        self.directory = directory
        self._kept = kept

    @property
    def names(self) -> list[str]:
        """Names of the members, such as "delta=0.1"."""
        return [record.name for record in self.records]

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, name: str) -> Design:
        """Loads a member's design by its name. Raises KeyError."""
        if name not in self.names:
            raise KeyError(name)
        return load_design(self.directory / name, kept=self._kept)

    def pareto_front(self) -> list[str]:
        """Returns the names of the Pareto-optimal members.

        No other member has at least their median throughput at no more than their median delay
        (TCP ex Machina, section 5.2, compares tables that differ in delta).
        """
        points = [_point(record) for record in self.records]
        best = undominated(points)
        return [record.name for record, is_best in zip(self.records, best, strict=True) if is_best]

    def rows(self) -> Rows:
        """Returns a row per member: its settings, and its results on fresh networks."""
        front = set(self.pareto_front())
        paths = [*self.records[0].settings] if self.records else []
        names = labels(tuple(SweptSetting(path, ()) for path in paths))
        return rows_like([_row(record, paths, names, front) for record in self.records])

    def plot(self) -> Plot:
        """Draws throughput against delay: a point per member, and the Pareto front."""
        from remy_farm.analysis.plots import draw_members

        return Plot(draw_members(self.records))

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        shown = [
            member_cells(number, record) for number, record in enumerate(self.records, start=1)
        ]
        return MEMBER_HEAD[1:], [row[1:] for row in shown]

    def __repr__(self) -> str:
        head, rows = self._head_and_cells()
        title = f"{plural(len(self), 'design')} in {self.directory}"
        return "\n".join([title, *wording.aligned(head, rows)])

    def _repr_html_(self) -> str:
        head, rows = self._head_and_cells()
        return wording.table(plural(len(self), "design"), head, rows)


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
        **packets_row(comparison.packets),
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
        reporter = ProgressReporter(member.spec, None, line)
        try:
            yield reporter
        finally:
            reporter.close()


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
    """Makes a design for each combination of values of some settings, and compares the tables.

    Args:
        spec: The specification that the designs have in common.
        settings: Values by path, as in `{"objective.delta": [0.1, 1, 10]}`; the last setting
            changes fastest.
        seconds: CPU time of the simulations of each design, s; see `design`.
        steps: Length of each design's schedule, in place of `seconds`.
        directory: Directory to store the designs in, a folder each; finished designs in it are
            skipped. None: a temporary folder, removed with the result.
        threads: Number of threads that simulate; by default one per allowed CPU.
        progress: Whether to show a progress line on standard error; by default only if that is a
            terminal or a notebook.

    Returns:
        The designs and their comparison.

    Raises:
        SpecError: A path does not exist, or a value is not allowed.
        FileError: The directory holds other files, or cannot be written.
        KeyboardInterrupt: The sweep was interrupted; with a directory, the same call resumes it.
    """
    swept = [SweptSetting(path, tuple(plain([*values]))) for path, values in settings.items()]
    members = [
        replace(member, spec=with_length(member.spec, seconds=seconds, steps=steps))
        for member in members_of(spec.tree, swept, source=spec.source, folder=spec.folder)
    ]
    kept = None
    if directory is None:
        kept = TemporaryFolder()
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
    """Loads the finished designs that `sweep` or `remy-farm design --sweep` has stored.

    Raises FileError.
    """
    path = Path(directory) / CAMPAIGN_JSON
    if not path.exists():
        raise FileError(f"{path.parent} holds no sweep ({path.name} is missing)")
    return Sweep(CampaignRecord.read(path).all(), path.parent)
