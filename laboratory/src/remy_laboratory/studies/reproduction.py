"""One figure of a published study, made and compared, for programs and notebooks."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from remy_farm.api.designing import PassingFolder
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.files import FileError
from remy_farm.shipped import DATA
from remy_laboratory.studies.cells import CellRunner, CellStore
from remy_laboratory.studies.page import verdict_sentence
from remy_laboratory.studies.pictures import draw_figure
from remy_laboratory.studies.study import find_studies, read_study
from remy_laboratory.studies.verdicts import (
    FigureResult,
    measure_figure,
    plan_figure,
    quantity_name,
)

#: In a directory: what has been simulated.
CELLS = "cells.db"


class Reproduction(Tabular):
    """A study's figure as measured here, compared with the published values."""

    def __init__(self, result: FigureResult) -> None:
        """Wraps the results in messages; call `reproduce` to get a figure."""
        self.result = result

    @property
    def finding(self) -> str:
        """The verdict, "reproduced" or "differs"."""
        return str(self.result.verdict()[0])

    @property
    def why(self) -> str:
        """The reason, where it is not reproduced."""
        return self.result.verdict()[1]

    def rows(self) -> Rows:
        """A row for each of the study's claims: what it is about, what was measured, whether it
        holds. Units are in `what`."""
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

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `remy-farm reproduce --json` prints it of a figure."""
        return figure_tree(self.result)

    def plot(self) -> Plot:
        """Draws the figure as the study has it. Raises ValueError where it has no picture."""
        figure = draw_figure(self.result)
        if figure is None:
            raise ValueError(f"{self.result.study.key} is a table, and has no picture")
        return Plot(figure)

    def __repr__(self) -> str:
        return f"Reproduction({self.result.study.key}: {verdict_sentence(self.result)})"


def figure_tree(result: FigureResult) -> dict[str, Any]:
    """A figure's verdict and its expectations, as JSON has them."""
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
                "at_least": each.expectation.least,
                "at_most": each.expectation.most,
                "measured": each.measured,
                "standard_error": each.error,
                "holds": each.holds,
            }
            for each in result.checked
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
    """Makes a figure of a published study again, and compares it with what is printed there.

    Args:
        name: The figure, as "sigcomm2013/figure-4"; `remy-farm reproduce --list` has all.
        quick: Fewer runs and points.
        directory: Where simulated cells are kept, and not simulated again; nowhere unless given.
        studies: The folder of studies; those that are installed unless given.
        threads: Threads to simulate with; the CPUs allowed unless given.

    Returns:
        The figure with its verdict.

    Raises:
        FileError: There is no such figure, or a file that it names cannot be read.
    """
    folder = Path(studies)
    found = {study.key: study for study in map(read_study, find_studies(folder))}
    if name not in found:
        raise FileError(f"{folder} has no figure {name!r}; there are {', '.join(found)}")
    kept = PassingFolder()
    place = kept.path if directory is None else Path(directory)
    with local_evaluator(threads) as evaluator, closing(CellStore(place / CELLS)) as store:
        runner = CellRunner(evaluator.evaluate, store)
        plan = plan_figure(found[name], folder.parent, quick=quick)
        return Reproduction(measure_figure(plan, runner, lambda _: None))
