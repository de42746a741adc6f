"""Library call that reproduces one figure of a published study."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from remy_farm.api.designing import TemporaryFolder
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like, rows_of
from remy_farm.files import FileError
from remy_farm.shipped import DATA
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.page import measured_rows, verdict_sentence
from remy_laboratory.studies.pictures import draw_figure
from remy_laboratory.studies.study import find_studies, read_study
from remy_laboratory.studies.verdicts import (
    FigureResult,
    measure_figure,
    plan_figure,
    quantity_name,
)

#: Name of the database of simulated cells in a directory.
CELL_DATABASE = "cells.db"


class Reproduction(Tabular):
    """A figure as simulated here, compared with the published values."""

    def __init__(self, result: FigureResult) -> None:
        """Wraps a result; `reproduce` returns one."""
        self.result = result

    @property
    def finding(self) -> str:
        """The verdict, "reproduced" or "differs"."""
        return str(self.result.verdict()[0])

    @property
    def why(self) -> str:
        """The reason, if the figure is not reproduced."""
        return self.result.verdict()[1]

    def rows(self) -> Rows:
        """Returns a row per claim of the study: the quantity with its unit, the measured value, and
        whether the claim holds."""
        kinds = {
            "what": str,
            "claim": str,
            "source": str,
            "value": float,
            "at_least": float,
            "at_most": float,
            "measured": float,
            "standard_error": float,
            "holds": bool,
        }
        return rows_of(kinds, self.to_dict()["expectations"])

    def measures(self) -> Rows:
        """Returns a row per row of the figure, swept value and kind of senders, with its measures.

        A column is a statistic of a measure, such as `throughput_mbps_median` or `rtt_p95_ms_mean`.
        """
        return rows_like(self.to_dict()["rows"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the figure's results as `remy-farm reproduce --json` prints them."""
        return figure_dict(self.result)

    def plot(self) -> Plot:
        """Draws the figure in the study's style. Raises ValueError if the study defines no plot."""
        figure = draw_figure(self.result)
        if figure is None:
            raise ValueError(f"{self.result.study.key} is a table and has no plot")
        return Plot(figure)

    def __repr__(self) -> str:
        return f"Reproduction({self.result.study.key}: {verdict_sentence(self.result)})"


def figure_dict(result: FigureResult) -> dict[str, Any]:
    """Returns a figure's verdict, expectations and measures as a JSON object."""
    return {
        "figure": result.study.key,
        "finding": str(result.verdict()[0]),
        "why": result.verdict()[1],
        "runs": result.runs,
        "expectations": [
            {
                "what": quantity_name(each.expectation.quantity),
                "claim": each.expectation.claim,
                "source": each.expectation.source,
                "value": each.expectation.value,
                "at_least": each.expectation.minimum,
                "at_most": each.expectation.maximum,
                "measured": each.measured,
                "standard_error": each.error,
                "holds": each.holds,
            }
            for each in result.checked
        ],
        "rows": [
            {"row": each.row, "x": each.x, "kind": each.kind, **each.values}
            for each in measured_rows(result)
        ],
    }


def reproduce(
    name: str,
    *,
    quick: bool = False,
    directory: str | os.PathLike[str] | None = None,
    studies: str | os.PathLike[str] = DATA / "studies",
    threads: int | None = None,
) -> Reproduction:
    """Simulates a figure of a published study and compares it with the published values.

    Args:
        name: The figure, e.g. "sigcomm2013/figure-4"; `remy-farm reproduce --list` lists all.
        quick: Use fewer runs and points.
        directory: Directory that keeps the database of simulated cells (runs on one network). A
            later call simulates only the cells that the database lacks. None keeps nothing.
        studies: Directory of studies; by default the installed ones.
        threads: Number of simulation threads; by default the CPUs allowed.

    Returns:
        The figure with its verdict.

    Raises:
        FileError: There is no such figure, or a file that it names cannot be read.
    """
    folder = Path(studies)
    figures = {study.key: study for study in map(read_study, find_studies(folder))}
    if name not in figures:
        raise FileError(f"{folder} has no figure {name!r}; the figures are {', '.join(figures)}")
    temporary = TemporaryFolder()
    target = temporary.path if directory is None else Path(directory)
    with local_evaluator(threads) as evaluator, closing(CellStore(target / CELL_DATABASE)) as store:
        runner = CellRunner(evaluator.evaluate, store)
        plan = plan_figure(figures[name], folder.parent, quick=quick)
        return Reproduction(measure_figure(plan, runner, lambda _: None))
