"""Writing a design's report: two plots and a page that holds them."""

from __future__ import annotations

import os
from pathlib import Path

from remy_services.files import write_file
from remy_services.report import page, style
from remy_services.report.content import (
    REPORT_HTML,
    SCORE_PNG,
    THROUGHPUT_DELAY_PNG,
    ReportContent,
)
from remy_services.report.score_plot import plot_score
from remy_services.report.throughput_delay_plot import Cloud, plot_throughput_delay
from remy_services.report.trial import Trial


def write_report(folder: str | os.PathLike[str], content: ReportContent) -> None:
    """Writes REPORT_FILES into the folder, each in one step. Raises FileError."""
    score_png = plot_score(content.history)
    throughput_delay_png = plot_throughput_delay(
        [
            Cloud("first table", style.FIRST, _points(content.gain.first)),
            Cloud("RemyCC", style.FINAL, _points(content.gain.final)),
        ]
    )
    html = page.render(content, score_png=score_png, throughput_delay_png=throughput_delay_png)
    write_file(Path(folder) / SCORE_PNG, score_png)
    write_file(Path(folder) / THROUGHPUT_DELAY_PNG, throughput_delay_png)
    write_file(Path(folder) / REPORT_HTML, html)


def _points(trial: Trial) -> list[tuple[float, float]]:
    """(delay over RTT, throughput over link rate) of specimens in which packets were received."""
    return [
        (measures.delay_over_rtt, measures.throughput_over_link_rate)
        for measures in (result.measures for result in trial.results)
        if measures.delay_over_rtt is not None and measures.throughput_over_link_rate is not None
    ]
