"""Checkpoints: sealed bytes, and which design and simulator they belong to."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import Final

from google.protobuf.message import DecodeError

from remy_farm.designer.scoring import CheckpointError, DesignerError, OtherVersionError
from remy_farm.remycc import signal_name
from remy_farm.specification import content_digest
from remy_farm.specification.modes import MODES
from remy_farm.specification.schema import short_name
from remy_proto.v1 import checkpoint_pb2, rule_table_pb2, spec_pb2
from remy_simulator import RuleTable, fingerprint, signals_fingerprint
from remy_simulator.messages import USUAL_AXES, axis_of

# Settings of a search's length that a design may go on with another value of.
_MAY_CHANGE: Final = ("steps", "cpu_seconds")


def search_digest(spec: spec_pb2.DesignSpec) -> str:
    """The digest of a specification without its name, stop rules, schedule's length and workers.

    A design may go on with more of what these allow. Where the length of a schedule changes, what
    is annealed over it is annealed anew from where the design stands.
    """
    walk = spec_pb2.DesignSpec()
    walk.CopyFrom(spec)
    walk.ClearField("name")
    walk.ClearField("stop")
    walk.ClearField("workers")
    walk.search.ClearField("worker_schedule")
    for mode in MODES:
        for name in mode.lengths:
            if name in _MAY_CHANGE:
                mode.settings(walk.search).ClearField(name)
    return content_digest(walk)


def with_signals_of(spec: spec_pb2.DesignSpec, table: RuleTable) -> RuleTable:
    """The table as one that may be divided on the specification's signals.

    Raises DesignerError if it is divided on any other, or has rules of another kind.
    """
    if table.rules != spec.rules:
        kinds = rule_table_pb2.Rules.DESCRIPTOR.values_by_number
        raise DesignerError(
            f"the table to begin with has {short_name(kinds[table.rules])} rules, so that the "
            f"specification's `rules` must be that, too; they are {short_name(kinds[spec.rules])}"
        )
    allowed = sorted(axis_of(signal) for signal in spec.signals)
    for thresholds, _ in table.nodes():
        for axis, _ in thresholds:
            if axis not in allowed:
                raise DesignerError(
                    f"the table to begin with is divided on {signal_name(axis, table.rules)}; the "
                    "specification's signals are "
                    + ", ".join(signal_name(each, table.rules) for each in allowed)
                )
    return RuleTable(allowed, table.nodes(), table.domain_upper, table.rules)


def design_digest(spec: spec_pb2.DesignSpec, given: RuleTable | None) -> str:
    """What may not change while a design goes on: the search, and the table it was given."""
    digest = search_digest(spec)
    if given is None:
        return digest
    content = [given.signals, given.domain_upper, given.nodes(), given.rules]
    table = json.dumps(content, allow_nan=False)
    return hashlib.sha256(f"{digest} {table}".encode()).hexdigest()


#: Version of the message Checkpoint. Another one cannot be read.
FORMAT_VERSION = 2


def seal(checkpoint: checkpoint_pb2.Checkpoint) -> bytes:
    """The checkpoint as bytes that `unseal` accepts."""
    return _seal(checkpoint.SerializeToString(deterministic=True))


def unseal(data: bytes) -> checkpoint_pb2.Checkpoint:
    """The checkpoint that `seal` made these bytes of. Raises CheckpointError for any others."""
    sealed = checkpoint_pb2.SealedCheckpoint()
    checkpoint = checkpoint_pb2.Checkpoint()
    try:
        sealed.ParseFromString(data)
        intact = _seal(sealed.checkpoint) == data
        if not intact and sealed.format_version not in (0, FORMAT_VERSION):
            raise OtherVersionError(
                f"the checkpoint has format version {sealed.format_version}, and this program "
                f"reads version {FORMAT_VERSION} only; let the version of remy-farm that wrote it "
                "finish the design, or begin the design anew"
            )
        if intact:
            checkpoint.ParseFromString(sealed.checkpoint)
    except DecodeError:
        intact = False
    if not intact:
        raise CheckpointError(
            f"the checkpoint ({len(data)} bytes) is damaged: its content and its hash differ"
        )
    return checkpoint


def _seal(payload: bytes) -> bytes:
    return checkpoint_pb2.SealedCheckpoint(
        format_version=FORMAT_VERSION, checkpoint=payload, sha256=hashlib.sha256(payload).digest()
    ).SerializeToString(deterministic=True)


def new_record(design_digest: str, spec: spec_pb2.DesignSpec) -> checkpoint_pb2.Checkpoint:
    """The record of a design at its beginning, made by this simulator: a checkpoint but for the
    strategy's state."""
    signals_beyond = [
        signal
        for signal in spec.signals
        if axis_of(signal) >= USUAL_AXES or signal == rule_table_pb2.SIGNAL_AGE
    ]
    return checkpoint_pb2.Checkpoint(
        spec_digest=design_digest,
        simulator_version=version("remy-simulator"),
        simulator_digest=signals_fingerprint() if signals_beyond else fingerprint(spec.rules),
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
