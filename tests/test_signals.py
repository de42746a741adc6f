"""Signals are declared once; what must repeat their names agrees with the declaration."""

import re
from pathlib import Path

import pytest

from remy_proto.v1 import rule_table_pb2
from remy_simulator import signals
from scripts import signal_reference

ROOT = Path(__file__).resolve().parent.parent
ABSOLUTE = [axis.absolute.name for axis in signals.AXES]
SCALE_FREE = [axis.scale_free.name for axis in signals.AXES]


def _names_after(path: str, start: str) -> list[str]:
    listed = (ROOT / path).read_text().partition(start)[2]
    return re.findall(r'"(\w+)"', re.split(r"[\]}]", listed, maxsplit=1)[0])


@pytest.mark.parametrize(
    ("path", "absolute", "scale_free"),
    [
        ("simulator/src/table/rule_table.cc", "kAbsolute{", "kScaleFree{"),
        ("play/src/table.ts", "ABSOLUTE = [", "RATIOS = ["),
    ],
)
def test_the_simulator_and_the_page_name_signals_as_they_are_declared(
    path: str, absolute: str, scale_free: str
) -> None:
    assert _names_after(path, absolute) == ABSOLUTE
    assert _names_after(path, scale_free) == SCALE_FREE


def test_the_simulator_numbers_signals_as_they_are_declared() -> None:
    source = (ROOT / "simulator/src/table/message.cc").read_text()
    numbers = dict(re.findall(r"(k\w+Numbers)\[kSignals\] = \{([\d, ]+)\}", source))
    assert [int(each) for each in numbers["kAbsoluteNumbers"].split(",")] == [
        axis.absolute.signal for axis in signals.AXES
    ]
    assert [int(each) for each in numbers["kScaleFreeNumbers"].split(",")] == [
        axis.scale_free.signal for axis in signals.AXES
    ]


def test_every_signal_of_the_wire_is_declared() -> None:
    declared = {form.signal for form in signals.FORMS.values()}
    assert declared == set(rule_table_pb2.Signal.values()) - {rule_table_pb2.SIGNAL_UNSPECIFIED}


def test_the_page_of_signals_is_that_of_their_declaration() -> None:
    page = signal_reference.PAGE.read_text()
    assert "".join(signal_reference.rows()) in page
    assert signal_reference.written(page) == page
