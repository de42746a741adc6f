"""Regenerates the tables of docs/reference/protocols.md.

`python -m scripts.protocol_reference [REPORT]` does it.

With a report of the C++ tests (`--gtest_output=json:REPORT.json`) it also regenerates the tables
that compare the simulator with ns-2 and with a Linux kernel.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from remy_simulator import registry
from remy_simulator.registry import Entry, Registry

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "protocols.md"
# A section has a heading with the entry's name, a paragraph, and a generated table between markers.
_SECTION: Final = re.compile(
    r"(?P<head>^### `(?P<name>[a-z0-9-]+)`[^\n]*\n.*?)"
    r"(?P<table><!-- table -->\n).*?(?P<end><!-- end -->)",
    re.MULTILINE | re.DOTALL,
)
_MEASURED: Final = re.compile(r"<!-- measured: (?P<table>\S+) -->\n.*?<!-- end -->", re.DOTALL)
_CHAPTERS: Final = {
    Registry.PROTOCOL: "## Protocols",
    Registry.TRANSPORT: "## Transports",
    Registry.QUEUE: "## Queues",
}


def tables(entry: Entry) -> Iterator[str]:
    """Yields lines of Markdown: the variants' sources, then their parameters.

    A parameter that several variants share has one row.
    """
    yield ""
    if entry.traits:
        yield f"*{'; '.join(sorted(entry.traits))}*"
        yield ""
    yield "| Variant | Source |"
    yield "|---|---|"
    for place, variant in enumerate(entry.variants):
        default_mark = " (default)" if place == 0 and len(entry.variants) > 1 else ""
        yield f"| `{variant.name}`{default_mark} | {variant.source or 'of this project'} |"
    parameters: dict[tuple[str, str, str, str], list[str]] = {}
    for variant in entry.variants:
        for each in variant.parameters:
            limits = f"{each.minimum:.15g} to {each.maximum:.15g}"
            row = (each.name, each.description, f"{each.default:.15g}", limits)
            parameters.setdefault(row, []).append(f"`{variant.name}`")
    if parameters:
        yield ""
        yield "| Parameter | Meaning | Default | Range | Variants |"
        yield "|---|---|---|---|---|"
        for (name, meaning, usual, limits), variants in parameters.items():
            of = "all" if len(variants) == len(entry.variants) else ", ".join(variants)
            yield f"| `{name}` | {meaning} | {usual} | {limits} | {of} |"
    yield ""


def with_registry_tables(text: str) -> str:
    """Returns the page with its tables regenerated from the registries.

    Raises ValueError if the page lacks a registered name's section or has one for an unknown name.
    """
    starts = [text.index(chapter) for chapter in _CHAPTERS.values()] + [len(text)]
    page = text[: starts[0]]
    for kind, (start, end) in zip(_CHAPTERS, pairwise(starts), strict=True):
        entries = registry.entries(kind)
        sections = _SECTION.findall(text[start:end])
        names = sorted(name for _, name, *_ in sections)
        if names != sorted(entries):
            raise ValueError(
                f"docs/reference/protocols.md has sections of {names}, not of {list(entries)}"
            )

        def table(section: re.Match[str], entries: dict[str, Entry] = entries) -> str:
            lines = "\n".join(tables(entries[section["name"]]))
            return f"{section['head']}{section['table']}{lines}\n{section['end']}"

        page += _SECTION.sub(table, text[start:end])
    return page


def with_measured(text: str, report: dict[str, Any]) -> str:
    """Returns the page with its tables of measurements regenerated from a report.

    A cell has the simulator's value, and in parentheses that of ns-2 or the kernel. Raises
    ValueError if the report has no measurement of a table.
    """
    cells: dict[str, dict[str, dict[str, str]]] = {}
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            for key, value in test.items():
                if key.startswith("measured/"):
                    _, table, row, column = key.split("/", 3)
                    cells.setdefault(table, {}).setdefault(row, {})[column] = value

    def measured(place: re.Match[str]) -> str:
        rows = cells.get(place["table"])
        if rows is None:
            raise ValueError(f"the report has no measurement of the table {place['table']}")
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        lines = [["what", *columns], ["---"] * (len(columns) + 1)]
        lines += [[name, *(row.get(each, "") for each in columns)] for name, row in rows.items()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"<!-- measured: {place['table']} -->\n\n{table}\n\n<!-- end -->"

    return _MEASURED.sub(measured, text)


if __name__ == "__main__":
    page = with_registry_tables(PAGE.read_text(encoding="utf-8"))
    for report in sys.argv[1:]:
        page = with_measured(page, json.loads(Path(report).read_text(encoding="utf-8")))
    PAGE.write_text(page, encoding="utf-8")
