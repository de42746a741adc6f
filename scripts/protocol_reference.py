"""The tables of docs/protocols.md: `python -m scripts.protocol_reference` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from remy_simulator import registry
from remy_simulator.registry import Entry, Registry

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "protocols.md"
# Below a heading that names it stands a paragraph, and then, between these, what is generated.
_SECTION: Final = re.compile(
    r"(?P<head>^### `(?P<name>[a-z0-9-]+)`[^\n]*\n.*?)"
    r"(?P<table><!-- table -->\n).*?(?P<end><!-- end -->)",
    re.MULTILINE | re.DOTALL,
)
_CHAPTERS: Final = {
    Registry.PROTOCOL: "## Protocols",
    Registry.BODY: "## Bodies",
    Registry.QUEUE: "## Queues",
}


def tables(entry: Entry) -> Iterator[str]:
    """Lines of Markdown: sources of the variants, then their parameters, alike ones once."""
    yield ""
    if entry.traits:
        yield f"*{'; '.join(sorted(entry.traits))}*"
        yield ""
    yield "| Variant | Source |"
    yield "|---|---|"
    for place, variant in enumerate(entry.variants):
        usual = " (usual)" if place == 0 and len(entry.variants) > 1 else ""
        yield f"| `{variant.name}`{usual} | {variant.source or 'of this project'} |"
    parameters: dict[tuple[str, str, str, str], list[str]] = {}
    for variant in entry.variants:
        for each in variant.parameters:
            limits = f"{each.minimum:.15g} to {each.maximum:.15g}"
            row = (each.name, each.meaning, f"{each.usual:.15g}", limits)
            parameters.setdefault(row, []).append(f"`{variant.name}`")
    if parameters:
        yield ""
        yield "| Parameter | Meaning | Usual | Range | Variants |"
        yield "|---|---|---|---|---|"
        for (name, meaning, usual, limits), variants in parameters.items():
            of = "all" if len(variants) == len(entry.variants) else ", ".join(variants)
            yield f"| `{name}` | {meaning} | {usual} | {limits} | {of} |"
    yield ""


def filled(text: str) -> str:
    """The page with its tables as the registries are. Raises ValueError for a heading that is
    missing, or of what there is not."""
    starts = [text.index(chapter) for chapter in _CHAPTERS.values()] + [len(text)]
    page = text[: starts[0]]
    for kind, (start, end) in zip(_CHAPTERS, pairwise(starts), strict=True):
        entries = registry.entries(kind)
        found = _SECTION.findall(text[start:end])
        names = sorted(name for _, name, *_ in found)
        if names != sorted(entries):
            raise ValueError(f"docs/protocols.md has sections of {names}, not of {list(entries)}")

        def table(section: re.Match[str], entries: dict[str, Entry] = entries) -> str:
            lines = "\n".join(tables(entries[section["name"]]))
            return f"{section['head']}{section['table']}{lines}\n{section['end']}"

        page += _SECTION.sub(table, text[start:end])
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
