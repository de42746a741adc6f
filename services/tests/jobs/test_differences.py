"""Tests the comparison of specifications."""

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1.design_service_pb2 import SettingDifference
from remy_services.jobs.requests import differences, with_settings


def test_only_differing_settings_are_listed() -> None:
    spec = small_joint_spec()
    other = with_settings(spec, ["objective.delta=10", "signals=[send_ewma]"])
    assert differences([spec, other, spec]) == [
        SettingDifference(path="objective.delta", values=("1", "10", "1")),
        SettingDifference(
            path="signals",
            values=("[send_ewma, rtt_ratio]", "[send_ewma]", "[send_ewma, rtt_ratio]"),
        ),
    ]


def test_unset_values_are_empty() -> None:
    spec = small_joint_spec()
    other = with_settings(spec, ["stop.epochs=3"])
    assert differences([spec, other]) == [SettingDifference(path="stop.epochs", values=("", "3"))]


def test_a_single_specification_has_no_differences() -> None:
    assert differences([small_joint_spec()]) == []
