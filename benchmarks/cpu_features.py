"""Hides CPU features from the C library, to test that results do not depend on them."""

from __future__ import annotations

import os
import subprocess
import sys

# glibc before 2.33 names features with the suffix _Usable, later versions without.
_FEATURES = "AVX AVX2 AVX512F AVX512VL FMA FMA4".split()
_OFF = ",".join(f"-{feature}{suffix}" for feature in _FEATURES for suffix in ("_Usable", ""))

_SYSTEM_FUNCTIONS = """
import hashlib, math, struct
digest = hashlib.sha256()
for i in range(1, 20_000):
    x = i * 0.01373
    digest.update(struct.pack("3d", math.log(x), math.exp(x / 50), x**0.37))
print(digest.hexdigest()[:16])
"""


def environment_with_features_off() -> dict[str, str]:
    """Returns this process's environment plus a setting that makes glibc ignore AVX and FMA."""
    return os.environ | {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={_OFF}"}


def system_functions_digest(environment: dict[str, str] | None = None) -> str:
    """Hashes results of the C library's log, exp and pow into 16 hexadecimal digits.

    This is the control of an experiment: the C library chooses variants of these functions by CPU
    feature, so its digest changes if hiding features took effect, while ours must not change.
    """
    return subprocess.run(
        [sys.executable, "-I", "-c", _SYSTEM_FUNCTIONS],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
