"""What made a design: enough to make it again."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path

from remy_farm.v1 import spec_pb2
from remy_services.spec import content_digest
from remy_simulator import _native

_DISTRIBUTIONS = ("remy-farm", "remy-farm-proto", "remy-simulator", "protobuf")


def provenance_json(spec: spec_pb2.DesignSpec) -> str:
    """Seed, digests and versions, as JSON."""
    versions = {name: version(name) for name in _DISTRIBUTIONS}
    versions["python"] = platform.python_version()
    return (
        json.dumps(
            {
                "name": spec.name,
                "seed": spec.search.seed,
                "spec_digest": content_digest(spec),
                "simulator_digest": hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest(),
                "versions": versions,
            },
            indent=2,
        )
        + "\n"
    )
