"""Where specifications differ."""

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1.design_service_pb2 import SettingDifference
from remy_services.jobs.requests import differences, with_settings


def test_only_settings_that_are_not_all_alike() -> None:
    spec = small_joint_spec()
    other = with_settings(spec, ["objective.delta=10", "signals=[send_ewma]"])
    assert differences([spec, other, spec]) == [
        SettingDifference(path="objective.delta", values=("1", "10", "1")),
        SettingDifference(
            path="signals",
            values=("[send_ewma, rtt_ratio]", "[send_ewma]", "[send_ewma, rtt_ratio]"),
        ),
    ]


def test_what_is_not_set_is_empty() -> None:
    spec = small_joint_spec()
    other = with_settings(spec, ["stop.epochs=3"])
    assert differences([spec, other]) == [SettingDifference(path="stop.epochs", values=("", "3"))]


def test_a_specification_does_not_differ_from_itself() -> None:
    assert differences([small_joint_spec()]) == []
