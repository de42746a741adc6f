"""Tests the budgets of a run."""

from library.tests.designer.small_spec import small_spec
from remy_farm.driver.run import with_budget
from remy_farm.specification import check_spec
from remy_proto.v1 import spec_pb2


def test_budgets_of_a_run_replace_those_of_the_specification() -> None:
    spec = small_spec(epochs=6, steps=10, cpu_seconds=1)

    changed = with_budget(spec, max_steps=20, max_wall_seconds=3)

    assert changed.stop == spec_pb2.Stop(epochs=6, steps=20, cpu_seconds=1, wall_seconds=3)
    assert spec.stop == spec_pb2.Stop(epochs=6, steps=10, cpu_seconds=1)
    check_spec(changed)
