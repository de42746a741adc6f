"""The report as one page that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources

from remy_services.remycc import readable_rules
from remy_services.report import html
from remy_services.report.content import ReportContent
from remy_services.report.history import EpochPoint
from remy_services.report.rules import ACTION_HEAD, action_cells, region_cells, use_cell
from remy_services.report.wording import (
    count,
    duration,
    finished_sentence,
    number,
    several,
    with_error,
)

# Tables longer than this show their most telling rows only.
_MOST_ROWS = 40


def render(content: ReportContent, *, score_png: bytes, throughput_delay_png: bytes) -> str:
    """The page as HTML."""
    css = resources.files("remy_services.report").joinpath("page.css").read_text(encoding="utf-8")
    return html.document(
        title=f"{content.name}: a RemyCC",
        css=css,
        sections=_sections(content, score_png, throughput_delay_png),
    )


def _sections(content: ReportContent, score_png: bytes, delay_png: bytes) -> Iterator[str]:
    yield f"<h1>{html.escape(content.name)}</h1>"
    yield html.paragraph(_verdict(content), style="lead")
    yield html.figures(_figures(content))
    yield "<h2>What it gained</h2>"
    yield html.figure(
        delay_png,
        description=_throughput_delay_description(content),
        caption=(
            f"The first table and the RemyCC on the same {content.gain.final.summary().specimens} "
            "fresh specimens, a point each: means over the senders that received packets. Ellipses "
            "are one standard deviation, large dots medians. Up and to the right is better."
        ),
    )
    yield "<h2>How the search went</h2>"
    yield html.figure(
        score_png,
        description=_score_description(content),
        caption=(
            "Grey: the table while one rule is improved, on specimens that differ from rule to "
            "rule. Blue: each epoch's table on fresh specimens, with standard errors; "
            "an open dot was rolled back. Triangles: a rule was divided."
        ),
    )
    yield from _epochs(content.history.epochs)
    yield "<h2>The rules</h2>"
    yield _rules(content)
    yield "<h2>How to make it again</h2>"
    yield from _origin(content)


def _verdict(content: ReportContent) -> str:
    gain = content.gain.score()
    summary = content.gain.final.summary()
    if gain is None:
        return "No sender could be scored on the fresh specimens."
    first = content.gain.first.summary()
    return (
        f"On {several(gain.count, 'fresh specimen')} the RemyCC scores "
        f"{with_error(summary.score)}, where the first table scores {with_error(first.score)}: "
        f"a gain of {with_error(gain, signed=True)} (means and standard errors)."
    )


def _figures(content: ReportContent) -> Iterator[tuple[str, str, str]]:
    first, final = content.gain.first.summary(), content.gain.final.summary()
    history = content.history
    yield "score", with_error(final.score), f"from {with_error(first.score)}"
    yield (
        "throughput / link rate, median",
        number(final.throughput_over_link_rate, 3),
        f"from {number(first.throughput_over_link_rate, 3)}",
    )
    yield (
        "delay / RTT, median",
        number(final.delay_over_rtt, 3),
        f"from {number(first.delay_over_rtt, 3)}",
    )
    yield "rules", str(content.table.rule_count), f"after {several(len(history.epochs), 'epoch')}"
    yield "packets simulated", count(history.simulated_packets), ""
    if history.cpu_seconds:
        wall = f"{duration(history.wall_seconds)} of wall time" if history.wall_seconds else ""
        yield "CPU time", duration(history.cpu_seconds[-1][1]), wall


def _throughput_delay_description(content: ReportContent) -> str:
    first, final = content.gain.first.summary(), content.gain.final.summary()
    return (
        "Scatter plot of throughput over link rate against delay over RTT. Medians: first table "
        f"{number(first.throughput_over_link_rate, 3)} at delay {number(first.delay_over_rtt, 3)}; "
        f"RemyCC {number(final.throughput_over_link_rate, 3)} at delay "
        f"{number(final.delay_over_rtt, 3)}."
    )


def _score_description(content: ReportContent) -> str:
    history = content.history
    if not history.steps:
        return "Plot of the score over steps; no step was scored."
    begin, end = history.steps[0], history.steps[-1]
    return (
        f"Line plot of the score over steps: {number(begin.score)} at step {begin.step}, "
        f"{number(end.score)} at step {end.step}, with {several(len(history.epochs), 'epoch')} and "
        f"{several(len(history.splits), 'split')}."
    )


def _epochs(epochs: Sequence[EpochPoint]) -> Iterator[str]:
    if not epochs:
        yield html.paragraph("No epoch was completed.", style="soft")
        return
    caption = "Epochs, on fresh specimens"
    if len(epochs) > _MOST_ROWS:
        caption += f" (the last {_MOST_ROWS} of {len(epochs)})"
    rows = [
        (
            str(record.epoch),
            "kept" if record.comparison.accepted else "rolled back",
            str(record.rules),
            str(record.rules_changed),
            with_error(record.comparison.before),
            with_error(record.comparison.after),
            with_error(record.comparison.gain, signed=True),
            str(record.step),
        )
        for record in (epoch.record for epoch in epochs[-_MOST_ROWS:])
    ]
    head = ("epoch", "table", "rules", "changed", "score before", "after", "gain", "step")
    yield html.table(caption, head, rows, text=2)


def _rules(content: ReportContent) -> str:
    table = content.table
    rules = readable_rules(table, content.gain.final.rule_uses)
    ranked = sorted(rules, key=lambda rule: (-(rule.use_share or 0), rule.number))
    caption = "Rules by use on the fresh specimens"
    if len(ranked) > _MOST_ROWS:
        caption += f" (the first {_MOST_ROWS} of {len(ranked)})"
    rows = [
        (
            str(rule.number),
            *region_cells(rule, table.domain_upper),
            *action_cells(rule),
            use_cell(rule),
        )
        for rule in ranked[:_MOST_ROWS]
    ]
    return html.table(caption, ("rule", *rules[0].region, *ACTION_HEAD, "use"), rows)


def _origin(content: ReportContent) -> Iterator[str]:
    history = content.history
    if history.finished is not None:
        yield html.paragraph(
            f"Seed {content.seed}; {history.evaluations} simulations; "
            f"{finished_sentence(history.finished)}."
        )
    versions = ", ".join(f"{name} {version}" for name, version in content.versions.items())
    yield html.paragraph(f"Made with {versions}.")
    yield html.paragraph("The RemyCC's score above can be computed again:")
    yield html.preformatted(
        "remy-farm evaluate --remycc remycc.json --spec spec.yaml "
        f"--specimens {len(content.gain.final.results)} --seed {content.gain.seed}"
    )
    yield html.paragraph(f"Beside this page: {', '.join(content.files)}.")
    yield html.folded("The specification, complete with its defaults", content.spec_yaml)
