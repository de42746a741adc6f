"""What tells simulators apart."""

from __future__ import annotations

import re
import subprocess
import sys

import remy_simulator

# Of results that are released: it changes with them, and then the version has to change too.
_OF_VERSION_0_1_0 = "8f0d1bc42a1c7e230319ed67f914c71136d90e9ec333746f1ce08a36326a28a8"


def test_it_is_the_same_wherever_it_is_computed() -> None:
    program = "import remy_simulator; print(remy_simulator.fingerprint())"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX,-ERMS"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert re.fullmatch("[0-9a-f]{64}", printed)
    assert printed == remy_simulator.fingerprint() == _OF_VERSION_0_1_0
