"""Signals are declared once; what else names them has their names from the declaration."""

from pathlib import Path

import pytest

from remy_proto.v1 import rule_table_pb2
from remy_simulator import signals
from scripts import live_page, signal_reference


def test_every_signal_of_the_wire_is_declared_with_its_number() -> None:
    declared = {f"SIGNAL_{name.upper()}": form.number for name, form in signals.FORMS.items()}
    assert {"SIGNAL_UNSPECIFIED": 0, **declared} == dict(rule_table_pb2.Signal.items())


@pytest.mark.parametrize("page", [live_page.BUILT / "page.html", live_page.FARM / "farm.js"])
def test_pages_name_every_signal(page: Path) -> None:
    text = page.read_text()
    assert [name for name in signals.FORMS if f'"{name}"' not in text] == []


def test_the_page_of_signals_is_that_of_their_declaration() -> None:
    page = signal_reference.PAGE.read_text()
    assert "".join(signal_reference.rows()) in page
    assert signal_reference.written(page) == page
