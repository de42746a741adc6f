"""Writes pages and data files of figures: simulated and published values, and verdicts."""

from __future__ import annotations

import csv
import hashlib
import html
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from remy_farm.analysis import wording
from remy_farm.evaluation.measures import Estimate
from remy_farm.files import write_file
from remy_laboratory.studies.pictures import draw_figure, figure_files
from remy_laboratory.studies.study import Measure, Statistic
from remy_laboratory.studies.verdicts import (
    STATISTICS,
    CheckedExpectation,
    FigureResult,
    FigureVerdict,
    quantity_name,
)

#: Columns of data files: statistics of measures for each row and swept value.
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
    (Measure.RTT_P50_MS, Statistic.MEAN),
    (Measure.RTT_P95_MS, Statistic.MEAN),
    (Measure.RTT_P99_MS, Statistic.MEAN),
    (Measure.COMPLETION_P50_MS, Statistic.MEAN),
    (Measure.COMPLETION_P95_MS, Statistic.MEAN),
    (Measure.COMPLETION_P99_MS, Statistic.MEAN),
    (Measure.PACKETS_RETRANSMITTED, Statistic.MEAN),
)


@dataclass(frozen=True)
class MeasuredRow:
    """The statistics of one kind of senders in a row of a figure, at one swept value."""

    row: str
    x: float | None
    kind: str
    """The kind of senders; empty if the row has only one."""
    values: Mapping[str, float | None]
    """By measure and statistic, such as `rtt_p95_ms_mean`; None without samples."""


def measured_rows(result: FigureResult) -> Iterator[MeasuredRow]:
    """Yields a row per row of the figure, swept value and kind of senders."""
    for name, row in result.rows.items():
        kinds = range(len(row.row.senders)) if len(row.row.senders) > 1 else [None]
        for cell in row.cells:
            for kind in kinds:
                values = {}
                for measure, statistic in _COLUMNS:
                    samples = cell.values(measure, kind)
                    value = STATISTICS[statistic](samples) if samples else None
                    values[f"{measure}_{statistic}"] = value
                sender = "" if kind is None else row.row.senders[kind].name
                yield MeasuredRow(name, cell.x, sender, values)


def to_csv(result: FigureResult) -> str:
    """Returns CSV with a line per row, swept value and kind of senders; numbers are exact."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    varied = result.study.sweep.field if result.study.sweep else "x"
    names = [f"{measure}_{statistic}" for measure, statistic in _COLUMNS]
    writer.writerow(["row", varied, "kind", "runs", *names])
    for each in measured_rows(result):
        values = ["" if value is None else repr(value) for value in each.values.values()]
        x = "" if each.x is None else repr(each.x)
        writer.writerow([each.row, x, each.kind, result.runs, *values])
    return buffer.getvalue()


def write_figure(folder: Path, result: FigureResult) -> list[str]:
    """Writes a figure's data and plots; returns the names of the plots. Raises FileError."""
    study = result.study
    target = folder / study.study
    if not result.rows:
        return []
    target.mkdir(parents=True, exist_ok=True)
    write_file(target / f"{study.name}.csv", to_csv(result))
    figure = draw_figure(result)
    if figure is None:
        return []
    names = []
    for suffix, content in figure_files(figure).items():
        write_file(target / f"{study.name}{suffix}", content)
        names.append(f"{study.study}/{study.name}{suffix}")
    return names


def data_digest(results: Sequence[FigureResult]) -> str:
    """Returns the SHA-256 of all data.

    It equals the output of `LC_ALL=C sha256sum */*.csv | sha256sum` in the directory of
    `write_figure`.
    """
    files = {
        f"{result.study.study}/{result.study.name}.csv": to_csv(result).encode()
        for result in results
        if result.rows
    }
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _number(value: float | None) -> str:
    return wording.number(value, 3)


def _expected_text(each: CheckedExpectation) -> str:
    expectation = each.expectation
    value, minimum, maximum = expectation.value, expectation.minimum, expectation.maximum
    if value is not None and maximum is not None:
        margin = f"{100 * (maximum - value) / abs(value):.3g} %" if value else _number(maximum)
        return f"{_number(value)}, within {margin}"
    bounds = []
    if minimum is not None:
        bounds.append(f"at least {_number(minimum)}")
    if maximum is not None:
        bounds.append(f"at most {_number(maximum)}")
    return ", ".join(bounds)


def _difference_text(each: CheckedExpectation) -> str:
    value, measured = each.expectation.value, each.measured
    if value is None or measured is None:
        return ""
    if value == 0:
        return f"{measured:+.2g}"
    return f"{100 * (measured - value) / abs(value):+.1f} %"


def _holds_text(each: CheckedExpectation) -> str:
    return {True: "yes", False: "no", None: "not measured"}[each.holds]


CHECKED_COLUMNS = ("quantity", "source", "published", "here", "difference", "reproduced")


def _measured_text(each: CheckedExpectation) -> str:
    if each.measured is None:
        return "-"
    return wording.format_estimate(Estimate(each.measured, each.error, 1))


def checked_cells(each: CheckedExpectation) -> tuple[str, ...]:
    """Returns table cells in the order of CHECKED_COLUMNS."""
    return (
        each.expectation.claim or quantity_name(each.expectation.quantity),
        each.expectation.source,
        _expected_text(each),
        _measured_text(each),
        _difference_text(each),
        _holds_text(each),
    )


def verdict_sentence(result: FigureResult) -> str:
    """Returns the verdict with its reason, or with the numbers of values and claims that hold."""
    finding, why = result.verdict()
    if finding != FigureVerdict.REPRODUCED:
        return f"{finding} {why.rstrip('.')}"
    known = [each for each in result.checked if each.holds is not None]
    numbers = sum(each.expectation.value is not None for each in known)
    parts = []
    if numbers:
        parts.append(wording.plural(numbers, "number"))
    if len(known) > numbers:
        parts.append(wording.plural(len(known) - numbers, "claim"))
    return f"{finding}: {' and '.join(parts)}"


def counts_sentence(results: Sequence[FigureResult]) -> str:
    """Returns the sentence with the number of figures per verdict, as on the page and in README."""
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
    text = f"{wording.plural(result.runs, 'run')} of {result.study.seconds:g} s"
    if quick and full != result.runs:
        text += f" (--quick; {full:g} without)"
    return text


# Statistics on the page, with their column heads.
_SHOWN = {
    "throughput_mbps_mean": "Mbit/s",
    "rtt_ms_mean": "RTT ms",
    "rtt_p50_ms_mean": "50 %",
    "rtt_p95_ms_mean": "95 %",
    "rtt_p99_ms_mean": "99 %",
    "completion_p50_ms_mean": "completion ms, 50 %",
    "completion_p95_ms_mean": "95 %",
    "completion_p99_ms_mean": "99 %",
    "loss_mean": "loss",
    "packets_retransmitted_mean": "retransmitted",
}


def _measures_table(result: FigureResult) -> str:
    varied = result.study.sweep.field if result.study.sweep else ""
    rows = [
        (
            each.row,
            "" if each.x is None else f"{each.x:g}",
            each.kind,
            *(_number(each.values[name]) for name in _SHOWN),
        )
        for each in measured_rows(result)
    ]
    return wording.table(
        "Simulated: means", ("row", varied, "kind", *_SHOWN.values()), rows, text=1
    )


def html_page(
    results: Sequence[FigureResult], *, quick: bool, pictures: Mapping[str, bytes]
) -> str:
    """Returns a self-contained HTML page; `pictures` are PNG plots by the figure's key."""
    sections = [
        "<h1>Reproduced studies</h1>",
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
        if result.rows:
            sections.append(_measures_table(result))
        if result.checked:
            rows = [checked_cells(each) for each in result.checked]
            sections.append(wording.table("Published and here", CHECKED_COLUMNS, rows, text=2))
        for name, why in result.left_out.items():
            sections.append(wording.paragraph(f"{name} is left out: {why}.", "soft"))
    return wording.document(title="Reproduced studies", sections=sections)


# docs/results/evidence.md.


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
    """Returns a Markdown page with verdicts and numbers; `pictures` are (title, file)."""
    lines = [
        "# Evidence",
        "",
        "Published results on congestion control, and the same measurements made here by",
        "",
        f"    {command}",
        "",
        "from [studies as data](../reference/studies.md). RemyCCs that others published are read",
        "from the folder that `REMY_REFERENCE_DIR` names; those called *ours* are in data/remyccs.",
        "A reason for a difference names the run that tested it, or says that it is untested.",
        "",
        counts_sentence(results),
        "",
        "Running the command again gives the same bytes, also on a farm (`--coordinator`) whose",
        "workers are killed every minute, as [measured](benchmarks.md#studies-on-farm).",
        "The SHA-256 of all data, as `LC_ALL=C sha256sum */*.csv | sha256sum` prints it in the",
        "folder of `--out`:",
        "",
        f"    {data_digest(results)}",
        "",
    ]
    for title, file in pictures:
        lines += [f"![{title}]({file})", ""]
    lines += ["## Verdicts", ""]
    studies = list(dict.fromkeys(result.study.study for result in results))
    for study in studies:
        study_results = [result for result in results if result.study.study == study]
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
                for result in study_results
            ],
        )
        lines.append("")
    lines += ["## Numbers", ""]
    for result in results:
        if result.checked:
            lines += [f"### {result.study.key}", ""]
            lines += _markdown_table(
                CHECKED_COLUMNS, [checked_cells(each) for each in result.checked]
            )
            lines.append("")
    return "\n".join(lines)
