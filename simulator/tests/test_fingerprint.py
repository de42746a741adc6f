"""Fingerprints of the simulator."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import remy_simulator
from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import columns, fingerprint, signals_fingerprint
from remy_simulator.fingerprint import _request, _request_of_signals, _scale_free_table

_ABSOLUTE, _SCALE_FREE = rule_table_pb2.RULES_ABSOLUTE, rule_table_pb2.RULES_SCALE_FREE


@pytest.mark.parametrize("rules", [_ABSOLUTE, _SCALE_FREE], ids=["absolute", "scale-free"])
def test_fingerprint_is_the_same_in_every_process(rules: int) -> None:
    program = f"import remy_simulator; print(remy_simulator.fingerprint({rules}))"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX,-ERMS"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", printed)
    assert printed == remy_simulator.fingerprint(rules)


def test_fingerprint_defaults_to_absolute_rules() -> None:
    assert remy_simulator.fingerprint() == remy_simulator.fingerprint(_ABSOLUTE)


def test_scale_free_rules_have_another_fingerprint() -> None:
    """Their arithmetic may change when that of absolute rules does not."""
    assert remy_simulator.fingerprint(_SCALE_FREE) != remy_simulator.fingerprint()


def test_fingerprint_uses_all_scale_free_rules() -> None:
    """A fingerprint does not cover rules that no sender looks up."""
    request = columns.packed(_request(_scale_free_table(), evaluation_pb2.RECORDING_USES))
    del request.candidates[1:]
    uses = columns.evaluate_columns(request).rule_uses
    assert len(uses) == 6
    assert min(uses) > 100


def test_signals_fingerprint_uses_all_rules() -> None:
    assert signals_fingerprint() not in (fingerprint(_ABSOLUTE), fingerprint(_SCALE_FREE))
    for rules in (_ABSOLUTE, _SCALE_FREE):
        request = columns.packed(_request_of_signals(rules, evaluation_pb2.RECORDING_USES))
        del request.candidates[1:]
        uses = columns.evaluate_columns(request).rule_uses
        assert min(uses) > 50
