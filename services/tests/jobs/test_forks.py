"""Tests with_settings: specifications with changed settings."""

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.specification import SpecError, content_digest
from remy_services.jobs.requests import with_settings


def test_no_settings_leave_the_specification_unchanged() -> None:
    spec = small_joint_spec()
    assert content_digest(with_settings(spec, [])) == content_digest(spec)


def test_values_are_parsed_as_yaml() -> None:
    spec = with_settings(
        small_joint_spec(),
        ["objective.delta=0.1", "network.rtt_ms={uniform: [50, 60]}", " search.seed = 7"],
    )
    assert spec.objective.delta == 0.1
    assert spec.network.rtt_ms.uniform.low == 50
    assert spec.search.seed == 7


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("objective.delta", "settings[0]"),
        ("=1", "settings[0]"),
        ("objective.delta=-1", "objective.delta"),
        ("objective.dleta=1", "objective.dleta"),
        ("objective.delta=[1", ""),
    ],
)
def test_invalid_settings_are_refused(setting: str, path: str) -> None:
    with pytest.raises(SpecError) as caught:
        with_settings(small_joint_spec(), [setting])
    assert [violation.path for violation in caught.value.violations] == [path]
