"""Which design a checkpoint belongs to, and which simulator it can go on with."""

from __future__ import annotations

from importlib.metadata import version

from remy_farm.v1 import checkpoint_pb2
from remy_services.designer.errors import CheckpointError, OtherVersionError
from remy_simulator import fingerprint


def new_record(design_digest: str) -> checkpoint_pb2.Checkpoint:
    """The record of a design at its beginning, made by this simulator: a checkpoint but for the
    strategy's state."""
    return checkpoint_pb2.Checkpoint(
        spec_digest=design_digest,
        simulator_version=version("remy-simulator"),
        simulator_digest=fingerprint(),
    )


def check_same_design(
    saved: checkpoint_pb2.Checkpoint, expected: checkpoint_pb2.Checkpoint
) -> None:
    """Raises CheckpointError unless `saved` is a record of the design that `expected` begins."""
    if saved.spec_digest != expected.spec_digest:
        raise CheckpointError(
            f"the checkpoint belongs to another specification or first table (digest "
            f"{saved.spec_digest[:12]}, not {expected.spec_digest[:12]}); only `name`, "
            f"`stop` and the number of steps may differ"
        )
    if saved.simulator_version != expected.simulator_version:
        raise OtherVersionError(
            f"the checkpoint was made with simulator {saved.simulator_version}; "
            f"this is simulator {expected.simulator_version}"
        )
    if saved.simulator_digest != expected.simulator_digest:
        raise OtherVersionError(
            f"the checkpoint was made with a build of simulator {expected.simulator_version} "
            f"whose results differ from this one's (digest "
            f"{saved.simulator_digest[:12] or 'unknown'}, not "
            f"{expected.simulator_digest[:12]}); the design can go on with that build only"
        )
