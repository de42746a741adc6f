"""Tests changing the length of a search's schedule."""

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_pattern_spec import small_pattern_spec
from library.tests.designer.small_spec import small_spec
from remy_farm.designer import DesignerError
from remy_farm.designer.checkpoint import search_digest
from remy_farm.designer.search import with_steps
from remy_proto.v1 import spec_pb2


def test_new_steps_replace_steps_and_cpu_time() -> None:
    spec = small_joint_spec(cpu_seconds=5)
    changed = with_steps(spec, 7)
    assert changed == small_joint_spec(steps=7)
    assert spec.search.joint.cpu_seconds == 5
    assert with_steps(small_pattern_spec(), 7) == small_pattern_spec(steps=7)


@pytest.mark.parametrize(
    "spec", [small_joint_spec(), small_pattern_spec()], ids=["joint", "pattern"]
)
def test_length_is_not_part_of_the_search_digest(spec: spec_pb2.DesignSpec) -> None:
    assert search_digest(with_steps(spec, 1000)) == search_digest(spec)


def test_the_papers_search_has_no_schedule() -> None:
    with pytest.raises(
        DesignerError, match=r"search\.mode is paper, .* could be set to 7 steps; .*--max-steps"
    ):
        with_steps(small_spec(), 7)
