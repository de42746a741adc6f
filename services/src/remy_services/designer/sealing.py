"""Checkpoints as bytes: a version, the message, and a hash that damage cannot pass."""

from __future__ import annotations

import hashlib

from google.protobuf.message import DecodeError

from remy_farm.v1 import checkpoint_pb2
from remy_services.designer.errors import CheckpointError, OtherVersionError

#: Version of the message Checkpoint. Another one cannot be read.
FORMAT_VERSION = 1


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
                f"the checkpoint has format version {sealed.format_version}; "
                f"this program reads version {FORMAT_VERSION} only"
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
        format_version=FORMAT_VERSION,
        checkpoint=payload,
        sha256=hashlib.sha256(payload).digest(),
    ).SerializeToString(deterministic=True)
