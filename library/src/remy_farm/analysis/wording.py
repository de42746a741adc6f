"""Wording for people: numbers, durations, reasons, and small pieces of HTML."""

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
    progress_pb2.STOP_REASON_CANCELLED: "somebody asked for it",
    progress_pb2.STOP_REASON_SCHEDULE_COMPLETE: "the search has walked its whole schedule",
    progress_pb2.STOP_REASON_EVALUATED: "everything was evaluated",
}


def stop_reason(reason: progress_pb2.StopReason) -> str:
    """Why a design is finished, to follow "finished because"."""
    return _STOP_REASONS.get(reason, "of an unknown reason")


def finished_sentence(finished: progress_pb2.DesignFinished) -> str:
    """How a design ended."""
    sentence = f"finished after {several(finished.epochs, 'epoch')} because "
    sentence += stop_reason(finished.reason)
    if finished.HasField("closing"):
        verdict = "kept" if finished.closing.accepted else "dropped"
        gain = with_error(finished.closing.gain, signed=True)
        sentence += f"; the changes of the unfinished epoch were {verdict} (gain {gain})"
    return sentence


def rest_sentence(steps: int) -> str:
    """How a climb stands whose last steps moved nothing."""
    return f"the climb rests, as for {several(steps, 'step')} no slope has stood out of its noise"


def enum_name(kind: EnumDescriptor, number: int) -> str | None:
    """As in "running"; None for the value that stands for none."""
    if number == 0:
        return None
    value = kind.values_by_number.get(number)
    return f"unknown_{number}" if value is None else short_name(value)


def number(value: float | None, digits: int = 4) -> str:
    """A number to a few significant digits; a dash for none."""
    return "-" if value is None else f"{value:.{digits}g}"


def with_error(value: Estimate | progress_pb2.Estimate | None, *, signed: bool = False) -> str:
    """A mean and its standard error, with the digits that the error makes worth showing."""
    if value is None:
        return "-"
    sign = "+" if signed else ""
    error = _error(value)
    if not error:
        return f"{value.mean:{sign}.4g}"
    decimals = max(0, _decimals(error))
    return f"{value.mean:{sign}.{decimals}f} {_PLUS_MINUS} {error:.{decimals}f}"


def estimate_tree(value: Estimate | None, mean: str = "score_mean") -> dict[str, float | None]:
    """An estimate as JSON has it: the mean by this name, its standard error by one like it."""
    return {
        mean: None if value is None else value.mean,
        f"{mean.removesuffix('_mean')}_stderr": None if value is None else value.standard_error,
    }


def count(value: float) -> str:
    """A large count with a unit prefix."""
    for limit, divisor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if value >= limit:
            return f"{value / divisor:.3g}{suffix}"
    return f"{value:.0f}"


def several(amount: int, noun: str) -> str:
    """An amount of things."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def duration(seconds: float) -> str:
    """A time span for people."""
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
    """Digits after the point up to the error's second significant one."""
    exponent = int(f"{error:e}".partition("e")[2])
    return 1 - exponent


escape = html.escape

_WORDS = ' class="text"'


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, text: int = 1
) -> str:
    """A table that scrolls sideways on a narrow screen; the first `text` columns hold words."""

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
    """Lines of plain text: the first column to the left, numbers to the right under their heads."""
    columns = [*zip(head, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def figure(png: bytes, *, description: str, caption: str) -> str:
    """A picture within the page, with a description for those who cannot see it."""
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<figure>\n<img alt="{escape(description)}" src="data:image/png;base64,{data}">\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )


def figures(entries: Iterable[tuple[str, str, str]]) -> str:
    """Large numbers: (name, value, remark)."""
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
    """A paragraph of plain text."""
    return f'<p class="{style}">{escape(text)}</p>' if style else f"<p>{escape(text)}</p>"


def preformatted(text: str) -> str:
    """Text to copy, such as a command or a file."""
    return f'<pre tabindex="0">{escape(text)}</pre>'


def folded(summary: str, text: str) -> str:
    """Preformatted text that opens on demand."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{preformatted(text)}\n</details>"


def framed(page: str, *, title: str) -> str:
    """Another complete page within this one, which begins when it is scrolled to."""
    data = base64.b64encode(page.encode()).decode("ascii")
    return (
        f'<iframe title="{escape(title)}" loading="lazy" src="data:text/html;base64,{data}">'
        "</iframe>"
    )


def document(*, title: str, sections: Iterable[str], policy: str = "") -> str:
    """A complete page that loads nothing else.

    `policy` is what a page within it may do besides: a frame has no more rights than what is
    around it.
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
