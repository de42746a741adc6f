"""Tests that damaged checkpoints, and those of other designs, are refused."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.analytic_evaluator import AnalyticEvaluator
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import CheckpointError, Designer
from remy_farm.designer import checkpoint as sealing
from remy_farm.designer.scoring import OtherVersionError
from remy_proto.v1 import checkpoint_pb2, rule_table_pb2, spec_pb2
from remy_simulator import fingerprint

SPEC = small_spec()


def _checkpoint() -> bytes:
    designer = Designer(SPEC)
    for _ in range(9):
        request = designer.next_request()
        assert request is not None
        designer.receive(AnalyticEvaluator().evaluate(request))
    return designer.checkpoint()


_DATA = _checkpoint()


def _resealed(change: dict[str, object]) -> bytes:
    """Returns the checkpoint with changed fields and a valid hash."""
    checkpoint = sealing.unseal(_DATA)
    for name, value in change.items():
        setattr(checkpoint, name, value)
    return sealing.seal(checkpoint)


def test_a_checkpoint_with_any_flipped_bit_is_refused() -> None:
    for index in range(len(_DATA)):
        for bit in range(8):
            damaged = bytearray(_DATA)
            damaged[index] ^= 1 << bit
            with pytest.raises(CheckpointError):
                Designer.resume(SPEC, bytes(damaged))


def test_a_truncated_checkpoint_is_refused() -> None:
    for length in range(len(_DATA)):
        with pytest.raises(CheckpointError, match=f"{length} bytes"):
            Designer.resume(SPEC, _DATA[:length])


@given(st.binary(min_size=1, max_size=40))
def test_a_checkpoint_with_trailing_bytes_is_refused(tail: bytes) -> None:
    with pytest.raises(CheckpointError):
        Designer.resume(SPEC, _DATA + tail)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"damaged|format version"):
        Designer.resume(SPEC, data)


def test_another_format_version_is_refused() -> None:
    sealed = checkpoint_pb2.SealedCheckpoint.FromString(_DATA)
    sealed.format_version = 7
    with pytest.raises(
        CheckpointError, match=r"format version 7, .* reads version 2 only; finish the design"
    ):
        Designer.resume(SPEC, sealed.SerializeToString())


def test_a_checkpoint_of_another_simulator_version_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"made with simulator 99\.1; this is simulator"):
        Designer.resume(SPEC, _resealed({"simulator_version": "99.1"}))


@pytest.mark.parametrize(("digest", "words"), [("0" * 64, "0" * 12), ("", "unknown")])
def test_a_checkpoint_of_a_simulator_with_other_results_is_refused(digest: str, words: str) -> None:
    this = fingerprint()[:12]
    with pytest.raises(
        OtherVersionError, match=rf"results differ .* \(digest {words}, not {this}\)"
    ):
        Designer.resume(SPEC, _resealed({"simulator_digest": digest}))


def test_simulator_digest_depends_on_the_kind_of_rules() -> None:
    scale_free = rule_table_pb2.RULES_SCALE_FREE
    spec = small_joint_spec(edition=2, signals="send_ratio, rtt_ratio")
    for each, digest in ((SPEC, fingerprint()), (spec, fingerprint(scale_free))):
        checkpoint = sealing.unseal(Designer(each).checkpoint())
        assert checkpoint.simulator_digest == digest
    checkpoint.simulator_digest = fingerprint()
    with pytest.raises(OtherVersionError, match=r"results differ"):
        Designer.resume(spec, sealing.seal(checkpoint))


@pytest.mark.parametrize(
    "spec",
    [
        small_spec(seed=2),
        small_spec(grid_steps=2),
        small_spec(signals="send_ewma"),
        small_spec(epochs_per_split=3),
    ],
    ids=["seed", "grid", "signals", "epochs per split"],
)
def test_a_checkpoint_of_another_specification_is_refused(spec: spec_pb2.DesignSpec) -> None:
    with pytest.raises(CheckpointError, match="another specification"):
        Designer.resume(spec, _DATA)


def test_name_and_budgets_may_change() -> None:
    spec = small_spec(epochs=60, steps=1000, cpu_seconds=5)
    spec.name = "renamed"
    assert Designer.resume(spec, _DATA).steps == 9


def test_a_checkpoint_without_a_strategys_state_is_refused() -> None:
    checkpoint = sealing.unseal(_DATA)
    checkpoint.ClearField("paper")
    with pytest.raises(CheckpointError, match="selects search 'paper'"):
        Designer.resume(SPEC, sealing.seal(checkpoint))


@pytest.mark.parametrize("field", ["epoch_table", "rule_epochs", "purpose"])
def test_an_incomplete_state_of_the_paper_search_is_refused(field: str) -> None:
    checkpoint = sealing.unseal(_DATA)
    checkpoint.paper.ClearField(field)
    with pytest.raises(CheckpointError):
        Designer.resume(SPEC, sealing.seal(checkpoint))


def test_the_hash_is_sha_256_of_the_checkpoint() -> None:
    sealed = checkpoint_pb2.SealedCheckpoint.FromString(_DATA)
    assert sealed.sha256 == hashlib.sha256(sealed.checkpoint).digest()
