"""The comparison of a campaign's members as a table and as one page that loads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from remy_services.campaign.record import MemberRecord
from remy_services.report import html
from remy_services.report.wording import duration, several, with_error
from remy_services.report.wording import number as figure

HEAD = (
    "",
    "member",
    "score",
    "normalized score",
    "throughput / link rate",
    "delay / RTT",
    "rules",
    "CPU time",
)
EXPLANATION = (
    "Scores are means over fresh specimens with standard errors, each by its member's own "
    "objective; the normalized score is log2(throughput / link rate) - log2(delay / RTT) per "
    "sender. Throughput and delay are medians."
)


def cells(number: int, record: MemberRecord) -> tuple[str, ...]:
    """As HEAD says; the picture has the same numbers."""
    comparison = record.comparison
    return (
        str(number),
        record.name,
        with_error(comparison.score),
        with_error(comparison.normalized_score),
        figure(comparison.throughput_over_link_rate),
        figure(comparison.delay_over_rtt),
        str(record.rules),
        duration(record.cpu_seconds),
    )


def render(name: str, records: Sequence[MemberRecord], *, picture_png: bytes) -> str:
    """The page as HTML."""
    css = resources.files("remy_services.report").joinpath("page.css").read_text(encoding="utf-8")
    rows = [cells(number, record) for number, record in enumerate(records, start=1)]
    return html.document(
        title=f"{name}: a campaign",
        css=css,
        sections=[
            f"<h1>{html.escape(name)}</h1>",
            html.paragraph(f"A campaign of {several(len(records), 'design')}.", style="lead"),
            html.figure(
                picture_png,
                description="Scatter plot of throughput over link rate against delay over RTT, a "
                "point for each member.",
                caption="Filled dots, joined by a line: no other member has as much throughput at "
                "as little delay.",
            ),
            html.table("Members", HEAD, rows, text=2),
            html.paragraph(EXPLANATION, style="soft"),
            html.paragraph("Each member's folder holds its RemyCC, its report and its history."),
        ],
    )
