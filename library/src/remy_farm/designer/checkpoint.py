"""Seals checkpoints with a hash, and checks which design and simulator they belong to."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import Final

from google.protobuf.message import DecodeError

from remy_farm.designer.actions import path_model_of
from remy_farm.designer.scoring import CheckpointError, DesignerError, OtherVersionError
from remy_farm.remycc import signal_name
from remy_farm.specification import content_digest
from remy_farm.specification.modes import MODES
from remy_farm.specification.schema import short_name
from remy_proto.v1 import checkpoint_pb2, rule_table_pb2, spec_pb2
from remy_simulator import (
    RuleTable,
    fingerprint,
    network_signals_fingerprint,
    path_model_fingerprint,
    signals_fingerprint,
)
from remy_simulator.messages import BASIC_AXES, axis_of

# Settings of a search's length that may change when a design is resumed.
_MAY_CHANGE: Final = ("steps", "cpu_seconds")


def search_digest(spec: spec_pb2.DesignSpec) -> str:
    """Returns the digest of a specification without the parts that may change at a resume.

    These are its name, its stop rules, the length of its schedule, and its workers.
    """
    fixed = spec_pb2.DesignSpec()
    fixed.CopyFrom(spec)
    fixed.ClearField("name")
    fixed.ClearField("stop")
    fixed.ClearField("workers")
    fixed.search.ClearField("worker_schedule")
    for mode in MODES:
        for name in mode.lengths:
            if name in _MAY_CHANGE:
                mode.settings(fixed.search).ClearField(name)
    return content_digest(fixed)


def with_signals_of(spec: spec_pb2.DesignSpec, table: RuleTable) -> RuleTable:
    """Returns the table with the specification's signals, so that it may be split on all of them.

    It also gets the specification's path model. Raises DesignerError if it is already split on
    another signal, or has rules of another kind.
    """
    if table.rules != spec.rules:
        kinds = rule_table_pb2.Rules.DESCRIPTOR.values_by_number
        raise DesignerError(
            f"the first table has {short_name(kinds[table.rules])} rules; the specification's "
            f"`rules` must be the same, but are {short_name(kinds[spec.rules])}"
        )
    allowed = sorted(axis_of(signal) for signal in spec.signals)
    for thresholds, _ in table.nodes():
        for axis, _ in thresholds:
            if axis not in allowed:
                raise DesignerError(
                    f"the first table is split on {signal_name(axis, table.rules)}; the "
                    "specification's signals are "
                    + ", ".join(signal_name(each, table.rules) for each in allowed)
                )
    return RuleTable(allowed, table.nodes(), table.domain_upper, table.rules, path_model_of(spec))


def design_digest(spec: spec_pb2.DesignSpec, given: RuleTable | None) -> str:
    """Returns the digest of the search and of the given first table, which must not change."""
    digest = search_digest(spec)
    if given is None:
        return digest
    content = [given.signals, given.domain_upper, given.nodes(), given.rules]
    table = json.dumps(content, allow_nan=False)
    return hashlib.sha256(f"{digest} {table}".encode()).hexdigest()


#: Version of the message Checkpoint. Other versions are refused.
FORMAT_VERSION = 2


def seal(checkpoint: checkpoint_pb2.Checkpoint) -> bytes:
    """Serializes a checkpoint together with its hash."""
    return _seal(checkpoint.SerializeToString(deterministic=True))


def unseal(data: bytes) -> checkpoint_pb2.Checkpoint:
    """Reads what `seal` wrote. Raises CheckpointError for anything else."""
    sealed = checkpoint_pb2.SealedCheckpoint()
    checkpoint = checkpoint_pb2.Checkpoint()
    try:
        sealed.ParseFromString(data)
        intact = _seal(sealed.checkpoint) == data
        if not intact and sealed.format_version not in (0, FORMAT_VERSION):
            raise OtherVersionError(
                f"the checkpoint has format version {sealed.format_version}, and this program "
                f"reads version {FORMAT_VERSION} only; finish the design with the version of "
                "remy-farm that wrote it, or start the design again"
            )
        if intact:
            checkpoint.ParseFromString(sealed.checkpoint)
    except DecodeError:
        intact = False
    if not intact:
        raise CheckpointError(
            f"the checkpoint ({len(data)} bytes) is damaged: its hash does not match its content"
        )
    return checkpoint


def _seal(payload: bytes) -> bytes:
    return checkpoint_pb2.SealedCheckpoint(
        format_version=FORMAT_VERSION, checkpoint=payload, sha256=hashlib.sha256(payload).digest()
    ).SerializeToString(deterministic=True)


def new_record(design_digest: str, spec: spec_pb2.DesignSpec) -> checkpoint_pb2.Checkpoint:
    """Returns the record of a new design: a checkpoint without the strategy's state."""
    has_extended_signals = any(axis_of(signal) >= BASIC_AXES for signal in spec.signals)
    if spec.HasField("path_model"):
        digest = network_signals_fingerprint() if has_extended_signals else path_model_fingerprint()
    elif has_extended_signals or rule_table_pb2.SIGNAL_AGE in spec.signals:
        digest = signals_fingerprint()
    else:
        digest = fingerprint(spec.rules)
    return checkpoint_pb2.Checkpoint(
        spec_digest=design_digest,
        simulator_version=version("remy-simulator"),
        simulator_digest=digest,
    )


def check_same_design(
    saved: checkpoint_pb2.Checkpoint, expected: checkpoint_pb2.Checkpoint
) -> None:
    """Raises CheckpointError unless `saved` has the design and the simulator of `expected`."""
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
            f"{expected.simulator_digest[:12]}); the design can be resumed with that build only"
        )
