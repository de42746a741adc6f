"""A CPU that can do less, as far as the C library knows."""

from __future__ import annotations

import os
import subprocess
import sys

# Both notations: that of glibc before 2.33, and that of today.
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
    """This process's environment, for one whose C library may not use AVX, FMA and the like."""
    return os.environ | {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={_OFF}"}


def system_functions_digest(environment: dict[str, str] | None = None) -> str:
    """16 hexadecimal digits of what the C library's own log, exp and pow return.

    Where it has variants for the CPU's features, switching these off changes the digest: the
    control of an experiment in which ours must not change.
    """
    return subprocess.run(
        [sys.executable, "-I", "-c", _SYSTEM_FUNCTIONS],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
