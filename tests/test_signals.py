"""Signals are declared once; wire format, specifications, pages and documents agree with that."""

from pathlib import Path

import pytest

from remy_farm.specification import parse_spec
from remy_proto.v1 import rule_table_pb2
from remy_simulator import signals
from scripts import live_page, signal_reference


def test_declared_numbers_are_those_of_the_wire_format() -> None:
    declared = {f"SIGNAL_{name.upper()}": form.number for name, form in signals.FORMS.items()}
    assert {"SIGNAL_UNSPECIFIED": 0, **declared} == dict(rule_table_pb2.Signal.items())


@pytest.mark.parametrize("is_scale_free", [False, True])
def test_specification_may_use_all_signals_together(is_scale_free: bool) -> None:
    names = [axis.form(is_scale_free).name for axis in signals.AXES]
    spec = parse_spec(f"""
name: all
network: {{rate_mbps: 10, rtt_ms: 100, senders: 2, queue: "threshold-marking,threshold_packets=20",
  traffic: {{exponential_time: {{mean_ms: 1000}}, mean_off_ms: 1000}}}}
rules: {"scale_free" if is_scale_free else "absolute"}
signals: [{", ".join(names)}]
""")
    assert len(spec.signals) == len(names)


@pytest.mark.parametrize("page", [live_page.BUILT / "page.html", live_page.FARM / "farm.js"])
def test_built_page_has_the_names_of_all_signals(page: Path) -> None:
    text = page.read_text()
    assert [name for name in signals.FORMS if f'"{name}"' not in text] == []


def test_reference_page_of_signals_is_up_to_date() -> None:
    page = signal_reference.PAGE.read_text()
    assert "".join(signal_reference.rows()) in page
    assert signal_reference.updated(page) == page
