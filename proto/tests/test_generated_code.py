"""The generated code carries the constraints of the .proto files."""

from __future__ import annotations

from typing import Any

from remy_proto.v1 import constraints_pb2, spec_pb2


def test_fields_carry_their_declared_constraints() -> None:
    field = spec_pb2.NetworkModel.DESCRIPTOR.fields_by_name["rate_mbps"]
    extensions: Any = field.GetOptions().Extensions
    constraint: constraints_pb2.Constraint = extensions[constraints_pb2.constraint]
    assert constraint.unit == "Mbit/s"
    assert constraint.required_unless == "links"
    assert constraint.exclusive_minimum
    assert constraint.minimum == 0


def test_a_field_without_a_declaration_has_no_constraint() -> None:
    field = spec_pb2.Distribution.DESCRIPTOR.fields_by_name["exact"]
    options: Any = field.GetOptions()
    assert not options.HasExtension(constraints_pb2.constraint)
