"""Pages of what figures came to: ours beside the paper's, a verdict for each, and files of data."""

from __future__ import annotations

import csv
import hashlib
import html
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from remy_farm.analysis import wording
from remy_farm.evaluation.measures import Estimate
from remy_farm.files import write_file
from remy_laboratory.studies.pictures import draw_figure, pictures_of
from remy_laboratory.studies.study import Measure, Statistic
from remy_laboratory.studies.verdicts import (
    STATISTICS,
    Checked,
    FigureResult,
    FigureVerdict,
    quantity_name,
)

#: What files of data say of each row at each value of what is varied.
_COLUMNS: Sequence[tuple[Measure, Statistic]] = (
    (Measure.THROUGHPUT_MBPS, Statistic.MEAN),
    (Measure.THROUGHPUT_MBPS, Statistic.MEDIAN),
    (Measure.THROUGHPUT_MBPS, Statistic.DEVIATION),
    (Measure.RTT_MS, Statistic.MEAN),
    (Measure.RTT_MS, Statistic.MEDIAN),
    (Measure.QUEUEING_DELAY_MS, Statistic.MEDIAN),
    (Measure.OBJECTIVE, Statistic.MEAN),
    (Measure.OBJECTIVE_OVER_LINK, Statistic.MEAN),
    (Measure.UTILIZATION, Statistic.MEAN),
    (Measure.JAIN, Statistic.MEAN),
    (Measure.LOSS, Statistic.MEAN),
    (Measure.COMPLETION_MS, Statistic.MEDIAN),
    (Measure.COMPLETION_MS, Statistic.PERCENTILE_95),
)


def to_csv(result: FigureResult) -> str:
    """A line for each row, value of what is varied, and kind of senders; numbers are exact."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    varied = result.study.sweep.field if result.study.sweep else "x"
    names = [f"{measure}_{statistic}" for measure, statistic in _COLUMNS]
    writer.writerow(["row", varied, "kind", "runs", *names])
    for name, row in result.rows.items():
        kinds = range(len(row.row.senders)) if len(row.row.senders) > 1 else [None]
        for cell in row.cells:
            for kind in kinds:
                values = []
                for measure, statistic in _COLUMNS:
                    samples = cell.values(measure, kind)
                    values.append(repr(STATISTICS[statistic](samples)) if samples else "")
                x = "" if cell.x is None else repr(cell.x)
                words = "" if kind is None else row.row.senders[kind].name
                writer.writerow([name, x, words, result.runs, *values])
    return buffer.getvalue()


def write_figure(folder: Path, result: FigureResult) -> list[str]:
    """Data and pictures of one figure; the names of its pictures. Raises FileError."""
    study = result.study
    place = folder / study.study
    if not result.rows:
        return []
    place.mkdir(parents=True, exist_ok=True)
    write_file(place / f"{study.name}.csv", to_csv(result))
    figure = draw_figure(result)
    if figure is None:
        return []
    names = []
    for suffix, content in pictures_of(figure).items():
        write_file(place / f"{study.name}{suffix}", content)
        names.append(f"{study.study}/{study.name}{suffix}")
    return names


def data_digest(results: Sequence[FigureResult]) -> str:
    """SHA-256 of all data together: what `LC_ALL=C sha256sum */*.csv | sha256sum` prints where
    `write_figure` wrote them."""
    files = {
        f"{result.study.study}/{result.study.name}.csv": to_csv(result).encode()
        for result in results
        if result.rows
    }
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _number(value: float | None) -> str:
    return wording.number(value, 3)


def _expected(each: Checked) -> str:
    expectation = each.expectation
    value, least, most = expectation.value, expectation.least, expectation.most
    if value is not None and most is not None:
        margin = f"{100 * (most - value) / abs(value):.3g} %" if value else _number(most)
        return f"{_number(value)}, within {margin}"
    words = []
    if least is not None:
        words.append(f"at least {_number(least)}")
    if most is not None:
        words.append(f"at most {_number(most)}")
    return ", ".join(words)


def _difference(each: Checked) -> str:
    value, measured = each.expectation.value, each.measured
    if value is None or measured is None:
        return ""
    if value == 0:
        return f"{measured:+.2g}"
    return f"{100 * (measured - value) / abs(value):+.1f} %"


def _outcome(each: Checked) -> str:
    return {True: "yes", False: "no", None: "not measured"}[each.holds]


CHECKED_HEAD = ("what", "found by", "theirs", "ours", "difference", "comes out")


def _measured(each: Checked) -> str:
    if each.measured is None:
        return "-"
    return wording.with_error(Estimate(each.measured, each.error, 1))


def checked_cells(each: Checked) -> tuple[str, ...]:
    """As CHECKED_HEAD says."""
    what = each.expectation.claim or quantity_name(each.expectation.quantity)
    return (
        what,
        each.expectation.source,
        _expected(each),
        _measured(each),
        _difference(each),
        _outcome(each),
    )


def verdict_sentence(result: FigureResult) -> str:
    """The verdict with its reason, or with how much of what it is held to."""
    finding, why = result.verdict()
    if finding != FigureVerdict.REPRODUCED:
        return f"{finding} {why.rstrip('.')}"
    known = [each for each in result.checked if each.holds is not None]
    numbers = sum(each.expectation.value is not None for each in known)
    held = []
    if numbers:
        held.append(wording.several(numbers, "number"))
    if len(known) > numbers:
        held.append(wording.several(len(known) - numbers, "claim"))
    return f"{finding}: {' and '.join(held)}"


def counts_sentence(results: Sequence[FigureResult]) -> str:
    """How many of each verdict, as README and page state it."""
    counts = Counter(result.verdict()[0] for result in results)
    numbers = [
        each
        for result in results
        for each in result.checked
        if each.expectation.value is not None and each.holds is not None
    ]
    return (
        f"Of {len(results)} figures and tables {counts[FigureVerdict.REPRODUCED]} are reproduced, "
        f"{counts[FigureVerdict.DIFFERS]} differ, and "
        f"{counts[FigureVerdict.NOT_REPRODUCIBLE]} cannot be reproduced; of {len(numbers)} "
        f"published numbers {sum(bool(each.holds) for each in numbers)} come out."
    )


def _runs_sentence(result: FigureResult, *, quick: bool) -> str:
    (full,) = result.study.runs.full
    words = f"{wording.several(result.runs, 'run')} of {result.study.seconds:g} s"
    if quick and full != result.runs:
        words += f" (--quick; {full:g} without)"
    return words


def html_page(
    results: Sequence[FigureResult], *, quick: bool, pictures: Mapping[str, bytes]
) -> str:
    """One page that loads nothing else; pictures by the figure's key."""
    sections = [
        "<h1>Studies, reproduced</h1>",
        wording.paragraph(counts_sentence(results), "lead"),
        wording.table(
            "Verdicts",
            ("study", "figure", "verdict"),
            [
                (result.study.study, result.study.title, verdict_sentence(result))
                for result in results
            ],
            text=3,
        ),
    ]
    for result in results:
        study = result.study
        sections.append(f"<h2>{html.escape(study.key)}: {html.escape(study.title)}</h2>")
        sections.append(wording.paragraph(verdict_sentence(result), "lead"))
        for text in (study.about, study.instead, f"Source: {study.source}."):
            if text:
                sections.append(wording.paragraph(text))
        if result.rows:
            sections.append(wording.paragraph(_runs_sentence(result, quick=quick), "soft"))
        if study.key in pictures:
            sections.append(
                wording.figure(pictures[study.key], description=study.title, caption=study.title)
            )
        if result.checked:
            rows = [checked_cells(each) for each in result.checked]
            sections.append(wording.table("Theirs and ours", CHECKED_HEAD, rows, text=2))
        for name, why in result.left_out.items():
            sections.append(wording.paragraph(f"{name} is left out: {why}.", "soft"))
    return wording.document(title="Studies, reproduced", sections=sections)


# The page in the repository.


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), "|" + "---|" * len(head), *(line(row) for row in rows)]


def markdown_page(
    results: Sequence[FigureResult],
    *,
    quick: bool,
    command: str,
    pictures: Sequence[tuple[str, str]],
) -> str:
    """Verdicts and numbers as Markdown; pictures are (title, file)."""
    lines = [
        "# Evidence",
        "",
        "What studies of congestion control found, and what comes out here, written by",
        "",
        f"    {command}",
        "",
        "from [studies as data](../reference/studies.md). RemyCCs that others published are read",
        "from the folder that `REMY_REFERENCE_DIR` names; *ours* are those of data/remyccs. A",
        "reason for a difference says by what run it was tested, or that it was not.",
        "",
        counts_sentence(results),
        "",
        "Whoever runs the command again has the same bytes, on a farm (`--coordinator`) whose",
        "workers are killed each minute as well, [measured](benchmarks.md#studies-on-farm). The",
        "SHA-256 of all data, as `LC_ALL=C sha256sum */*.csv | sha256sum` prints it in the folder",
        "of `--out`:",
        "",
        f"    {data_digest(results)}",
        "",
    ]
    for title, file in pictures:
        lines += [f"![{title}]({file})", ""]
    lines += ["## Verdicts", ""]
    studies = list(dict.fromkeys(result.study.study for result in results))
    for study in studies:
        here = [result for result in results if result.study.study == study]
        lines += [f"### {study}", ""]
        lines += _markdown_table(
            ("figure", "verdict", "runs"),
            [
                (
                    f"`{result.study.name}` {result.study.title}",
                    verdict_sentence(result)
                    + (f". {result.study.instead}" if result.study.instead else ""),
                    _runs_sentence(result, quick=quick) if result.rows else "",
                )
                for result in here
            ],
        )
        lines.append("")
    lines += ["## Numbers", ""]
    for result in results:
        if result.checked:
            lines += [f"### {result.study.key}", ""]
            lines += _markdown_table(CHECKED_HEAD, [checked_cells(each) for each in result.checked])
            lines.append("")
    return "\n".join(lines)
