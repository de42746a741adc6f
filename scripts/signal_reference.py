"""The table of docs/signals.md: `python -m scripts.signal_reference` writes it anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from remy_proto.v1 import rule_table_pb2
from remy_simulator import signals

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "signals.md"
_TABLE: Final = re.compile(r"(?<=\|---\|---\|---\|---\|---\|\n)(?:\| [`| ].*\n)+")


def rows() -> Iterator[str]:
    """A line for each axis, and one for age, which scale-free rules have in place of rec_ewma."""
    for axis in signals.AXES:
        own, ratio = axis.form(is_scale_free=False), axis.form(is_scale_free=True)
        described = f"`{ratio.name}`: {ratio.formula}"
        is_replaced = ratio.number == rule_table_pb2.SIGNAL_AGE
        last = "none: it is the unit" if is_replaced else described
        if axis.has_one_form:
            last = "the same"
        yield f"| `{own.name}` | {own.formula} | {own.unit} | {axis.source} | {last} |\n"
        if is_replaced:
            yield f"| | | | | {described} |\n"


def written(page: str) -> str:
    """The page with its first table written anew."""
    return _TABLE.sub(lambda _: "".join(rows()), page, count=1)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
