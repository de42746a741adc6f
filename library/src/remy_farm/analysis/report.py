"""Writes a design's report: a self-contained page, and two plots."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import remy_simulator
from remy_farm.analysis import wording
from remy_farm.analysis.history import History
from remy_farm.analysis.live_page import live_network_page, policy_within
from remy_farm.analysis.wording import (
    count,
    duration,
    finished_sentence,
    format_estimate,
    number,
    percentage,
    plural,
)
from remy_farm.evaluation.measures import (
    PERCENTS,
    Estimate,
    Evaluate,
    Trial,
    estimate,
    evaluate_table,
)
from remy_farm.files import write_file
from remy_farm.remycc import (
    ReadableRule,
    RemyCC,
    clock_precision_sentence,
    path_model_sentence,
    readable_rules,
)
from remy_farm.specification import validation_specimens
from remy_proto.v1 import progress_pb2, rule_table_pb2, spec_pb2
from remy_simulator import RuleTable, signals

# Random-stream key of the report's networks. Streams of the search have small numbers in its place.
_REPORT = 0x7265706F7274


@dataclass(frozen=True, slots=True)
class Gain:
    """Two tables evaluated on the same networks, which the search has not used."""

    first: Trial
    final: Trial
    seed: int
    """Seed of the networks; `remy-farm evaluate` with this seed repeats the trials."""

    def score(self) -> Estimate | None:
        """Returns the mean over specimens of the difference in score, final minus first."""
        return estimate(
            [
                after.score - before.score
                if before.score is not None and after.score is not None
                else None
                for before, after in zip(self.first.results, self.final.results, strict=True)
            ]
        )


def measure_gain(
    spec: spec_pb2.DesignSpec,
    first: Sequence[RuleTable],
    final: Sequence[RuleTable],
    *,
    evaluate: Evaluate,
) -> Gain:
    """Evaluates the first and the final tables on fresh specimens.

    Several tables that are designed together are evaluated together. The number of specimens is
    that of the search's validation.
    """
    seed = remy_simulator.mix(spec.search.seed, _REPORT)
    specimens = validation_specimens(spec)
    trials = [
        evaluate_table(
            spec,
            table,
            seed=seed,
            specimens=specimens,
            evaluate=evaluate,
            companions=companions,
            distributions=True,
        )
        for table, *companions in (first, final)
    ]
    return Gain(first=trials[0], final=trials[1], seed=seed)


REPORT_HTML = "report.html"
SCORE_PNG = "score.png"
THROUGHPUT_DELAY_PNG = "throughput-delay.png"
REPORT_FILES = (REPORT_HTML, SCORE_PNG, THROUGHPUT_DELAY_PNG)


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The content of a report on a finished design."""

    name: str
    spec_yaml: str
    seed: int
    versions: Mapping[str, str]
    """Versions of the programs that made the design, by name."""
    history: History
    table: RuleTable
    """The published table."""
    gain: Gain
    files: Sequence[str]
    """Names of the files in the report's directory, in the order of display."""


def action_head(rules: int) -> tuple[str, str, str]:
    """Returns the column heads of `action_cells`, for this kind of rules."""
    is_absolute = rules == rule_table_pb2.RULES_ABSOLUTE
    return ("window multiple", "increment", "intersend ms" if is_absolute else "interval")


def region_cells(rule: ReadableRule, domain_upper: float) -> list[str]:
    """Returns the interval of each signal of a rule's region, in the order of the table's signals.

    EWMAs are in ms. slow_rec_ratio is shown as an age (see `age_acks`).
    """
    return [
        (_ages(low, high, domain_upper) if signal == _AGE else None)
        or _interval(low, high, domain_upper, _UNITS.get(signal, _threshold))
        for signal, (low, high) in rule.region.items()
    ]


def action_cells(rule: ReadableRule) -> tuple[str, str, str]:
    """Returns the cells of a rule's action, for the columns of `action_head`.

    Cells have units if the rules of the table have different ones.
    """
    multiple = f"{rule.window_multiple:.6g}"
    if rule.is_relative:
        return (multiple, f"{rule.window_increment:+.4g} %", f"{rule.intersend_ms:.4g} x")
    increment, intersend = f"{rule.window_increment:+.6g}", f"{rule.intersend_ms:.6g}"
    if rule.rules == rule_table_pb2.RULES_ABSOLUTE:
        return (multiple, increment, intersend)
    return (multiple, f"{increment} packets", f"{intersend} ms")


def use_cell(rule: ReadableRule) -> str:
    """Returns the rule's share of all look-ups, in percent."""
    if rule.use_share is None:
        return "-"
    return "0" if rule.use_share == 0 else f"{100 * rule.use_share:.3g} %"


def _threshold(value: float) -> str:
    """Formats a threshold with six digits, or as 1 plus a difference if that would show as 1.

    RTT ratios are at least 1, and many thresholds are only slightly above.
    """
    text = f"{value:.6g}"
    if text == "1" and value != 1:
        return f"1 {'+' if value > 1 else '-'} {abs(value - 1):.2g}"
    return text


def _interval(
    low: float, high: float, domain_upper: float, threshold: Callable[[float], str] = _threshold
) -> str:
    if low == 0 and high == domain_upper:
        return "any"
    if low == 0:
        return f"< {threshold(high)}"
    if high == domain_upper:
        return f">= {threshold(low)}"
    return f"{threshold(low)} .. {threshold(high)}"


_PRINTED_IN: Final[dict[str, Callable[[float], str]]] = {
    "ms": lambda value: f"{value:.6g} ms",
    "packets": lambda value: f"{value:.6g} packets",
    "%": lambda value: f"{100 * value:.6g} %",
}
_UNITS: Final = {
    name: _PRINTED_IN[form.printed_in] for name, form in signals.FORMS.items() if form.printed_in
}
_AGE: Final = "slow_rec_ratio"
# At greater ages the ratio depends on changes of the rate rather than on the age.
_OLDEST_ACKS: Final = 1000


def age_acks(slow_rec_ratio: float) -> int | None:
    """Returns the number of ACK intervals after which slow_rec_ratio reaches this value.

    If packets arrive at equal intervals, it is (1 - (255/256)^k) / (1 - (7/8)^k) after k of them.
    Returns None for ages of at most 1 and of more than 1,000.
    """
    ages = range(1, _OLDEST_ACKS + 1)
    age = 1 + bisect_left(ages, slow_rec_ratio * (1 - _ROUNDING), key=_slow_rec_ratio)
    return age if 1 < age <= _OLDEST_ACKS else None


_ROUNDING: Final = 1e-9


def _slow_rec_ratio(age: int) -> float:
    return float((1 - (255 / 256) ** age) / (1 - (7 / 8) ** age))


def _ages(low: float, high: float, domain_upper: float) -> str | None:
    """Formats an interval of slow_rec_ratio in ages; None if one of its ends has no age."""
    ends = [end for end in (low, high) if end not in (0, domain_upper)]
    ages = {end: age for end in ends if (age := age_acks(end)) is not None}
    if not ends or len(ages) < len(ends):
        return None
    return f"age {_interval(low, high, domain_upper, lambda end: str(ages[end]))} ACKs"


# A longer table is cut to this number of rows.
_MAX_ROWS = 40


def render(content: ReportContent, *, score_png: bytes, throughput_delay_png: bytes) -> str:
    """Returns the report's page as HTML."""
    sections = _sections(content, score_png, throughput_delay_png)
    return wording.document(
        title=f"{content.name}: a RemyCC", sections=sections, policy=policy_within()
    )


def _sections(content: ReportContent, score_png: bytes, delay_png: bytes) -> Iterator[str]:
    yield f"<h1>{wording.escape(content.name)}</h1>"
    yield wording.paragraph(_verdict(content), style="lead")
    yield wording.figures(_figures(content))
    yield "<h2>Gain</h2>"
    yield wording.figure(
        delay_png,
        description=_throughput_delay_description(content),
        caption=(
            f"The first table and the RemyCC on the same {content.gain.final.summary().specimens} "
            "fresh specimens, a point each: means over the senders that received packets. Ellipses "
            "are one standard deviation, large dots medians. Up and to the right is better."
        ),
    )
    yield _packets(content.gain)
    yield "<h2>Course of the search</h2>"
    yield wording.figure(
        score_png,
        description=_score_description(content),
        caption=(
            "Grey: the table while one rule is improved, on specimens that differ from rule to "
            "rule. Blue: each epoch's table on the validation specimens, with standard errors; "
            "an open dot was rolled back. Triangles: a rule was split, or (upside "
            "down) rules were merged."
        ),
    )
    for step, steps in content.history.stalls:
        yield wording.paragraph(f"At step {step} {wording.stall_sentence(steps)}.")
    yield from _epochs(content.history.epochs)
    yield "<h2>The rules</h2>"
    yield _rules(content)
    yield "<h2>The RemyCC at work</h2>"
    yield wording.paragraph(
        "The simulator itself, with this table. Link, buffer, loss, queue and senders can be "
        "changed while it runs."
    )
    yield wording.framed(
        live_network_page({content.name: RemyCC(content.table)}), title="The live network"
    )
    yield "<h2>How to make it again</h2>"
    yield from _origin(content)


def _verdict(content: ReportContent) -> str:
    gain = content.gain.score()
    summary = content.gain.final.summary()
    if gain is None:
        return "No sender could be scored on the fresh specimens."
    first = content.gain.first.summary()
    return (
        f"On {plural(gain.count, 'fresh specimen')} the RemyCC scores "
        f"{format_estimate(summary.score)}, where the first table scores "
        f"{format_estimate(first.score)}: a gain of {format_estimate(gain, signed=True)} (means "
        "and standard errors)."
    )


def _figures(content: ReportContent) -> Iterator[tuple[str, str, str]]:
    first, final = content.gain.first.summary(), content.gain.final.summary()
    history = content.history
    yield "score", format_estimate(final.score), f"from {format_estimate(first.score)}"
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
    yield "loss, mean", percentage(final.packets.loss), f"from {percentage(first.packets.loss)}"
    yield "rules", str(content.table.rule_count), f"after {plural(len(history.epochs), 'epoch')}"
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
    first, last = history.steps[0], history.steps[-1]
    return (
        f"Line plot of the score over steps: {number(first.score)} at step {first.step}, "
        f"{number(last.score)} at step {last.step}, with {plural(len(history.epochs), 'epoch')} "
        f"and {plural(len(history.splits), 'split')}."
    )


def _packets(gain: Gain) -> str:
    rows = [
        (
            name,
            *(
                number(getattr(packets, f"{measure}_p{percent}_ms"), 3)
                for measure in ("rtt", "completion")
                for percent in PERCENTS
            ),
            percentage(packets.loss),
            str(packets.packets_retransmitted),
        )
        for name, packets in (
            ("first table", gain.first.summary().packets),
            ("RemyCC", gain.final.summary().packets),
        )
    ]
    head = (
        "",
        *(f"RTT {percent} %, ms" for percent in PERCENTS),
        *(f"completion {percent} %, ms" for percent in PERCENTS),
        *("loss", "retransmitted"),
    )
    caption = (
        "Percentiles over the packets and flows of a specimen: medians of the specimens. "
        "Loss: mean; retransmissions: sum."
    )
    return wording.table(caption, head, rows)


def _epochs(epochs: Sequence[progress_pb2.EpochRecord]) -> Iterator[str]:
    if not epochs:
        yield wording.paragraph("No epoch was completed.", style="soft")
        return
    caption = "Epochs, on validation specimens"
    if len(epochs) > _MAX_ROWS:
        caption += f" (the last {_MAX_ROWS} of {len(epochs)})"
    rows = [
        (
            str(record.epoch),
            "kept" if record.comparison.accepted else "rolled back",
            str(record.rules),
            str(record.rules_changed),
            format_estimate(record.comparison.before),
            format_estimate(record.comparison.after),
            format_estimate(record.comparison.gain, signed=True),
            str(record.step),
        )
        for record in epochs[-_MAX_ROWS:]
    ]
    head = ("epoch", "table", "rules", "changed", "score before", "after", "gain", "step")
    yield wording.table(caption, head, rows, text=2)


def _rules(content: ReportContent) -> str:
    table = content.table
    rules = readable_rules(table, content.gain.final.rule_uses)
    ranked = sorted(rules, key=lambda rule: (-(rule.use_share or 0), rule.number))
    caption = "Rules by use on the fresh specimens"
    if len(ranked) > _MAX_ROWS:
        caption += f" (the first {_MAX_ROWS} of {len(ranked)})"
    rows = [
        (
            str(rule.number),
            *region_cells(rule, table.domain_upper),
            *action_cells(rule),
            use_cell(rule),
        )
        for rule in ranked[:_MAX_ROWS]
    ]
    head = ("rule", *rules[0].region, *action_head(table.rules), "use")
    notes = (clock_precision_sentence(rules), path_model_sentence(table))
    return wording.table(caption, head, rows) + "".join(map(wording.paragraph, filter(None, notes)))


def _origin(content: ReportContent) -> Iterator[str]:
    history = content.history
    if history.finished is not None:
        yield wording.paragraph(
            f"Seed {content.seed}; {history.evaluations} simulations; "
            f"{finished_sentence(history.finished)}."
        )
    versions = ", ".join(f"{name} {version}" for name, version in content.versions.items())
    yield wording.paragraph(f"Made with {versions}.")
    yield wording.paragraph("The RemyCC's score above can be computed again:")
    yield wording.preformatted(
        "remy-farm evaluate --remycc remycc.json --spec spec.yaml "
        f"--specimens {len(content.gain.final.results)} --seed {content.gain.seed}"
    )
    yield wording.paragraph(f"Beside this page: {', '.join(content.files)}.")
    yield wording.folded("The specification, complete with its defaults", content.spec_yaml)


def write_report(folder: str | os.PathLike[str], content: ReportContent) -> None:
    """Writes REPORT_FILES into the folder, each atomically. Raises FileError."""
    # matplotlib takes longer to import than a short command takes to run.
    from remy_farm.analysis import plots

    score_png = plots.plot_score(content.history)
    throughput_delay_png = plots.plot_throughput_delay(
        [
            plots.Cloud("first table", plots.FIRST, _points(content.gain.first)),
            plots.Cloud("RemyCC", plots.FINAL, _points(content.gain.final)),
        ]
    )
    html = render(content, score_png=score_png, throughput_delay_png=throughput_delay_png)
    write_file(Path(folder) / SCORE_PNG, score_png)
    write_file(Path(folder) / THROUGHPUT_DELAY_PNG, throughput_delay_png)
    write_file(Path(folder) / REPORT_HTML, html)


def _points(trial: Trial) -> list[tuple[float, float]]:
    """Returns (delay over RTT, throughput over link rate) of specimens that received packets."""
    return [
        (measures.delay_over_rtt, measures.throughput_over_link_rate)
        for measures in (result.measures for result in trial.results)
        if measures.delay_over_rtt is not None and measures.throughput_over_link_rate is not None
    ]
