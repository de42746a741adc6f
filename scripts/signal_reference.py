"""Regenerates the table of signals in docs/reference/signals.md.

`python -m scripts.signal_reference` does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from remy_proto.v1 import rule_table_pb2
from remy_simulator import signals

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "signals.md"
_TABLE: Final = re.compile(r"(?<=\|---\|---\|---\|---\|---\|\n)(?:\| [`| ].*\n)+")
_MAY_STAY_0: Final = re.compile(r"(?<=A signal that may be 0 for ever \()[^)]*")


def rows() -> Iterator[str]:
    """Yields a row per axis, and one for `age`, which replaces `rec_ewma` in scale-free rules."""
    for axis in signals.AXES:
        absolute, ratio = axis.form(is_scale_free=False), axis.form(is_scale_free=True)
        described = f"`{ratio.name}`: {ratio.formula}"
        is_replaced = ratio.number == rule_table_pb2.SIGNAL_AGE
        last = "none: it is the unit" if is_replaced else described
        if axis.has_one_form:
            last = "the same"
        columns = f"`{absolute.name}`", absolute.formula, absolute.unit, axis.source, last
        yield f"| {' | '.join(columns)} |\n"
        if is_replaced:
            yield f"| | | | | {described} |\n"


def updated(page: str) -> str:
    """Returns the page with its first table and its list of signals that may stay 0 regenerated."""
    forms = (axis.form(is_scale_free=False) for axis in signals.AXES)
    named = ", ".join(f"`{form.name}`" for form in forms if form.may_stay_0)
    return _MAY_STAY_0.sub(named, _TABLE.sub(lambda _: "".join(rows()), page, count=1))


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
