"""What a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from remy_services.report.gain import Gain
from remy_services.report.history import History
from remy_simulator import RuleTable

REPORT_HTML = "report.html"
SCORE_PNG = "score.png"
THROUGHPUT_DELAY_PNG = "throughput-delay.png"
REPORT_FILES = (REPORT_HTML, SCORE_PNG, THROUGHPUT_DELAY_PNG)


@dataclass(frozen=True, slots=True)
class ReportContent:
    """One finished design."""

    name: str
    spec_yaml: str
    seed: int
    versions: Mapping[str, str]
    """Of what made the design, by name."""
    history: History
    table: RuleTable
    """The design's result."""
    gain: Gain
    files: Sequence[str]
    """Names of the files beside the report, in the order to show them."""
