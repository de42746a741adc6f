"""Formats numbers, durations and reasons for people, and makes pieces of HTML."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from importlib import resources

from google.protobuf.descriptor import EnumDescriptor

from remy_farm.evaluation.measures import Estimate
from remy_farm.specification.schema import short_name
from remy_proto.v1 import progress_pb2

_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"

_STOP_REASONS = {
    progress_pb2.STOP_REASON_EPOCHS: "the specification's number of epochs has passed",
    progress_pb2.STOP_REASON_RULES: "the table holds the specification's number of rules",
    progress_pb2.STOP_REASON_STEPS: "the number of steps allowed was made",
    progress_pb2.STOP_REASON_CPU_SECONDS: "the CPU time allowed was used",
    progress_pb2.STOP_REASON_WALL_SECONDS: "the wall time allowed has passed",
    progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN: "several epochs in a row brought no gain",
    progress_pb2.STOP_REASON_CANCELLED: "it was cancelled",
    progress_pb2.STOP_REASON_SCHEDULE_COMPLETE: "the search has completed its schedule",
    progress_pb2.STOP_REASON_EVALUATED: "everything was evaluated",
}


def stop_reason(reason: progress_pb2.StopReason) -> str:
    """Returns why a design is finished, as a clause to follow "finished because"."""
    return _STOP_REASONS.get(reason, f"of the unknown reason {reason}")


def finished_sentence(finished: progress_pb2.DesignFinished) -> str:
    """Returns a clause on how a design finished."""
    sentence = f"finished after {plural(finished.epochs, 'epoch')} because "
    sentence += stop_reason(finished.reason)
    if finished.HasField("closing"):
        verdict = "kept" if finished.closing.accepted else "dropped"
        gain = format_estimate(finished.closing.gain, signed=True)
        sentence += f"; the changes of the unfinished epoch were {verdict} (gain {gain})"
    return sentence


def stall_sentence(steps: int) -> str:
    """Returns a clause on a climb that has not moved for `steps` steps."""
    return f"the climb has stalled: no slope was significant for {plural(steps, 'step')}"


def enum_name(kind: EnumDescriptor, number: int) -> str | None:
    """Returns the short name of an enum value, such as "running"; None for the unspecified one."""
    if number == 0:
        return None
    value = kind.values_by_number.get(number)
    return f"unknown_{number}" if value is None else short_name(value)


def number(value: float | None, digits: int = 4) -> str:
    """Formats a number with a few significant digits; None as a dash."""
    return "-" if value is None else f"{value:.{digits}g}"


def percentage(fraction: float | None) -> str:
    """Formats a fraction, such as the packets lost of those sent, in percent; None as a dash."""
    return "-" if fraction is None else f"{100 * fraction:.3g} %"


def format_estimate(value: Estimate | progress_pb2.Estimate | None, *, signed: bool = False) -> str:
    """Formats a mean and its standard error, both rounded to two digits of the error."""
    if value is None:
        return "-"
    sign = "+" if signed else ""
    error = _error(value)
    if not error:
        return f"{value.mean:{sign}.4g}"
    decimals = max(0, _decimals(error))
    return f"{value.mean:{sign}.{decimals}f} {_PLUS_MINUS} {error:.{decimals}f}"


def estimate_fields(value: Estimate | None, mean: str = "score_mean") -> dict[str, float | None]:
    """Returns an estimate as JSON fields: `mean` is the mean's key, NAME_stderr the error's."""
    return {
        mean: None if value is None else value.mean,
        f"{mean.removesuffix('_mean')}_stderr": None if value is None else value.standard_error,
    }


def count(value: float) -> str:
    """Formats a count; a large one with a unit prefix."""
    for limit, divisor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if value >= limit:
            return f"{value / divisor:.3g}{suffix}"
    return f"{value:.0f}"


def plural(amount: int, noun: str) -> str:
    """Formats a number with its noun in the singular or plural."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def duration(seconds: float) -> str:
    """Formats a time span in s, min or h."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def _error(value: Estimate | progress_pb2.Estimate) -> float | None:
    if isinstance(value, Estimate):
        return value.standard_error
    return value.standard_error if value.HasField("standard_error") else None


def _decimals(error: float) -> int:
    """Returns the number of decimals up to the second significant digit of the error."""
    exponent = int(f"{error:e}".partition("e")[2])
    return 1 - exponent


escape = html.escape

_WORDS = ' class="text"'


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, text: int = 1
) -> str:
    """Returns an HTML table that scrolls sideways; the first `text` columns are aligned as text."""

    def cells(row: Sequence[str], tag: str, attributes: str = "") -> str:
        return "".join(
            f"<{tag}{attributes}{_WORDS if column < text else ''}>{escape(value)}</{tag}>"
            for column, value in enumerate(row)
        )

    titles = cells(head, "th", ' scope="col"')
    body = "\n".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">\n<table>\n'
        f"<caption>{escape(caption)}</caption>\n"
        f"<thead><tr>{titles}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a table as lines of text; the first column is left-aligned, the others right."""
    columns = [*zip(head, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def figure(png: bytes, *, description: str, caption: str) -> str:
    """Returns an inline picture with a caption, and a description as its alternative text."""
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<figure>\n<img alt="{escape(description)}" src="data:image/png;base64,{data}">\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )


def figures(entries: Iterable[tuple[str, str, str]]) -> str:
    """Returns a list of large numbers from (name, value, remark) entries."""
    return (
        '<dl class="figures">\n'
        + "\n".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}"
            + (f' <span class="from">{escape(remark)}</span>' if remark else "")
            + "</dd></div>"
            for name, value, remark in entries
        )
        + "\n</dl>"
    )


def paragraph(text: str, style: str = "") -> str:
    """Returns a paragraph of plain text."""
    return f'<p class="{style}">{escape(text)}</p>' if style else f"<p>{escape(text)}</p>"


def preformatted(text: str) -> str:
    """Returns preformatted text to copy, such as a command or a file."""
    return f'<pre tabindex="0">{escape(text)}</pre>'


def folded(summary: str, text: str) -> str:
    """Returns preformatted text that is hidden until its summary is clicked."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{preformatted(text)}\n</details>"


def framed(page: str, *, title: str) -> str:
    """Returns a frame with another complete page, which is loaded when it is scrolled to."""
    data = base64.b64encode(page.encode()).decode("ascii")
    return (
        f'<iframe title="{escape(title)}" loading="lazy" src="data:text/html;base64,{data}">'
        "</iframe>"
    )


def document(*, title: str, sections: Iterable[str], policy: str = "") -> str:
    """Returns a complete page that loads no other resource.

    `policy` adds Content-Security-Policy directives for a framed page: a frame has at most the
    rights of the page around it.
    """
    css = resources.files("remy_farm.analysis").joinpath("page.css").read_text(encoding="utf-8")
    body = "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:{policy}">
<title>{escape(title)}</title>
<style>
{css}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
