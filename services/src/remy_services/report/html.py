"""Small pieces of HTML. Text is escaped here and nowhere else."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

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


def document(*, title: str, css: str, sections: Iterable[str]) -> str:
    """A complete page that loads nothing else."""
    body = "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
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
